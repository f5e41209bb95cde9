"""Sessions whose attempts run on hosts, through a real Temporal server and a git remote."""

import signal
import sys
from collections.abc import Iterator

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Background, eventually
from tests.hosts import Hosts, hosts_of, journal_of
from tests.session_files import left_behind, statuses
from tests.temporal_server import TemporalServer

from iterdev.core.session.events import AttemptEnded, AttemptPlaced, Interrupted

PATCH = ("run", "-y", "--pipeline", "patch", "Fix it")


@pytest.fixture
def hosts(repo: Repo, server: TemporalServer) -> Iterator[Hosts]:
    with hosts_of(repo, server, "one") as running:
        yield running


@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_sprint_with_a_fix_round_runs_on_hosts(repo: Repo, hosts: Hosts, engine: str) -> None:
    low = dict.fromkeys(("correctness", "completeness", "maintainability", "security"), 5)
    repo.behave(**{"REVIEW-001": {"result": {"scores": low}}})

    done = repo.iterdev("run", "-y", "--engine", engine, "--pipeline", "sprint", "Add a greeting")

    session = repo.folder(engine).name
    landed = repo.git("ls-tree", "--name-only", f"iterdev/{session}").splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"DEV-001.txt", "DEV-fix-1.txt"} <= set(landed)
    assert [call["task"] for call in repo.calls()].count("REVIEW-002") == 1
    assert left_behind(repo) == []


def test_what_an_agent_on_a_host_says_and_does_with_tools_and_board_comes_back(repo: Repo, hosts: Hosts) -> None:
    found = '{"ts": "2026-01-01T00:00:00Z", "worker": "DEV-001", "type": "convention", "data": {"name": "tabs"}}'
    tell = f"{sys.executable} -m iterdev team log --summary 'half done'"
    look = "test -f $ITERDEV_SESSION_DIR/tasks.csv"
    run = f"echo working on it && {look} && {tell} && echo '{found}' >> $ITERDEV_SESSION_DIR/discoveries.ndjson"
    repo.behave(**{"DEV-001": {"run": run}})

    done = repo.iterdev(*PATCH)

    folder = repo.folder()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "working on it" in (folder / "logs" / "DEV-001-1.log").read_text()
    assert "[developer] half done" in (folder / ".msg" / "messages.jsonl").read_text()
    assert '"name": "tabs"' in (folder / "discoveries.ndjson").read_text()


def test_work_of_an_attempt_that_failed_is_kept(repo: Repo, hosts: Hosts) -> None:
    repo.behave(**{"DEV-001": {"write": {"half.txt": "half"}, "result": {"status": "failed", "error": "no"}}})

    repo.iterdev(*PATCH)

    folder = repo.folder()
    assert statuses(folder)["DEV-001"] == "failed"
    assert repo.git("show", f"refs/iterdev/{folder.name}/DEV-001/1:half.txt") == "half"


def test_the_host_of_an_attempt_is_in_the_journal(repo: Repo, hosts: Hosts) -> None:
    repo.behave(**{"DEV-001": {"sleep": 600}})

    with Background(repo, *PATCH) as running:
        placed = eventually(lambda: [event.host for event in journal_of(repo, AttemptPlaced)], "the placement")
        running.process.send_signal(signal.SIGINT)
        done = running.end()

    assert placed == ["one"]
    assert done.returncode == 130, done.stdout + done.stderr
    # The agent was ended, and its attempt reported.
    (ended,) = journal_of(repo, AttemptEnded)
    assert isinstance(ended.outcome, Interrupted)
    assert repo.git("show", f"{ended.outcome.commit}:DEV-001.txt") == "DEV-001 attempt 1"
