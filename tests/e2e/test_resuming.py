"""Going on with a session: after a kill, step by step, by its name or without, and never twice at once."""

import re
import signal
import subprocess

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Terminal, agent_at_work
from tests.session_files import document, left_behind, processes, rows, statuses


def killed_at_work(repo: Repo, *options: str, **others: object) -> None:
    """Leaves a session whose engine was killed while the developer of a sprint was in the middle of its work."""
    with agent_at_work(repo, "run", "-y", "--pipeline", "sprint", *options, "Add a greeting", **others) as running:
        running.kill()


def started(repo: Repo) -> list[str]:
    return [str(call["task"]) for call in repo.calls()]


@pytest.mark.requirement("R119", "R123")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_after_a_kill_the_status_is_true_and_resume_runs_only_what_was_not_done(repo: Repo, engine: str) -> None:
    killed_at_work(repo, "--engine", engine)
    session = repo.folder(engine).name

    status = repo.iterdev("status")
    document_of_status = repo.iterdev("status", "--json").stdout
    repo.behave(developer={"write": {"greeting.txt": "hello\n"}})
    resumed = repo.iterdev("resume")

    assert status.returncode == 0
    assert "[DONE] DESIGN-001" in status.stdout
    assert re.search(rf"DEV-001 .*interrupted.*iterdev resume {session}", status.stdout)
    assert "working" not in status.stdout
    assert '"running": false' in document_of_status
    assert resumed.returncode == 0, resumed.stderr
    assert set(statuses(repo.folder(engine)).values()) == {"completed"}
    assert started(repo) == ["DESIGN-001", "DEV-001", "DEV-001", "REVIEW-001"]
    assert [call["attempt"] for call in repo.calls() if call["task"] == "DEV-001"] == [1, 2]
    assert repo.git("ls-tree", "--name-only", f"iterdev/{session}").split() == [
        "README.md",
        "greeting.txt",
        "iterdev.toml",
    ]
    assert left_behind(repo) == []


def test_the_work_of_a_killed_attempt_is_kept(repo: Repo) -> None:
    killed_at_work(repo)
    repo.behave()

    repo.iterdev("resume")

    assert repo.git("show", f"refs/iterdev/{repo.folder().name}/DEV-001/1:half.txt") == "half"


def test_a_killed_engine_takes_its_agents_with_it(repo: Repo) -> None:
    with agent_at_work(repo, "run", "-y", "Fix the greeting") as running:
        before = processes(repo)
        running.kill()

    assert any("agent.py" in line for line in before)
    assert processes(repo) == []


@pytest.mark.requirement("R12")
def test_continue_with_an_id_resumes_exactly_that_session(repo: Repo) -> None:
    repo.iterdev("run", "Fix the first thing")
    repo.iterdev("run", "Fix the second thing")
    first, second = sorted(path.name for path in (repo.path / ".workflow" / ".csv-wave").iterdir())

    run = repo.iterdev("run", "-y", "--continue", first)

    folders = repo.path / ".workflow" / ".csv-wave"
    assert run.returncode == 0, run.stderr
    assert document(folders / first / "session.json")["status"] == "completed"
    assert document(folders / second / "session.json")["status"] == "paused"


@pytest.mark.requirement("R13")
def test_continue_without_an_id_resumes_the_newest_unfinished_session(repo: Repo) -> None:
    repo.iterdev("run", "Fix the first thing")
    repo.iterdev("run", "Fix the second thing")
    repo.iterdev("run", "-y", "Fix the third thing")

    run = repo.iterdev("run", "-y", "--continue")

    folders = repo.path / ".workflow" / ".csv-wave"
    finished = {path.name[:-9]: document(path / "session.json")["status"] for path in folders.iterdir()}
    assert run.returncode == 0, run.stderr
    assert finished == {
        "ids-fix-the-first-thing": "paused",
        "ids-fix-the-second-thing": "completed",
        "ids-fix-the-third-thing": "completed",
    }


@pytest.mark.requirement("R14")
def test_continue_when_nothing_is_unfinished_lists_the_sessions(repo: Repo) -> None:
    nothing = repo.iterdev("run", "--continue")
    repo.iterdev("run", "-y", "Fix it")
    finished = repo.iterdev("run", "--continue")
    unknown = repo.iterdev("run", "--continue", "ids-other-20200101")

    assert nothing.returncode == 2
    assert "no session" in nothing.stderr
    assert 'hint: iterdev run "Add a greeting"' in nothing.stderr
    assert finished.returncode == 2
    assert repo.folder().name in finished.stderr
    assert unknown.returncode == 2
    assert '"ids-other-20200101"' in unknown.stderr
    assert repo.folder().name in unknown.stderr


@pytest.mark.requirement("R14")
def test_in_a_terminal_continue_asks_which_session_when_none_is_unfinished(repo: Repo, terminal: Terminal) -> None:
    repo.iterdev("run", "-y", "Fix it")
    session = repo.folder().name

    terminal.type("iterdev run --continue; echo exit=$?")
    asked = terminal.until("Which session?")
    terminal.type("")
    ended = terminal.until("exit=0")

    assert session in asked
    assert f"{session}: 2 completed" in ended


@pytest.mark.requirement("R120")
def test_in_a_terminal_resume_asks_which_of_several_unfinished_sessions(repo: Repo, terminal: Terminal) -> None:
    repo.iterdev("run", "Fix the first thing")
    repo.iterdev("run", "Fix the second thing")
    first, second = sorted(path.name for path in (repo.path / ".workflow" / ".csv-wave").iterdir())

    terminal.type("iterdev resume -y; echo exit=$?")
    asked = terminal.until("Which session?")
    terminal.type(first)
    terminal.until("exit=0")

    assert second in asked
    folders = repo.path / ".workflow" / ".csv-wave"
    assert document(folders / first / "session.json")["status"] == "completed"
    assert document(folders / second / "session.json")["status"] == "paused"


@pytest.mark.requirement("R120")
def test_without_a_terminal_resume_lists_the_unfinished_sessions_and_takes_none(repo: Repo) -> None:
    repo.iterdev("run", "Fix the first thing")
    repo.iterdev("run", "Fix the second thing")
    folders = repo.path / ".workflow" / ".csv-wave"
    first, second = sorted(path.name for path in folders.iterdir())

    refused = repo.iterdev("resume", "-y")

    assert refused.returncode == 2
    assert f"Several sessions are unfinished: {first}, {second}" in refused.stderr
    assert f"hint: name one: iterdev resume {second}" in refused.stderr
    assert {document(folders / name / "session.json")["status"] for name in (first, second)} == {"paused"}
    assert repo.iterdev("resume", "-y", first).returncode == 0


@pytest.mark.requirement("R15")
def test_continuing_only_adds_to_the_wisdom_and_the_board(repo: Repo) -> None:
    killed_at_work(repo, architect={"result": {"wisdom": {"decisions": ["one file is enough"]}}})
    folder = repo.folder()
    with (folder / "wisdom" / "learnings.md").open("a", encoding="utf-8") as file:
        file.write("- written by a person\n")
    with (folder / "discoveries.ndjson").open("a", encoding="utf-8") as file:
        file.write('{"ts": "t", "worker": "DEV-001", "type": "convention", "data": {"name": "tabs"}}\n')
    names = [
        "discoveries.ndjson",
        *(f"wisdom/{name}.md" for name in ("learnings", "decisions", "conventions", "issues")),
    ]
    before = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    repo.behave(**{"REVIEW-001": {"result": {"wisdom": {"learnings": ["greetings are short"]}}}})

    resumed = repo.iterdev("resume")

    after = {name: (folder / name).read_text(encoding="utf-8") for name in names}
    assert resumed.returncode == 0, resumed.stderr
    assert "one file is enough" in before["wisdom/decisions.md"]
    assert all(after[name].startswith(before[name]) for name in names)
    assert after["wisdom/decisions.md"] == before["wisdom/decisions.md"]
    assert "greetings are short" in after["wisdom/learnings.md"]


def test_a_second_engine_is_refused_naming_the_first(repo: Repo) -> None:
    with agent_at_work(repo, "run", "-y", "Fix the greeting") as running:
        status = repo.iterdev("status")
        refused = repo.iterdev("resume", repo.folder().name)
        continued = repo.iterdev("run", "-y", "--continue")
        accepted = repo.iterdev("accept")
        running.process.send_signal(signal.SIGINT)
        running.end()

    assert "State: running" in status.stdout
    assert "[RUN]" in status.stdout
    assert (refused.returncode, continued.returncode, accepted.returncode) == (2, 2, 2)
    assert str(running.pid) in refused.stderr
    assert str(running.pid) in continued.stderr
    assert "hint: " in refused.stderr
    assert "still running" in accepted.stderr
    assert len(repo.calls()) == 1


def test_two_sessions_of_one_repository_may_run_at_the_same_time(repo: Repo) -> None:
    with agent_at_work(repo, "run", "-y", "Fix the greeting") as running:
        repo.behave(developer={"write": {"other.txt": "x\n"}})
        other = repo.iterdev("run", "-y", "Fix the other thing")
        running.process.send_signal(signal.SIGINT)
        first = running.end()

    assert other.returncode == 0, other.stderr
    assert first.returncode == 130
    assert left_behind(repo) == []


def test_the_same_request_on_the_same_day_gets_a_number(repo: Repo) -> None:
    runs = [repo.iterdev("run", "-y", "Fix the greeting") for _ in range(3)]

    names = sorted(path.name for path in (repo.path / ".workflow" / ".csv-wave").iterdir())
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert names == [names[0], f"{names[0]}-2", f"{names[0]}-3"]
    assert re.fullmatch(r"ids-fix-the-greeting-\d{8}", names[0])
    assert len(repo.git("branch", "--list", "iterdev/*").splitlines()) == 3


@pytest.mark.requirement("R10", "R117")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_step_advances_one_step_at_a_time(repo: Repo, engine: str) -> None:
    repo.iterdev("run", "--engine", engine, "--pipeline", "sprint", "Add a greeting")
    session = repo.folder(engine).name
    repo.iterdev("answer", session, "plan", "approve")

    first = repo.iterdev("resume", "--step", "--wait")
    after_first = statuses(repo.folder(engine))
    second = repo.iterdev("resume", "--step", "--wait")
    after_second = statuses(repo.folder(engine))
    third = repo.iterdev("continue", "--step", "--wait")

    assert (first.returncode, second.returncode, third.returncode) == (0, 0, 0)
    assert [name for name, status in after_first.items() if status == "completed"] == ["DESIGN-001"]
    assert [name for name, status in after_second.items() if status == "completed"] == ["DESIGN-001", "DEV-001"]
    assert set(statuses(repo.folder(engine)).values()) == {"completed"}
    assert "resume" in first.stdout
    assert left_behind(repo) == []


def test_resume_of_a_finished_session_says_so_and_runs_nothing(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix it")
    calls = len(repo.calls())

    again = repo.iterdev("resume", repo.folder().name)

    assert again.returncode == 0
    assert "2 completed, 0 failed, 0 skipped" in again.stdout
    assert len(repo.calls()) == calls


@pytest.mark.requirement("R53", "R67")
def test_a_session_whose_journal_is_gone_goes_on_from_its_table(repo: Repo) -> None:
    killed_at_work(repo)
    for file in (repo.path / ".workflow").glob("iterdev.db*"):
        file.unlink()
    repo.behave(developer={"write": {"greeting.txt": "hello\n"}})

    resumed = repo.iterdev("resume")

    assert resumed.returncode == 0, resumed.stderr
    assert started(repo) == ["DESIGN-001", "DEV-001", "DEV-001", "REVIEW-001"]
    table = rows(repo.folder())
    assert {row["status"] for row in table.values()} == {"completed"}
    assert table["DESIGN-001"]["findings"] == "architect finished DESIGN-001"
    (_, _, prompt, _) = [str(call["prompt"]) for call in repo.calls()]
    assert "architect finished DESIGN-001" in prompt


def test_a_run_from_a_subfolder_is_a_run_of_the_repository(repo: Repo) -> None:
    deep = repo.path / "deep"
    deep.mkdir()

    run = subprocess.run(
        repo.command("run", "-y", "Fix it"), cwd=deep, env=repo.env, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stderr
    assert set(statuses(repo.folder()).values()) == {"completed"}
    assert list(deep.iterdir()) == []
