"""Two engines that share a git remote, a server and a host, and whose sessions have the same id."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Background, eventually
from tests.execution.temporal.test_hosts_that_fail import LONG, PATCH, assert_landed_once, calls_of, outcomes_of
from tests.hosts import Hosts, hosts_of
from tests.temporal_server import TemporalServer

from iterdev.core.session.events import Interrupted

pytestmark = pytest.mark.temporal


@pytest.fixture
def hosts(repo: Repo, server: TemporalServer) -> Iterator[Hosts]:
    with hosts_of(repo, server, "one", lease=LONG) as hosts:
        yield hosts


def clone_of(repo: Repo, hosts: Hosts) -> Repo:
    """A clone of another user, who has a commit of their own."""
    root = hosts.root / "second"
    clone = Repo(root / "project", root / "home")
    shutil.copytree(repo.path, clone.path)
    shutil.copytree(repo.home, clone.home)
    (clone.home / "tmp").mkdir(exist_ok=True)
    clone.env |= hosts.server.environment
    clone.write("second.txt", "of the second user\n")
    clone.commit("a change of the second user")
    return clone


@contextmanager
def both_at_work(repo: Repo, clone: Repo) -> Iterator[tuple[Background, Background]]:
    """The same request of both, whose developers work at the same time; they may end when the test goes on."""
    gate = repo.home / "go"
    repo.behave(**{"DEV-001": {"run": f"while [ ! -e {gate} ]; do sleep 0.1; done"}})
    with ExitStack() as stack:
        first, second = (stack.enter_context(Background(one, *PATCH)) for one in (repo, clone))
        eventually(lambda: calls_of(repo, "DEV-001") == 2, "both developers")
        assert repo.folder().name == clone.folder().name
        gate.touch()
        yield first, second


def refs_on(hosts: Hosts) -> set[str]:
    return {line.split("\t")[1] for line in hosts.repo.git("ls-remote", hosts.remote).splitlines()}


def test_each_gets_its_own_work_and_removes_only_its_own_refs(repo: Repo, hosts: Hosts) -> None:
    clone = clone_of(repo, hosts)
    with both_at_work(repo, clone) as running:
        ended = [one.end() for one in running]

    for one, done in zip((repo, clone), ended, strict=True):
        assert done.returncode == 0, done.stdout + done.stderr
        assert_landed_once(one)
        assert one.git("rev-parse", f"iterdev/{one.folder().name}~1") == one.git("rev-parse", "HEAD")
    before = refs_on(hosts)
    repo.iterdev("archive")
    left = refs_on(hosts)
    clone.iterdev("archive")
    assert len(left) == len(before) // 2
    assert refs_on(hosts) == set()


def test_a_killed_host_keeps_their_work_apart(repo: Repo, hosts: Hosts) -> None:
    clone = clone_of(repo, hosts)
    with both_at_work(repo, clone) as running:
        hosts.kill("one")
        hosts.start("one")
        ended = [one.end() for one in running]

    for one, done in zip((repo, clone), ended, strict=True):
        assert done.returncode == 0, done.stdout + done.stderr
        (first, _) = outcomes_of(one, "DEV-001")
        assert isinstance(first, Interrupted)
        assert one.git("rev-parse", f"{first.commit}~1") == one.git("rev-parse", "HEAD")
        assert_landed_once(one)
