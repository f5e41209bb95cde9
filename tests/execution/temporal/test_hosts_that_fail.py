"""A host, the engine or the server is killed while agents are at work: nothing is lost, nothing lands twice."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import temporal_server
from tests.conftest import Repo
from tests.e2e.conftest import Background, eventually
from tests.hosts import Hosts, hosts_of, journal_of
from tests.session_files import statuses
from tests.temporal_server import TemporalServer

from iterdev.core.session.events import AttemptEnded, AttemptPlaced, AttemptStarted, Interrupted, Landed

pytestmark = pytest.mark.temporal

PATCH = ("run", "-y", "--pipeline", "patch", "Fix it")
LONG = 300.0
"""Seconds of a lease that does not end in a test."""
SHORT = 6.0

Start = Callable[..., Hosts]


@pytest.fixture
def started(repo: Repo, server: TemporalServer) -> Iterator[Start]:
    open_hosts = []

    def start(*names: str, lease: float) -> Hosts:
        context = hosts_of(repo, server, *names, lease=lease)
        hosts = context.__enter__()
        open_hosts.append(context)
        return hosts

    yield start
    for context in open_hosts:
        context.__exit__(None, None, None)


class OwnServer:
    """A server that a test may kill, and start again with what it knew."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self._port = folder, temporal_server.free_port()
        self.start()

    def start(self) -> None:
        self.server = temporal_server.start(self._folder, self._port)


@contextmanager
def developer_at_work(repo: Repo) -> Iterator[tuple[Background, Path]]:
    """A run whose developer has been called, and goes on when the file is there."""
    gate = repo.home / "go"
    repo.behave(**{"DEV-001": {"run": f"while [ ! -e {gate} ]; do sleep 0.1; done"}})
    with Background(repo, *PATCH) as running:
        running.until_agent_works_on("DEV-001")
        yield running, gate


def calls_of(repo: Repo, task: str) -> int:
    return [call["task"] for call in repo.calls()].count(task)


def outcomes_of(repo: Repo, task: str) -> list[object]:
    return [event.outcome for event in journal_of(repo, AttemptEnded) if event.task == task]


def assert_landed_once(repo: Repo) -> None:
    folder = repo.folder()
    assert statuses(folder) == {"DEV-001": "completed", "VERIFY-001": "completed"}
    assert [event.task for event in journal_of(repo, Landed)] == ["DEV-001"]
    assert repo.git("log", "--format=%s", f"main..iterdev/{folder.name}").splitlines() == ["DEV-001: Fix it"]


def test_an_attempt_goes_on_without_its_engine_and_the_next_one_takes_it_up(repo: Repo, started: Start) -> None:
    started("one", lease=LONG)
    with developer_at_work(repo) as (running, gate):
        running.process.kill()
        running.process.wait()
        gate.touch()

        done = repo.iterdev("resume")

    assert done.returncode == 0, done.stdout + done.stderr
    assert calls_of(repo, "DEV-001") == 1
    assert [event.task for event in journal_of(repo, AttemptStarted)] == ["DEV-001", "VERIFY-001"]
    assert_landed_once(repo)


def test_an_engine_that_is_terminated_leaves_its_attempts_running(repo: Repo, started: Start) -> None:
    started("one", lease=LONG)
    with developer_at_work(repo) as (running, gate):
        running.process.send_signal(signal.SIGTERM)
        ended = running.end()
        gate.touch()

        done = repo.iterdev("resume")

    assert "the agents go on, and are found again" in ended.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert calls_of(repo, "DEV-001") == 1
    assert_landed_once(repo)


def test_a_report_that_came_while_no_engine_was_there_is_found(repo: Repo, started: Start) -> None:
    hosts = started("one", lease=LONG)
    with developer_at_work(repo) as (running, gate):
        running.process.kill()
        running.process.wait()
        gate.touch()
        eventually(lambda: "_reports/DEV-001/1" in repo.git("ls-remote", hosts.remote), "the report")

    done = repo.iterdev("resume")

    assert done.returncode == 0, done.stdout + done.stderr
    assert calls_of(repo, "DEV-001") == 1
    assert_landed_once(repo)


def test_a_worker_that_is_killed_and_started_again_reports_what_its_agents_had_done(repo: Repo, started: Start) -> None:
    hosts = started("one", lease=LONG)
    with developer_at_work(repo) as (running, gate):
        gate.touch()
        hosts.kill("one")
        hosts.start("one")
        done = running.end()

    first, _ = outcomes_of(repo, "DEV-001")
    assert done.returncode == 0, done.stdout + done.stderr
    assert isinstance(first, Interrupted)
    assert repo.git("show", f"{first.commit}:DEV-001.txt") == "DEV-001 attempt 1"
    assert repo.git("show", f"iterdev/{repo.folder().name}:DEV-001.txt") == "DEV-001 attempt 2"
    assert_landed_once(repo)


def test_the_attempts_of_a_host_that_is_gone_are_made_again_by_another(repo: Repo, started: Start) -> None:
    hosts = started("one", lease=SHORT)
    with developer_at_work(repo) as (running, gate):
        eventually(lambda: journal_of(repo, AttemptPlaced), "the placement")
        gate.touch()
        hosts.kill("one")
        hosts.start("two")
        done = running.end()

    first, _ = outcomes_of(repo, "DEV-001")
    assert done.returncode == 0, done.stdout + done.stderr
    assert first == Interrupted(host_died=True)
    assert next(event.host for event in journal_of(repo, AttemptPlaced)) == "one"
    assert_landed_once(repo)


def test_a_host_that_is_stopped_in_order_hands_its_work_over_at_once(repo: Repo, started: Start) -> None:
    hosts = started("one", "two", lease=LONG)
    with developer_at_work(repo) as (running, gate):
        (place,) = eventually(lambda: journal_of(repo, AttemptPlaced), "the placement")
        gate.touch()
        hosts.processes[place.host].send_signal(signal.SIGTERM)
        done = running.end()

    first, _ = outcomes_of(repo, "DEV-001")
    assert done.returncode == 0, done.stdout + done.stderr
    assert isinstance(first, Interrupted)
    assert_landed_once(repo)


def test_a_host_that_drains_ends_its_attempts_and_takes_no_more(repo: Repo, started: Start) -> None:
    hosts = started("one", lease=LONG)
    with developer_at_work(repo) as (running, gate):
        draining = hosts.processes.pop("one")
        draining.send_signal(signal.SIGUSR1)
        hosts.start("two")
        hosts.wait()
        gate.touch()
        done = running.end()

    assert done.returncode == 0, done.stdout + done.stderr
    assert draining.wait(30) == 0
    assert calls_of(repo, "DEV-001") == 1
    assert_landed_once(repo)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[OwnServer]:
    own = OwnServer(tmp_path / "server")
    yield own
    own.server.kill()


def test_a_server_that_is_killed_and_comes_back_costs_nothing(repo: Repo, own_server: OwnServer) -> None:
    with hosts_of(repo, own_server.server, "one", lease=60), developer_at_work(repo) as (running, gate):
        own_server.server.kill()
        gate.touch()
        own_server.start()
        done = running.end()

    assert done.returncode == 0, done.stdout + done.stderr
    assert calls_of(repo, "DEV-001") == 1
    assert_landed_once(repo)


def test_a_host_that_cannot_reach_the_server_ends_its_agents_when_its_lease_is_over(
    repo: Repo, own_server: OwnServer
) -> None:
    with hosts_of(repo, own_server.server, "one", lease=SHORT) as hosts, developer_at_work(repo):
        own_server.server.kill()

        eventually(lambda: not hosts.agents("one"), "the end of the agent")

        is_there = hosts.processes["one"].poll() is None
        hosts.kill("one")
    assert is_there
