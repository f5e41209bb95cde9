"""Kill points on both sides: wherever a host or an engine is killed, the work lands once, and no agent is doubled."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.clis import alive
from tests.conftest import Repo
from tests.e2e.conftest import Background, eventually
from tests.execution.temporal.test_hosts_that_fail import LONG, PATCH, assert_landed_once, calls_of
from tests.hosts import Hosts, hosts_of, journal_of
from tests.temporal_server import TemporalServer

from iterdev.core.session.events import AttemptStarted

pytestmark = pytest.mark.temporal

NO_AGENT_YET = (("after", "note order"), ("after", "borrow workspace"), ("before", "ask agent"))
AT_WORK = (("before", "commit"), ("after", "commit"), ("after", "return workspace"))
HANDED_IN = (("after", "keep report"), ("after", "push work"), ("after", "report"))
IN_ENGINE = (
    *(("before", "publish"), ("after", "publish"), ("before", "submit"), ("after", "submit")),
    *(("before", "fetch work"), ("after", "fetch work"), ("before", "land"), ("after", "land")),
)


@pytest.fixture
def hosts(repo: Repo, server: TemporalServer) -> Iterator[Hosts]:
    with hosts_of(repo, server, lease=LONG) as none_yet:
        yield none_yet


@pytest.mark.parametrize("point", [*NO_AGENT_YET, *AT_WORK, *HANDED_IN], ids=" ".join)
def test_a_host_that_is_killed_at_any_point_loses_nothing(repo: Repo, hosts: Hosts, point: tuple[str, str]) -> None:
    hosts.start("one", module="tests.execution.temporal.killed", words=("host", *point))
    hosts.wait()

    with Background(repo, *PATCH) as running:
        killed = hosts.processes.pop("one")
        assert killed.wait(60) == -signal.SIGKILL, hosts.log("one")
        eventually(lambda: not alive(str(hosts.root / "one")), "the end of its processes")
        hosts.start("one")
        done = running.end()

    assert done.returncode == 0, done.stdout + done.stderr
    assert_landed_once(repo)
    # Work that was handed in is not done again.
    assert calls_of(repo, "DEV-001") == (2 if point in AT_WORK else 1)


@pytest.mark.parametrize("point", IN_ENGINE, ids=" ".join)
def test_an_engine_that_is_killed_at_any_point_finds_its_attempts_again(
    repo: Repo, hosts: Hosts, point: tuple[str, str]
) -> None:
    hosts.start("one")
    hosts.wait()
    argv = [sys.executable, "-m", "tests.execution.temporal.killed", "engine", *point]

    killed = subprocess.run(argv, cwd=repo.path, env=hosts.with_tests, capture_output=True, text=True, check=False)
    done = repo.iterdev("resume")

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert_landed_once(repo)
    assert calls_of(repo, "DEV-001") == 1
    assert [event.task for event in journal_of(repo, AttemptStarted)] == ["DEV-001", "VERIFY-001"]
