"""Engines in the background: they outlive what started them, wait at questions, and are stopped by a signal."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Background, Terminal, eventually
from tests.session_files import left_behind, processes, statuses


class Detached:
    """A repository whose sessions run in the background."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.pids: set[int] = set()

    def start(self, *words: str) -> str:
        """The id that `iterdev run --detach` prints."""
        started = self.repo.iterdev("run", "--detach", "--pipeline", "patch", *words, "Fix it")
        assert started.returncode == 0, started.stderr
        return started.stdout.strip()

    def status(self) -> dict[str, object]:
        document: dict[str, object] = json.loads(self.repo.iterdev("status", "--json").stdout)
        if isinstance(pid := document["process"], int):
            self.pids.add(pid)
        return document

    def pid(self) -> int:
        """The process of the living engine."""
        return eventually(lambda: self.status()["process"] and max(self.pids), "an engine in the background")

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the engine, and waits until nothing is left of it."""
        os.kill(self.pid(), number)
        eventually(lambda: not processes(self.repo), "the end of the engine and its processes")

    def until_done(self) -> None:
        eventually(lambda: self.status()["phase"] == "completed", "the end of the session")
        eventually(lambda: not processes(self.repo), "the end of the engine")


@pytest.fixture
def detached(repo: Repo) -> Iterator[Detached]:
    made = Detached(repo)
    yield made
    for pid in made.pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_run_in_the_background_waits_at_a_question_and_goes_on_when_it_is_answered(detached: Detached) -> None:
    repo = detached.repo
    session = detached.start()
    pid = detached.pid()

    again = repo.iterdev("resume")
    shown = repo.iterdev("status").stdout
    answered = repo.iterdev("answer", session, "plan", "approve")
    detached.until_done()

    assert session == repo.folder().name
    assert (again.returncode, f"stop it with `kill {pid}`" in again.stderr) == (2, True)
    assert f"State: running in the background, waiting for an answer; stop it with `kill {pid}`" in shown
    assert answered.stdout == "plan: approve\n"
    assert detached.pids == {pid}
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}
    assert left_behind(repo) == []


def test_an_engine_in_the_background_outlives_its_terminal_and_is_stopped_in_order(detached: Detached) -> None:
    repo = detached.repo
    repo.behave(developer={"write": {"half.txt": "half\n"}, "sleep": 600})
    with closing(Terminal(repo)) as terminal:
        terminal.type("iterdev run --detach -y --pipeline patch 'Fix it'; echo exit=$?")
        terminal.until("Stop it with: kill", "exit=0")
        terminal.press("C-c")
    eventually(repo.calls, "the agent")
    working = detached.status()["running"]

    detached.signal(signal.SIGTERM)

    session = repo.folder().name
    assert working is True
    assert repo.git("show", f"refs/iterdev/{session}/DEV-001/1:half.txt") == "half"
    assert "interrupted" in repo.iterdev("status").stdout
    assert left_behind(repo) == []


def test_after_kill_9_nothing_is_left_and_the_session_goes_on_in_the_background(detached: Detached) -> None:
    repo = detached.repo
    repo.behave(**{"DEV-001#1": {"sleep": 600}})
    detached.start("-y")
    eventually(repo.calls, "the agent")

    detached.signal(signal.SIGKILL)
    resumed = repo.iterdev("resume", "--detach", "--json")
    detached.until_done()

    document = json.loads(resumed.stdout)
    assert (document["session"], document["detached"]) == (repo.folder().name, True)
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}
    assert left_behind(repo) == []


def test_an_answer_starts_an_engine_in_the_background_again_that_has_given_up_waiting(detached: Detached) -> None:
    repo = detached.repo
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", settings + "\n[limits]\ngate = 0.01\n")
    session = detached.start()
    eventually(lambda: not processes(repo), "the end of the engine that waited")
    waiting = detached.status()

    answered = repo.iterdev("answer", session, "plan", "approve")
    detached.until_done()

    assert (waiting["phase"], waiting["running"]) == ("paused", False)
    assert answered.stdout.endswith(f"It continues in the background; follow it with: iterdev follow {session}\n")
    assert statuses(repo.folder())["VERIFY-001"] == "completed"


def test_modules_of_the_repository_are_not_taken_for_those_of_iterdev(detached: Detached) -> None:
    detached.repo.write("anyio.py", "raise SystemExit('mine')\n")
    detached.repo.commit("a module")

    detached.start("-y")
    detached.until_done()

    assert statuses(detached.repo.folder())["VERIFY-001"] == "completed"


@pytest.mark.parametrize("words", [["run", "--role", "developer", "Fix it"], ["resume", "--step"]])
def test_a_part_of_a_session_cannot_run_in_the_background(repo: Repo, words: list[str]) -> None:
    refused = repo.iterdev(*words, "--detach")

    assert (refused.returncode, "exclude each other" in refused.stderr) == (2, True)


def test_a_run_in_the_background_is_followed_to_its_question_and_to_its_end(detached: Detached) -> None:
    repo = detached.repo
    session = detached.start()

    to_question = repo.iterdev("follow", "--until", "question")
    with Background(repo, "follow", session, "--json") as following:
        repo.iterdev("answer", session, "plan", "approve")
        to_end = following.end()

    document = json.loads(to_end.stdout)
    lines = to_question.stdout.splitlines()
    assert to_question.returncode == 5
    assert lines[-1].endswith(f"Answer with: iterdev answer {session} plan approve|reject")
    assert lines[0].endswith(f"session {session}: Fix it")
    assert lines[1].endswith(", in the background")
    assert (to_end.returncode, document["ending"], document["exit_code"]) == (0, "over", 0)
    assert document["events"][-1]["text"] == "finished: 2 completed"
    assert [json.loads(line.removeprefix(",")) for line in to_end.stdout.splitlines()[1:-1]] == document["events"]


def test_following_in_a_terminal_goes_on_over_a_question_and_ends_with_a_killed_engine(
    detached: Detached, terminal: Terminal
) -> None:
    repo = detached.repo
    repo.behave(developer={"sleep": 600})
    session = detached.start()
    terminal.type("iterdev follow; echo exit=$?")
    terminal.until("question: Run these tasks?")
    repo.iterdev("answer", session, "plan", "approve")
    terminal.until("DEV-001 started (developer, mine, attempt 1)")

    os.kill(detached.pid(), signal.SIGKILL)

    screen = terminal.until("exit=130")
    assert f"No engine is running. Continue with: iterdev resume {session}" in " ".join(screen.split())
    terminal.type("clear")
    eventually(lambda: not [line for line in processes(repo) if "agent.py" in line], "the end of the agent")
