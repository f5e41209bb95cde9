"""What others can rely on: documents, exit codes, second names, commands that only look, and the contract of agents."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import agent_at_work, every_file, script
from tests.session_files import document, left_behind, messages, rows, statuses


def only_document(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """Standard output has exactly one JSON document, and nothing else."""
    loaded: dict[str, object] = json.loads(done.stdout)
    return loaded


def test_run_with_json_prints_one_document_with_the_outcome(repo: Repo) -> None:
    done = repo.iterdev("run", "-y", "--json", "--pipeline", "sprint", "Add a greeting")

    document = only_document(done)
    assert done.returncode == document["exit_code"] == 0
    assert done.stderr == ""
    assert document["session"] == repo.folder().name
    assert {task["id"]: task["status"] for task in document["tasks"]} == statuses(repo.folder())
    assert document["branch"] == f"iterdev/{repo.folder().name}"


def test_run_with_json_that_has_to_ask_prints_the_question_in_the_document(repo: Repo) -> None:
    done = repo.iterdev("run", "--json", "Add a greeting")

    document = only_document(done)
    (gate,) = document["gates"]
    assert done.returncode == document["exit_code"] == 5
    assert gate["id"] == "pipeline"
    assert gate["choices"] == ["approve", "patch", "sprint", "multi-sprint"]


def test_run_with_json_that_fails_tells_which_task_and_why(repo: Repo) -> None:
    repo.behave(developer={"exit": 3})

    done = repo.iterdev("run", "-y", "--json", "Fix it")

    first, second = only_document(done)["tasks"]
    assert done.returncode == 1
    assert (first["status"], second["status"]) == ("failed", "skipped")
    assert "code 3" in first["note"]


def test_run_with_json_that_is_interrupted_still_prints_one_document(repo: Repo) -> None:
    with agent_at_work(repo, "run", "-y", "--json", "Fix it") as running:
        running.process.send_signal(signal.SIGINT)
        done = running.end()

    assert done.returncode == 130
    assert only_document(done)["exit_code"] == 130


def test_run_with_json_that_is_refused_prints_nothing_on_standard_output(repo: Repo) -> None:
    done = repo.iterdev("run", "--json", "-c", "0", "Fix it")

    assert done.returncode == 2
    assert done.stdout == ""
    assert "hint: " in done.stderr


def test_status_sessions_and_agents_print_one_document_each(repo: Repo) -> None:
    empty = only_document(repo.iterdev("sessions", "--json"))
    repo.iterdev("run", "-y", "Fix it")

    status = only_document(repo.iterdev("status", "--json"))
    sessions = only_document(repo.iterdev("sessions", "--json"))
    agents = only_document(repo.iterdev("agents", "--json"))

    assert empty == {"sessions": [], "elsewhere": []}
    assert status["session"] == repo.folder().name
    assert [session["session"] for session in sessions["sessions"]] == [repo.folder().name]
    mine = next(agent for agent in agents["agents"] if agent["name"] == "mine")
    assert (mine["installed"], mine["usable"]) == (True, True)
    assert "version" in mine


def test_a_command_that_is_missing_makes_an_agent_unusable(repo: Repo) -> None:
    repo.write("iterdev.toml", '[agents.ghost]\ncommand = ["no-such-program"]\n')

    agents = only_document(repo.iterdev("agents", "--json"))

    ghost = next(agent for agent in agents["agents"] if agent["name"] == "ghost")
    assert (ghost["installed"], ghost["usable"]) == (False, False)
    assert "no-such-program" in ghost["problem"]


def look(repo: Repo) -> None:
    for command in ("status", "check", "status --json", "sessions", "report", "why ids DEV-001"):
        assert repo.iterdev(*command.split()).returncode == 0


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (folder, *folder.rglob("*"))}


@pytest.mark.requirement("R9")
@pytest.mark.parametrize("options", [["-y"], []], ids=["finished", "waiting"])
def test_looking_changes_no_byte_and_no_time(repo: Repo, options: list[str]) -> None:
    repo.iterdev("run", *options, "--pipeline", "patch", "Fix it")
    before = every_file(repo.path / ".workflow"), times(repo.folder())

    look(repo)

    assert (every_file(repo.path / ".workflow"), times(repo.folder())) == before


@pytest.mark.requirement("R9")
def test_looking_at_a_killed_session_changes_nothing_that_is_known_of_it(repo: Repo) -> None:
    """SQLite tidies up after a writer that was killed, so the journal is compared by what is in it."""
    with agent_at_work(repo, "run", "-y", "Fix it") as running:
        running.kill()

    def known() -> tuple[object, ...]:
        files = every_file(repo.path / ".workflow")
        copies = repo.home / "copies"
        copies.mkdir()
        for name in [name for name in files if name.startswith("iterdev.db")]:
            (copies / name).write_bytes(files.pop(name))
        with closing(sqlite3.connect(copies / "iterdev.db")) as journal:
            entries = list(journal.iterdump())
        shutil.rmtree(copies)
        return files, entries, times(repo.folder())

    before = known()
    look(repo)

    assert known() == before


@pytest.mark.requirement("R9", "R118")
def test_the_status_picture_has_a_mark_per_task_then_rounds_sprint_and_session(repo: Repo) -> None:
    with agent_at_work(repo, "run", "-y", "--pipeline", "sprint", "Add a greeting") as running:
        status = repo.iterdev("status").stdout
        check = repo.iterdev("check").stdout
        running.process.send_signal(signal.SIGINT)
        running.end()

    needs, _, *lines = status.splitlines()
    assert check == status
    assert needs == "Needs you: nothing"
    assert "sprint" in lines[0]
    assert lines[1:5] == [
        "[DONE] DESIGN-001 (architect) -> design/design-001.md",
        "[RUN]  DEV-001    (developer) -> working...",
        "[WAIT] VERIFY-001 (tester) -> blocked by DEV-001",
        "[WAIT] REVIEW-001 (reviewer) -> blocked by DEV-001",
    ]
    assert lines[6:9] == ["GC Rounds: 0/3", "Sprint: sprint-1", f"Session: {repo.folder().name}"]


def test_why_names_the_exact_thing_that_a_task_waits_for(repo: Repo) -> None:
    repo.iterdev("run", "--pipeline", "sprint", "Add a greeting")
    session = repo.folder().name
    gate = repo.iterdev("why", session, "REVIEW-001").stdout
    repo.iterdev("answer", session, "plan", "approve")
    with agent_at_work(repo, "resume") as running:
        edge = repo.iterdev("why", session, "REVIEW-001").stdout
        work = repo.iterdev("why", session, "DEV-001").stdout
        running.kill()
    dead = repo.iterdev("why", session, "DEV-001").stdout

    assert "gate plan" in gate
    assert "REVIEW-001 is pending: blocked by DEV-001" in gate
    assert "DEV-001 is pending: blocked by DESIGN-001" in gate
    assert "REVIEW-001 is pending: blocked by DEV-001" in edge
    assert "DEV-001 is in_progress" in edge
    assert "DEV-001 is in_progress" in work
    assert "mine" in work
    assert "resume" not in work
    assert f"iterdev resume {session}" in dead


def test_why_tells_of_a_failure_and_of_an_unknown_task(repo: Repo) -> None:
    repo.behave(developer={"exit": 3})
    repo.iterdev("run", "-y", "Fix it")
    session = repo.folder().name

    failed = repo.iterdev("why", session, "DEV-001")
    skipped = repo.iterdev("why", session, "VERIFY-001")
    unknown = repo.iterdev("why", session, "DEV-007")

    assert "code 3" in failed.stdout
    assert "DEV-001" in skipped.stdout
    assert unknown.returncode == 2
    assert '"DEV-007"' in unknown.stderr
    assert "hint: iterdev status ids-fix-it-" in unknown.stderr


@pytest.mark.requirement("R18")
def test_retry_runs_failed_tasks_again_with_those_that_were_skipped_because_of_them(repo: Repo) -> None:
    repo.behave(**{"DEV-001#1": {"exit": 3}})
    first = repo.iterdev("run", "-y", "--pipeline", "sprint", "Add a greeting")
    failed = statuses(repo.folder())

    again = repo.iterdev("retry", repo.folder().name)

    assert first.returncode == 1
    assert f"iterdev retry {repo.folder().name}" in first.stdout
    assert list(failed.values()) == ["completed", "failed", "skipped", "skipped"]
    assert again.returncode == 0, again.stderr
    assert set(statuses(repo.folder()).values()) == {"completed"}
    assert [call["task"] for call in repo.calls()] == ["DESIGN-001", "DEV-001", "DEV-001", "REVIEW-001"]
    assert rows(repo.folder())["VERIFY-001"]["error"] == ""
    assert left_behind(repo) == []


def test_retry_when_nothing_failed_is_refused(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix it")

    done = repo.iterdev("retry", repo.folder().name)

    assert done.returncode == 2
    assert "hint: " in done.stderr


def test_an_unfinished_session_has_a_report_too(repo: Repo) -> None:
    repo.iterdev("run", "Fix it")

    report = repo.iterdev("report", repo.folder().name)

    assert report.returncode == 0
    assert "**Requirement**: Fix it" in report.stdout


@pytest.mark.requirement("R2", "R3", "R12")
def test_team_iterdev_is_iterdev_run_word_for_word(repo: Repo) -> None:
    def team(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["team-iterdev", *words], cwd=repo.path, env=repo.env, capture_output=True, text=True, check=False
        )

    asked = team("-c", "4", "Fix the greeting")
    session = repo.folder().name
    status = team("status")
    done = team("-y", "--continue", session)

    assert asked.returncode == 5
    assert session in status.stdout
    assert done.returncode == 0, done.stderr
    assert f"{session}: 2 completed" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_completion_script_for_each_shell(repo: Repo, shell: str) -> None:
    done = repo.iterdev("completion", shell)

    assert done.returncode == 0
    assert "_ITERDEV_COMPLETE" in done.stdout


def test_in_bash_commands_options_and_sessions_are_completed(repo: Repo) -> None:
    repo.iterdev("run", "Fix it")
    session = repo.folder().name

    def completed(*words: str) -> list[str]:
        ask = f"""
        eval "$(iterdev completion bash)"
        COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1}
        _iterdev_completion iterdev
        printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        return subprocess.run(
            ["bash", "-c", ask], cwd=repo.path, env=repo.env, capture_output=True, text=True, check=True
        ).stdout.split()

    assert completed("iterdev", "sta") == ["status"]
    assert completed("iterdev", "run", "--pipe") == ["--pipeline"]
    assert completed("iterdev", "run", "--pipeline", "mu") == ["multi-sprint"]
    assert completed("iterdev", "status", "ids") == [session]


def test_the_version_and_the_help_are_there(repo: Repo) -> None:
    version = repo.iterdev("--version")
    helps = [repo.iterdev(*words).stdout for words in (["--help"], ["-h"], ["run", "--help"])]

    assert version.stdout.startswith("iterdev ")
    assert helps[0] == helps[1]
    assert "--role-agent" in helps[2]


def test_an_agent_gets_what_the_contract_promises_and_no_more(repo: Repo) -> None:
    step = """
    [[rule]]
    role = "developer"
    run = "env > $HOME/env; pwd > $HOME/cwd; ps -o pgid= -p $PPID > $HOME/group; echo $PPID >> $HOME/group"
    write = { "a.txt" = "x" }
    result = {}
    """
    script(repo, step)

    done = repo.iterdev("run", "-y", "Fix it", SHOPPING_LIST="milk", GITHUB_TOKEN="gh-not-for-agents")

    seen = dict(line.split("=", 1) for line in (repo.home / "env").read_text().splitlines() if "=" in line)
    cwd = Path((repo.home / "cwd").read_text().strip())
    group, agent = (repo.home / "group").read_text().split()
    assert done.returncode == 0, done.stdout
    assert {name: seen[name] for name in seen if name.startswith("ITERDEV_")} == {
        "ITERDEV_TASK": "DEV-001",
        "ITERDEV_ROLE": "developer",
        "ITERDEV_ATTEMPT": "1",
        "ITERDEV_SESSION": repo.folder().name,
        "ITERDEV_SESSION_DIR": str(repo.folder()),
        "ITERDEV_ISSUES": "",
        "ITERDEV_RESULT": seen["ITERDEV_RESULT"],
        "ITERDEV_TOOLS_URL": seen["ITERDEV_TOOLS_URL"],
        "ITERDEV_TOOLS_TOKEN": seen["ITERDEV_TOOLS_TOKEN"],
        "ITERDEV_PORT": seen["ITERDEV_PORT"],
        "ITERDEV_PORTS": "10",
    }
    assert "SHOPPING_LIST" not in seen
    assert "GITHUB_TOKEN" not in seen
    assert seen["HOME"] == str(repo.home)
    assert not cwd.is_relative_to(repo.path)
    assert cwd.is_relative_to(repo.home / "iterdev")
    assert not Path(seen["ITERDEV_RESULT"]).is_relative_to(cwd)
    assert group == agent
    assert int(group) != os.getpgrp()


def test_variables_named_in_the_configuration_reach_that_agent(repo: Repo) -> None:
    script(repo, "[[rule]]\nrun = 'env > $HOME/env'\nwrite = { 'a.txt' = 'x' }\nresult = {}\n", 'env = ["MODEL_KEY"]\n')

    repo.iterdev("run", "-y", "Fix it", MODEL_KEY="abc", OTHER_KEY="def")

    seen = (repo.home / "env").read_text()
    assert "MODEL_KEY=abc" in seen
    assert "OTHER_KEY" not in seen


def test_each_role_can_have_an_agent_of_its_own(repo: Repo) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    copies = "".join(f"[agents.{name}]\n{text[text.index('command') :]}\n" for name in ("second", "third"))
    repo.write("iterdev.toml", f'{text}\n{copies}[roles.reviewer]\nagent = "second"\n')
    repo.commit("more agents")

    repo.iterdev("run", "-y", "--pipeline", "sprint", "--role-agent", "developer=third", "Add a greeting")

    tasks = only_document(repo.iterdev("status", "--json"))["tasks"]
    assert {task["role"]: task["agent"] for task in tasks if task["role"] != "tester"} == {
        "architect": "mine",
        "developer": "third",
        "reviewer": "second",
    }
    assert repo.git("log", "-1", "--format=%an", f"iterdev/{repo.folder().name}") == "developer (third)"


@pytest.mark.requirement("R101")
def test_long_findings_are_cut_to_500_characters(repo: Repo) -> None:
    repo.behave(developer={"result": {"findings": "word " * 1000}})

    repo.iterdev("run", "-y", "Fix it")

    assert 400 < len(rows(repo.folder())["DEV-001"]["findings"]) <= 500


@pytest.mark.requirement("R109", "R110")
def test_what_an_agent_hands_in_beside_its_result_reaches_board_wisdom_and_usage(repo: Repo) -> None:
    found = {"type": "convention", "data": {"name": "tabs", "description": "tabs", "example": ""}}
    extra = {
        "discoveries": [found, found],
        "wisdom": {"learnings": ["the tests are slow"], "conventions": ["tabs"]},
        "usage": {"input_tokens": 1200, "output_tokens": 34, "cost_usd": 0.5},
    }
    repo.behave(developer={"result": extra})

    repo.iterdev("run", "-y", "Fix it")

    folder = repo.folder()
    (line,) = (folder / "discoveries.ndjson").read_text(encoding="utf-8").splitlines()
    entry = json.loads(line)
    assert (entry["worker"], entry["type"], entry["data"]["name"]) == ("DEV-001", "convention", "tabs")
    assert "the tests are slow" in (folder / "wisdom" / "learnings.md").read_text(encoding="utf-8")
    assert "tabs" in (folder / "wisdom" / "conventions.md").read_text(encoding="utf-8")
    assert only_document(repo.iterdev("status", "--json"))["usage"] == {
        "input_tokens": 1200,
        "output_tokens": 34,
        "cost_usd": 0.5,
    }


@pytest.mark.hosts
def test_a_used_up_budget_starts_no_further_agent_and_more_money_lets_it_go_on(repo: Repo) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace("[run]", "[run]\nbudget_usd = 1.0"))
    repo.behave(architect={"result": {"usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 2.5}}})

    stopped = repo.iterdev("run", "-y", "--pipeline", "sprint", "Add a greeting")
    calls = [call["task"] for call in repo.calls()]
    repo.write("iterdev.toml", text.replace("[run]", "[run]\nbudget_usd = 10.0"))
    again = repo.iterdev("retry", repo.folder().name)

    assert stopped.returncode == 1
    assert "budget" in stopped.stdout
    assert "$2.5" in stopped.stdout
    assert calls == ["DESIGN-001"]
    assert again.returncode == 0, again.stdout


def test_the_setup_command_runs_once_in_every_new_worktree(repo: Repo) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    setup = 'test = "test -e prepared"\nsetup = "touch prepared; echo prepared > .git-ignored; pwd >> $HOME/prepared"'
    repo.write("iterdev.toml", text.replace('test = "true"', setup))
    repo.write(".gitignore", "prepared\n.git-ignored\n")
    repo.commit("setup")

    done = repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")

    prepared = (repo.home / "prepared").read_text().split()
    assert done.returncode == 0, done.stdout
    assert len(prepared) == len(set(prepared)) >= 1


def test_the_error_of_a_task_is_on_the_bus(repo: Repo) -> None:
    repo.behave(developer={"exit": 3})

    repo.iterdev("run", "-y", "Fix it")

    (message,) = [text for text in messages(repo.folder(), "error") if text.startswith("[developer]")]
    assert "DEV-001" in message
    assert "code 3" in message


def test_doctor_says_what_is_well_and_what_is_not(repo: Repo) -> None:
    well = repo.iterdev("doctor")
    with agent_at_work(repo, "run", "-y", "Fix it") as running:
        running.kill()
    unwell = repo.iterdev("doctor")

    assert well.returncode == 0, well.stdout
    assert unwell.returncode == 1
    assert f"iterdev resume {repo.folder().name}" in unwell.stdout


RUDE = "one\x1b]0;evil\x07two\x1b[2Jthree\rfour\x08five\x9b31msix"


@pytest.mark.parametrize("result", [{"findings": RUDE}, {"status": "failed", "error": RUDE}], ids=["findings", "error"])
def test_neither_an_agent_nor_a_request_can_send_control_codes_to_the_terminal(repo: Repo, result: object) -> None:
    repo.behave(developer={"result": result})

    run = repo.iterdev("run", "-y", "Fix the title\x1b]0;evil\x07")

    looks = [repo.iterdev(command).stdout for command in ("status", "sessions", "report")]
    codes = {code for text in (run.stdout, *looks) for code in text if not code.isprintable() and code != "\n"}
    assert codes == set()
    assert "one" in run.stdout


def test_an_agent_that_fails_cannot_set_the_title_of_the_terminal(repo: Repo) -> None:
    error = "\x1b]0;owned\x07no \x1b[31mluck\x1b[0m"
    repo.behave(developer={"result": {"status": "failed", "error": error}})

    run = repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")

    looks = [repo.iterdev(*words).stdout for words in (["status"], ["report"], ["why", "DEV-001"])]
    assert all("no luck" in text for text in (run.stdout, *looks))
    assert not [text for text in (run.stdout, *looks) for code in ("owned", "[31m", "[0m") if code in text]


def test_times_that_people_read_are_in_their_own_zone(repo: Repo) -> None:
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it", TZ="Asia/Kathmandu")

    zones = {"Asia/Kathmandu": "+05:45", "Pacific/Marquesas": "-09:30"}
    for zone, offset in zones.items():
        texts = [repo.iterdev(*words, TZ=zone).stdout for words in (["report"], ["logs"], ["team", "list"])]
        assert all(offset in text and "+08:00" not in text for text in texts), zone
    assert "+08:00" in (repo.folder() / "context.md").read_text(encoding="utf-8")


def test_sessions_has_one_line_for_each_however_long_the_request_is(repo: Repo) -> None:
    repo.iterdev("run", "Fix the first line\nand the second\n" + "and so on " * 100)
    repo.iterdev("run", "Fix it")

    lines = repo.iterdev("sessions").stdout.splitlines()

    assert len(lines) == 2
    assert all(len(line) < 300 for line in lines)


@pytest.mark.requirement("R4")
def test_a_word_that_contains_a_flag_is_only_a_word(repo: Repo) -> None:
    run = repo.iterdev("run", "Fix check-yaml and the -yes-man of --continued-fractions")

    assert run.returncode == 5
    assert document(repo.folder() / "session.json")["requirement"] == (
        "Fix check-yaml and the -yes-man of --continued-fractions"
    )


def test_diff_update_and_clean_print_one_document_each(repo: Repo) -> None:
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")
    repo.write("users.txt", "mine\n")
    repo.commit()

    plain = repo.iterdev("diff")
    stat = repo.iterdev("diff", "--stat")
    diff = only_document(repo.iterdev("diff", "--json"))
    updated = only_document(repo.iterdev("update", "--json"))
    again = only_document(repo.iterdev("update", "--json"))
    repo.iterdev("accept")
    planned = only_document(repo.iterdev("clean", "--dry-run", "--json"))
    cleaned = repo.iterdev("clean")
    undone = repo.iterdev("clean", "--undo")
    one = only_document(repo.iterdev("clean", "--json", "--session-id", updated["session"]))
    unknown = repo.iterdev("clean", "nothing")

    assert plain.stdout.startswith("diff --git a/DEV-001.txt")
    assert "1 file changed" in stat.stdout
    assert [file["path"] for file in diff["files"]] == ["DEV-001.txt"]
    assert updated["exit_code"] == 0
    assert {"UPDATE-001", "VERIFY-002"} <= {task["id"] for task in updated["tasks"]}
    assert again["updated"] is False
    assert planned["dry_run"] is True
    assert f"refs/heads/{updated['branch']}" in [item["name"] for item in planned["removed"]]
    assert "iterdev clean --undo" in cleaned.stdout
    assert undone.stdout.count("restored refs/") == len(planned["removed"])
    assert one["removed"] == planned["removed"]
    assert (unknown.returncode, 'There is no session "nothing"' in unknown.stderr) == (2, True)
