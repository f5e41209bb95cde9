"""Wrong requests, spoiled files and machines that are not able: one sentence, a hint, the right code, nothing lost."""

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import agent_at_work, every_file
from tests.session_files import left_behind, rows, statuses

REQUEST, HOST = 2, 4


def refused(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """One sentence that quotes what is wrong, then something to do."""
    assert done.returncode == code, done.stderr
    assert re.fullmatch(r"iterdev: \S.*\nhint: \S.*\n", done.stderr), done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.mark.requirement("R11")
def test_an_unknown_command_is_named_with_the_nearest_one_and_the_list(repo: Repo) -> None:
    done = repo.iterdev("statsu")

    refused(done, REQUEST, '"statsu"', '"status"', "accept, ")
    assert done.stdout == ""


def test_no_command_at_all_shows_the_help(repo: Repo) -> None:
    done = repo.iterdev()

    assert done.returncode == REQUEST
    assert "\nSession commands:\n" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--fast", "Fix it"], ["--fast"]),
        (["run", "--pipeline", "waterfall", "Fix it"], ["waterfall", "multi-sprint"]),
        (["run", "--engine", "steam", "Fix it"], ["steam", "wave", "beat"]),
        (["run", "--role-agent", "cook=mine", "Fix it"], ['"cook"', "architect, developer, tester, reviewer"]),
        (["run", "--role-agent", "developer", "Fix it"], ['"developer"', "--role-agent developer=NAME"]),
        (["run", "-y", "--agent", "nobody", "Fix it"], ['"nobody"', "mine"]),
        (["run", "-y", "--role-agent", "tester=nobody", "Fix it"], ['"nobody"', "mine"]),
        (["run", "-c", "0", "Fix it"], ['"0"']),
        (["run", "-c", "-3", "Fix it"], ['"-3"']),
        (["run", "-c", "many", "Fix it"], ["'many'"]),
        (["run", "--files", "-1", "Fix it"], ['"-1"']),
        (["run", ""], ["empty"]),
        (["run", "  "], ["empty"]),
        (["run"], ["empty"]),
        (["run", "--tasks", "no-such.csv"], ['"no-such.csv"', "No such file"]),
        (["status", "nothing"], ["no session", "iterdev run"]),
        (["resume"], ["no session", "iterdev run"]),
        (["accept"], ["no session", "iterdev run"]),
        (["why", "nothing", "DEV-001"], ['"nothing"']),
        (["retry", "nothing"], ['"nothing"']),
        (["completion", "tcsh"], ["tcsh", "bash"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_wrong_request_is_refused_and_nothing_is_made(repo: Repo, arguments: list[str], words: list[str]) -> None:
    done = repo.iterdev(*arguments)

    refused(done, REQUEST, *words)
    assert done.stdout == ""
    assert not list((repo.path / ".workflow").glob("*/*"))
    assert repo.calls() == []


@pytest.mark.parametrize("command", [["status"], ["why", "x"], ["debt", "add"], ["team", "log"], ["--bad"], []])
def test_an_argument_that_is_not_utf_8_is_no_defect(repo: Repo, command: list[str]) -> None:
    done = repo.iterdev(*command, "bad \udcff")

    assert done.returncode == REQUEST
    assert "defect" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_request_that_is_not_utf_8_is_carried_out(repo: Repo) -> None:
    done = repo.iterdev("run", "-y", "--pipeline", "patch", "bad \udcff")

    assert done.returncode == 0, done.stderr
    assert repo.iterdev("status").returncode == 0
    assert [call["role"] for call in repo.calls()] == ["developer"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("[run]\nagnet = 'mine'\n", ["[run]", '"agnet"', '"agent"']),
        ("[limit]\nwave = 3\n", ['"limit"', '"limits"']),
        ("[roles.developr]\nagent = 'mine'\n", ['"developr"', '"developer"']),
        ("[agents.mine]\ncomand = ['x']\n", ["[agents.mine]", '"comand"', '"command"']),
        ("[run]\nconcurrency = 'many'\n", ["[run]", "concurrency"]),
        ("[run]\nconcurrency = 0\n", ["[run]", "concurrency", "0"]),
        ("[limits]\nattempt = 0\n", ["[limits]", "attempt", "0"]),
        ("[agents.mine]\n", ["[agents.mine]", "`command`", "`script`"]),
        ("[run\n", ["TOML", "line 1"]),
        (f"[run]\nconcurrency = {'9' * 5_000}\n", ["TOML", "digits"]),
        (f"[run]\nconcurrency = {'9' * 500}\n", ["[run]", "concurrency"]),
        (f"[limits]\nattempt = {'9' * 500}\n", ["[limits]", "attempt"]),
        (f"[run]\nagent = {'[' * 2_000}{']' * 2_000}\n", ["nested too deeply"]),
        (f"[run]\nagent = {'{a=' * 2_000}1{'}' * 2_000}\n", ["nested too deeply"]),
        (f"run = {'[' * 300}{']' * 300}\n", ["nested too deeply"]),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_nearest_name(repo: Repo, settings: str, words: list[str]) -> None:
    repo.write("iterdev.toml", settings)

    done = repo.iterdev("run", "-y", "Fix it")

    refused(done, REQUEST, "iterdev.toml", *words)
    assert not list((repo.path / ".workflow").glob("*/*"))


@pytest.mark.parametrize("place", ["--tasks", "role", "settings", "env"])
def test_a_named_pipe_is_refused_and_not_waited_for(repo: Repo, place: str) -> None:
    name = {"settings": "iterdev.toml", "env": ".env"}.get(place, "pipe")
    (repo.path / name).unlink(missing_ok=True)
    os.mkfifo(repo.path / name)
    if place == "role":
        spoil(repo.path / "iterdev.toml", "[project]", "[roles.developer]\nfile = 'pipe'\n[project]")

    done = repo.iterdev("run", "--tasks", "pipe") if place == "--tasks" else repo.iterdev("run", "Fix it", timeout=30)

    if place == "env":
        assert "Question (pipeline)" in done.stdout
    else:
        refused(done, HOST if place == "settings" else REQUEST, name, "not a regular file")


def test_a_null_character_in_the_name_of_a_role_file_is_refused(repo: Repo) -> None:
    spoil(repo.path / "iterdev.toml", "[project]", '[roles.developer]\nfile = "a\\u0000b"\n[project]')

    done = repo.iterdev("run", "-y", "Fix it")

    refused(done, REQUEST, '"developer"', "null character")


def test_all_problems_of_a_configuration_are_told_at_once(repo: Repo) -> None:
    repo.write("iterdev.toml", "[run]\nagnet = 1\nconcurrency = 0\n[limits]\nwaves = 3\nattempt = 'long'\n[projet]\n")

    done = repo.iterdev("run", "-y", "Fix it")

    refused(done, REQUEST, '"agnet"', "concurrency", '"waves"', "attempt", '"projet"')


@pytest.fixture
def planned(repo: Repo) -> Path:
    """The folder of a session that waits for the approval of its plan."""
    repo.iterdev("run", "--pipeline", "patch", "Fix it")
    return repo.folder()


@pytest.fixture(scope="module")
def waiting(module_repo: Repo) -> Repo:
    """A repository whose only session waits; each test puts back what it spoils."""
    module_repo.iterdev("run", "--pipeline", "patch", "Fix it")
    return module_repo


def spoil(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.requirement("R46", "R66", "R162")
@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('"developer"', '"cook"', 2, ['"cook"']),
        ('"pending"', '"sleeping"', 2, ['"sleeping"']),
        ('"patch"', '"pitch"', 2, ['"pitch"']),
        ('"csv-wave"', '"by-hand"', 2, ['"by-hand"']),
        ('"VERIFY-001"', '"DEV-001"', 15, ['"DEV-001"', "twice"]),
        ('"DEV-001","DEV-001","csv-wave"', '"DEV-009","DEV-001","csv-wave"', 15, ['"DEV-009"']),
        ('"DEV-001","DEV-001","csv-wave"', '"VERIFY-001","DEV-001","csv-wave"', 15, ['"VERIFY-001"', "itself"]),
        ('"","","csv-wave"', '"VERIFY-001","","csv-wave"', 2, ["DEV-001 -> VERIFY-001"]),
        ('"DEV-001","Fix', '"DEV-001","extra","Fix', 2, ["17 cells for 16 columns"]),
        ("gc_round", "gc_rund", 1, ['"gc_rund"', '"gc_round"']),
    ],
)
def test_a_spoiled_table_is_refused_with_its_line_and_left_as_it_is(
    waiting: Repo, old: str, new: str, line: int, words: list[str]
) -> None:
    table = waiting.folder() / "tasks.csv"
    before = table.read_text(encoding="utf-8")
    spoil(table, old, new)
    spoiled = table.read_text(encoding="utf-8")

    done = waiting.iterdev("resume", "-y")
    after = table.read_text(encoding="utf-8")
    table.write_text(before, encoding="utf-8")

    refused(done, REQUEST, f"tasks.csv line {line}: ", *words)
    assert after == spoiled
    assert waiting.calls() == []


def test_a_table_that_was_mended_runs(repo: Repo, planned: Path) -> None:
    spoil(planned / "tasks.csv", '"pending"', '"sleeping"')
    repo.iterdev("resume", "-y")
    spoil(planned / "tasks.csv", '"sleeping"', '"pending"')

    done = repo.iterdev("resume", "-y")

    assert done.returncode == 0, done.stderr


@pytest.mark.requirement("R121")
def test_a_row_that_the_table_lost_is_made_again_with_its_blockers_and_told(repo: Repo, planned: Path) -> None:
    table = planned / "tasks.csv"
    before = rows(planned)
    text = table.read_text(encoding="utf-8")
    table.write_text(text[: text.index('"VERIFY-001"')], encoding="utf-8")

    done = repo.iterdev("resume", "-y")

    after = rows(planned)
    assert done.returncode == 0, done.stderr
    assert [(name, row["deps"], row["status"]) for name, row in after.items()] == [
        (name, row["deps"], "completed") for name, row in before.items()
    ]
    assert "the rows of VERIFY-001 were missing in tasks.csv, and were restored; to leave a task out" in done.stdout
    assert [call["task"] for call in repo.calls()] == ["DEV-001"]


@pytest.mark.requirement("R66", "R162")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["line 1", "empty"]),
        ("id,description\n", ["no tasks"]),
        ("id,description\nDEV-001,one\nDEV-002,two,three\n", ["line 3", "3 cells for 2 columns"]),
        ("id,description,deps\nDEV-001,one,\nDEV-002,two,DEV-007\n", ["line 3", '"DEV-007"']),
        ("id,description,deps\nDEV-001,one,DEV-002\nDEV-002,two,DEV-001\n", ["line 2", "DEV-001", "DEV-002"]),
        ("id,description\nDEV-001,\n", ["line 2", "description"]),
        ("id,description,context_from\nDEV-001,one,DEV-002\nDEV-002,two,\n", ["line 2", '"DEV-002"', "wave"]),
        ('id,description\nDEV-001,"never closed\n', ["line 2"]),
        ("title,description\nOne,two\n", ["line 1", '"id"']),
    ],
)
def test_a_spoiled_table_made_by_hand_is_refused_with_its_line(repo: Repo, text: str, words: list[str]) -> None:
    (repo.home / "mine.csv").write_text(text, encoding="utf-8")

    done = repo.iterdev("run", "-y", "--tasks", str(repo.home / "mine.csv"))

    refused(done, REQUEST, "mine.csv", *words)
    assert not list((repo.path / ".workflow").glob("*/*"))


@pytest.mark.requirement("R67")
@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"this is no database",
        lambda _: b"",
        lambda whole: whole[:5000],
        lambda whole: whole[:4096] + b"\xff" * 4096 + whole[8192:],
    ],
    ids=["garbage", "empty", "cut off", "a hole"],
)
def test_a_spoiled_journal_is_made_again_from_the_table_and_nothing_is_lost(
    repo: Repo, damage: Callable[[bytes], bytes]
) -> None:
    with agent_at_work(repo, "run", "-y", "--pipeline", "sprint", "Add a greeting") as running:
        running.process.send_signal(signal.SIGINT)
        running.end()
    journal = repo.path / ".workflow" / "iterdev.db"
    journal.write_bytes(damage(journal.read_bytes()))
    repo.behave(developer={"write": {"greeting.txt": "hello\n"}})

    status = repo.iterdev("status")
    resumed = repo.iterdev("resume")

    assert status.returncode == 0, status.stderr
    assert "[DONE] DESIGN-001" in status.stdout
    assert resumed.returncode == 0, resumed.stderr
    assert [call["task"] for call in repo.calls()] == ["DESIGN-001", "DEV-001", "DEV-001", "REVIEW-001"]
    assert set(statuses(repo.folder()).values()) == {"completed"}


def test_a_damaged_journal_is_kept_aside(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix it")
    (repo.path / ".workflow" / "iterdev.db").write_bytes(b"this is no database")

    repo.iterdev("status")

    assert b"this is no database" in every_file(repo.path / ".workflow").values()


def test_a_journal_that_lost_what_was_not_yet_in_it_is_made_again(repo: Repo) -> None:
    with agent_at_work(repo, "run", "-y", "--pipeline", "sprint", "Add a greeting") as running:
        running.kill()
    for extra in (repo.path / ".workflow").glob("iterdev.db-*"):
        extra.unlink()

    status = repo.iterdev("status")

    assert status.returncode == 0, status.stderr
    assert "[DONE] DESIGN-001" in status.stdout


def test_a_finished_session_survives_the_loss_of_its_journal(repo: Repo) -> None:
    repo.behave(developer={"write": {"greeting.txt": "hello\n"}})
    repo.iterdev("run", "-y", "Add a greeting")
    (repo.path / ".workflow" / "iterdev.db").write_bytes(b"x" * 5000)

    status = repo.iterdev("status")
    accepted = repo.iterdev("accept")

    assert "[DONE] VERIFY-001" in status.stdout
    assert "State: completed" in status.stdout
    assert accepted.returncode == 0, accepted.stderr
    assert (repo.path / "greeting.txt").exists()


@pytest.mark.requirement("R105", "R111", "R112")
def test_spoiled_records_are_made_again_and_spoiled_board_lines_are_passed_over(repo: Repo, planned: Path) -> None:
    whole = '{"ts": "t", "worker": "DEV-000", "type": "convention", "data": {"name": "tabs, not spaces"}}'
    board = f'{whole}\nnot json\n{{"half": \n'
    for name in ("task-ledger.json", "session.json", ".msg/meta.json", ".msg/messages.jsonl"):
        (planned / name).write_text("{{{", encoding="utf-8")
    (planned / "discoveries.ndjson").write_text(board, encoding="utf-8")

    done = repo.iterdev("resume", "-y")

    assert done.returncode == 0, done.stderr
    assert (planned / "discoveries.ndjson").read_text(encoding="utf-8").startswith(board)
    assert "tabs, not spaces" in str(repo.calls()[0]["prompt"])
    assert '"velocity": 2' in (planned / "task-ledger.json").read_text(encoding="utf-8")
    assert '"status": "completed"' in (planned / "session.json").read_text(encoding="utf-8")
    assert (planned / ".msg" / "messages.jsonl").read_text(encoding="utf-8").startswith('{"id": "MSG-001"')


def test_outside_of_a_repository_the_folder_is_named(repo: Repo) -> None:
    done = subprocess.run(
        repo.command("run", "-y", "Fix it"), cwd=repo.home, env=repo.env, capture_output=True, text=True, check=False
    )

    refused(done, REQUEST, f'"{repo.home}"', "git init")


def test_a_repository_without_commits_is_told_to_make_one(repo: Repo) -> None:
    repo.git("update-ref", "-d", "HEAD")

    done = repo.iterdev("run", "-y", "Fix it")

    refused(done, REQUEST, "no commits", "git commit")
    assert not list((repo.path / ".workflow").glob("*/*"))


def test_a_git_that_is_too_old_is_named_with_what_is_needed(repo: Repo) -> None:
    fake = repo.home / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho git version 2.30.2\n", encoding="utf-8")
    fake.chmod(0o755)

    done = repo.iterdev("run", "-y", "Fix it", PATH=f"{fake.parent}{os.pathsep}{repo.env['PATH']}")

    refused(done, HOST, "2.30", "2.38")


def test_without_git_the_hint_is_to_install_it(repo: Repo) -> None:
    done = repo.iterdev("run", "-y", "Fix it", PATH=str(repo.home))

    refused(done, HOST, "git", "install")


def test_accept_of_an_unfinished_session_is_refused(repo: Repo, planned: Path) -> None:
    done = repo.iterdev("accept")

    refused(done, REQUEST, f'"{planned.name}"', f"iterdev resume {planned.name}")


def test_accept_on_another_branch_is_refused(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix it")
    repo.git("switch", "-q", "-c", "other")

    done = repo.iterdev("accept")

    refused(done, REQUEST, '"main"', '"other"', "git switch main")


def in_own_mounts(repo: Repo, script: str) -> dict[str, str]:
    """Runs a shell script that may mount what it likes, and returns what it wrote into files of the folder `out`."""
    out = repo.home / "out"
    out.mkdir()
    mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
    subprocess.run(
        ["unshare", "--mount", *mapped, "sh", "-ec", f"out={shlex.quote(str(out))}\n{script}\ntrue"],
        cwd=repo.path,
        env=repo.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    return {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}


def test_a_disk_that_fills_up_stops_the_run_and_it_goes_on_when_there_is_space(repo: Repo) -> None:
    (repo.path / ".workflow").mkdir()

    out = in_own_mounts(
        repo,
        """
        mount -t tmpfs -o size=4m none .workflow
        head -c 3900k /dev/zero > .workflow/filler
        set +e
        iterdev run -y 'Fix it' > $out/run 2> $out/error; echo $? > $out/code
        rm .workflow/filler
        iterdev resume > $out/resume 2> $out/resume-error; echo $? > $out/resume-code
        cp .workflow/.csv-wave/*/tasks.csv $out
        """,
    )

    refused(subprocess.CompletedProcess((), int(out["code"]), out["run"], out["error"]), HOST, "full", "resume")
    assert out["resume-code"] == "0\n", out["resume-error"]
    assert {row["status"] for row in rows(repo.home / "out").values()} == {"completed"}
    assert left_behind(repo) == []


def test_a_full_disk_for_worktrees_is_the_hosts_fault_and_has_a_hint(repo: Repo) -> None:
    (repo.home / "iterdev").mkdir()

    out = in_own_mounts(
        repo,
        """
        mount -t tmpfs -o size=8k none $ITERDEV_HOME
        set +e
        iterdev run -y 'Fix it' > $out/run 2> $out/error; echo $? > $out/code
        """,
    )
    resumed = repo.iterdev("resume")

    refused(subprocess.CompletedProcess((), int(out["code"]), out["run"], out["error"]), HOST, str(repo.home))
    assert resumed.returncode == 0, resumed.stderr
    assert left_behind(repo) == []


READ_ONLY = """
mount --bind "$PWD" "$PWD"
mount -o remount,ro,bind "$PWD"
cd "$PWD"
set +e
"""


def test_a_run_in_a_read_only_repository_is_refused_before_anything_is_started(repo: Repo) -> None:
    out = in_own_mounts(repo, f"{READ_ONLY} iterdev run -y 'Fix it' > $out/run 2> $out/error; echo $? > $out/code")

    refused(subprocess.CompletedProcess((), int(out["code"]), out["run"], out["error"]), HOST, "ead-only", "writable")
    assert out["run"] == ""
    assert repo.calls() == []
    assert left_behind(repo) == []


def test_looking_works_in_a_read_only_repository_after_a_kill(repo: Repo) -> None:
    with agent_at_work(repo, "run", "-y", "--pipeline", "sprint", "Add a greeting") as running:
        running.kill()
    assert (repo.path / ".workflow" / "iterdev.db-wal").stat().st_size

    out = in_own_mounts(repo, f"{READ_ONLY} iterdev status > $out/status 2> $out/error; echo $? > $out/code")

    assert (out["code"], out["error"]) == ("0\n", "")
    assert "[DONE] DESIGN-001" in out["status"]


@pytest.mark.requirement("R9")
def test_looking_works_in_a_read_only_repository_after_a_kill_and_nothing_else_does(repo: Repo) -> None:
    with agent_at_work(repo, "run", "-y", "Fix it") as running:
        running.kill()
    assert (repo.path / ".workflow" / "iterdev.db-wal").stat().st_size

    script = "iterdev status >$out/status 2>&1; iterdev feedback add 'It is red' >$out/added 2>&1; echo $? >$out/code"
    out = in_own_mounts(repo, f"{READ_ONLY}set +e; {script}")

    assert out["status"] == repo.iterdev("status").stdout
    assert (out["code"], "readonly" in out["added"]) == ("4\n", True), out["added"]


@pytest.mark.requirement("R9")
def test_looking_works_in_a_read_only_repository(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix it")
    commands = ["status", "status --json", "sessions", "report", "why ids DEV-001"]
    seen = [repo.iterdev(*command.split()).stdout for command in commands]

    script = "\n".join(f"iterdev {command} >$out/{number} 2>&1" for number, command in enumerate(commands))
    out = in_own_mounts(repo, f"{READ_ONLY}{script}")

    assert [out[str(number)] for number in range(len(commands))] == seen
