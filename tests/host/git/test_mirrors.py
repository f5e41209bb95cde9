"""Commits on their way between an engine and its hosts, with a real remote."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from subprocess import CompletedProcess

import anyio
import anyio.lowlevel
import pytest
from tests.conftest import Repo

from iterdev.core.errors import HostError
from iterdev.host.git.command import git
from iterdev.host.git.mirrors import (
    Coalesced,
    GitRemote,
    keep_report,
    kept_reports,
    open_mirror,
    read_report,
    remove_refs,
)

REF = "refs/iterdev/s/DEV-001/1"


class Network:
    """An engine's repository, a host's mirror, and the remote between them; every push and fetch is noted."""

    def __init__(self, engine: Path, folder: Path) -> None:
        self.engine, self.host = engine, open_mirror(folder / "mirror.git")
        self.remote = open_mirror(folder / "remote.git")
        self.calls: list[str] = []
        self.of_engine, self.of_host = self.seen_from(engine), self.seen_from(self.host)

    def seen_from(self, top: Path) -> GitRemote:
        return GitRemote(top, str(self.remote), self._run)

    def _run(
        self, *args: str, cwd: Path, stdin: str | None = None, accept: tuple[int, ...] = (0,)
    ) -> CompletedProcess[str]:
        if args[0] in {"push", "fetch"}:
            self.calls.append(args[0])
        return git(*args, cwd=cwd, stdin=stdin, accept=accept)

    def refs(self) -> dict[str, str]:
        listed = git("for-each-ref", "--format=%(refname) %(objectname)", cwd=self.remote).stdout
        return dict(line.split() for line in listed.splitlines())


@pytest.fixture
def network(repo: Repo, tmp_path: Path) -> Network:
    return Network(repo.path, tmp_path / "network")


def commits(repo: Repo, count: int) -> list[str]:
    """A history, the oldest first."""
    made = [repo.git("rev-parse", "HEAD")]
    for number in range(count - 1):
        made.append(repo.git("commit-tree", "HEAD^{tree}", "-p", made[-1], "-m", f"change {number}"))
    return made


def at_once(*calls: Callable[[], Awaitable[None]]) -> None:
    async def all_of_them() -> None:
        async with anyio.create_task_group() as group:
            for call in calls:
                group.start_soon(call)

    anyio.run(all_of_them)


def work(top: Path, base: str, name: str, ref: str = REF) -> str:
    """A commit of an attempt, kept under its ref."""
    made = git(
        *("-c", "user.name=host", "-c", "user.email=host@example.invalid"),
        *("commit-tree", f"{base}^{{tree}}", "-p", base, "-m", name),
        cwd=top,
    ).stdout.strip()
    git("update-ref", ref, made, cwd=top)
    return made


def test_a_commit_goes_to_a_host_and_its_work_comes_back(repo: Repo, network: Network) -> None:
    (base,) = commits(repo, 1)

    at_once(lambda: network.of_engine.publish("s", [base]))
    at_once(lambda: network.of_host.fetch_published("s", [base]))
    made = work(network.host, base, "the work")
    at_once(lambda: network.of_host.push([REF]))
    at_once(lambda: network.of_engine.fetch_work("s", "s", "DEV-001", [made]))

    assert repo.git("log", "-1", "--format=%s", REF) == "the work"
    assert network.calls == ["push", "fetch", "push", "fetch"]


def test_a_mirror_works_also_where_git_refuses_bare_repositories_that_it_comes_upon(
    project: Repo, network: Network
) -> None:
    project.git("config", "--global", "safe.bareRepository", "explicit")
    base = project.git("rev-parse", "HEAD")

    at_once(lambda: network.of_engine.publish("s", [base]))
    at_once(lambda: network.of_host.fetch_published("s", [base]))

    assert git("cat-file", "-t", base, cwd=network.host).stdout == "commit\n"


def test_one_push_serves_all_who_wait_for_a_commit_or_an_earlier_one(repo: Repo, network: Network) -> None:
    made, engine = commits(repo, 30), network.of_engine

    at_once(*(lambda commit=commit: engine.publish("s", [commit]) for commit in made))
    at_once(lambda: network.of_host.fetch_published("s", made))

    assert network.calls.count("push") <= 2
    assert network.calls.count("fetch") == 1


def test_what_is_there_already_is_neither_pushed_nor_fetched_again(repo: Repo, network: Network) -> None:
    older, newer = commits(repo, 2)
    at_once(lambda: network.of_engine.publish("s", [newer]))
    at_once(lambda: network.of_host.fetch_published("s", [newer]))

    at_once(lambda: network.of_engine.publish("s", [older, newer]))
    at_once(lambda: network.of_host.fetch_published("s", [older]))

    assert network.calls == ["push", "fetch"]


def test_the_work_of_many_attempts_takes_few_pushes_and_fetches(repo: Repo, network: Network) -> None:
    (base,) = commits(repo, 1)
    at_once(lambda: network.of_engine.publish("s", [base]))
    at_once(lambda: network.of_host.fetch_published("s", [base]))
    names = [f"DEV-{number:03d}" for number in range(1, 41)]
    made = {name: work(network.host, base, name, f"refs/iterdev/s/{name}/1") for name in names}
    network.calls.clear()

    at_once(*(lambda name=name: network.of_host.push([f"refs/iterdev/s/{name}/1"]) for name in names))
    at_once(*(lambda name=name: network.of_engine.fetch_work("s", "s", name, [made[name]]) for name in names))

    assert [repo.git("rev-parse", f"refs/iterdev/s/{name}/1") for name in names] == list(made.values())
    assert network.calls.count("push") <= 2
    assert network.calls.count("fetch") <= 2


def test_a_ref_that_is_taken_stays_and_the_other_work_is_put_beside_it(repo: Repo, network: Network) -> None:
    (base,) = commits(repo, 1)
    first = work(repo.path, base, "first")
    at_once(lambda: network.of_engine.push([REF]))
    second = work(repo.path, first, "on top of the first")

    at_once(lambda: network.of_engine.push([REF]))
    at_once(lambda: network.of_engine.push([REF]))

    assert network.refs() == {REF: first, f"{REF}-{second[:12]}": second}


def test_a_report_goes_with_the_work(repo: Repo, network: Network) -> None:
    (base,) = commits(repo, 1)
    made = work(repo.path, base, "the work")
    name, report = keep_report(repo.path, REF, b'{"host":"builder-1"}')

    at_once(lambda: network.of_engine.push([REF, name]))
    at_once(lambda: network.of_host.fetch_work("s", "s", "DEV-001", [made]))

    assert read_report(network.host, report) == b'{"host":"builder-1"}'
    assert network.calls == ["push", "fetch"]
    assert anyio.run(network.of_host.report_ids, REF) == [report]
    assert anyio.run(network.of_host.report_ids, "refs/iterdev/s/DEV-002/1") == []


def test_no_ref_of_the_repository_leads_to_a_report_that_was_fetched(repo: Repo, network: Network) -> None:
    (base,) = commits(repo, 1)
    work(repo.path, base, "the work")
    name, _ = keep_report(repo.path, REF, b"a report")
    at_once(lambda: network.of_engine.push([REF, name]))

    at_once(lambda: network.of_host.fetch_work("s", "s", "DEV-001", []))

    assert git("for-each-ref", "--format=%(refname)", "refs/iterdev/", cwd=network.host).stdout.split() == [REF]


def test_work_of_before_the_journal_was_lost_stays_beside_that_of_an_attempt_with_the_same_number(
    repo: Repo, network: Network
) -> None:
    (base,) = commits(repo, 1)
    old = work(repo.path, base, "before")
    at_once(lambda: network.of_engine.publish("s@2", [base]))
    at_once(lambda: network.of_host.fetch_published("s@2", [base]))
    new = work(network.host, base, "after", "refs/iterdev/s@2/DEV-001/1")
    at_once(lambda: network.of_host.push(["refs/iterdev/s@2/DEV-001/1"]))

    for _ in range(2):
        at_once(lambda: network.of_engine.fetch_work("s@2", "s", "DEV-001", [new]))

    listed = repo.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/iterdev/s/", "refs/iterdev-fetched/")
    assert listed.splitlines() == [f"{REF} {new}", f"{REF}-{old[:12]} {old}"]


def test_a_second_report_on_an_attempt_does_not_replace_the_first(repo: Repo) -> None:
    (first, _) = keep_report(repo.path, REF, b"first")

    (again, _), (second, _) = keep_report(repo.path, REF, b"first"), keep_report(repo.path, REF, b"second")

    assert first == again == "refs/iterdev/s/_reports/DEV-001/1"
    assert second.startswith(f"{first}-")
    assert kept_reports(repo.path, REF) == [b"first", b"second"]


def test_refs_of_a_session_are_removed_except_what_is_nowhere_else(repo: Repo, network: Network) -> None:
    (base,) = commits(repo, 1)
    at_once(lambda: network.of_engine.publish("s", [base]), lambda: network.of_engine.publish("other", [base]))
    at_once(lambda: network.of_host.fetch_published("s", [base]))
    late = work(network.host, base, "came too late")
    at_once(lambda: network.of_host.push([REF]))

    remove_refs(repo.path, str(network.remote), "s")

    assert network.refs() == {REF: late, f"refs/iterdev/other/_given/{base}": base}


def test_work_that_is_not_on_the_remote_is_named(repo: Repo, network: Network) -> None:
    with pytest.raises(HostError, match=f"has no {'c' * 40} under refs/iterdev/s/DEV-001/"):
        anyio.run(network.of_engine.fetch_work, "s", "s", "DEV-001", ["c" * 40])


def test_a_remote_that_cannot_be_reached_is_an_error_and_the_next_try_succeeds(repo: Repo, network: Network) -> None:
    (base,) = commits(repo, 1)
    away = network.remote.with_name("away.git")
    network.remote.rename(away)
    with pytest.raises(HostError, match="git push"):
        anyio.run(network.of_engine.publish, "s", [base])
    away.rename(network.remote)

    anyio.run(network.of_engine.publish, "s", [base])

    assert list(network.refs().values()) == [base]


def test_one_that_fails_does_not_fail_for_the_others() -> None:
    calls: list[tuple[int, ...]] = []
    ended: list[int] = []

    async def act(items: tuple[int, ...]) -> None:
        calls.append(items)
        await anyio.lowlevel.checkpoint()
        if 2 in items:
            raise HostError("no", hint="")

    async def run() -> None:
        coalesced = Coalesced(act)

        async def one(item: int) -> None:
            try:
                await coalesced.do(item)
                ended.append(item)
            except HostError:
                ended.append(-item)

        async with anyio.create_task_group() as group:
            for item in range(4):
                group.start_soon(one, item)

    anyio.run(run)

    assert sorted(ended) == [-2, 0, 1, 3]
    assert calls == [(0, 1, 2, 3), (0,), (1,), (2,), (3,)]


def test_after_a_call_with_several_the_next_one_waits_for_more() -> None:
    calls: list[tuple[int, ...]] = []

    async def act(items: tuple[int, ...]) -> None:
        calls.append(items)

    async def run() -> None:
        time_has_come = anyio.Event()

        async def sleep_until(_: float) -> None:
            await time_has_come.wait()

        coalesced = Coalesced(act, 0.2, sleep_until)
        for item in (0, 1):
            await coalesced.do(item)
        async with anyio.create_task_group() as group:
            for item in (2, 3):
                group.start_soon(coalesced.do, item)
        async with anyio.create_task_group() as group:
            for item in (4, 5):
                group.start_soon(coalesced.do, item)
                await anyio.wait_all_tasks_blocked()
            time_has_come.set()

    anyio.run(run)

    assert calls == [(0,), (1,), (2, 3), (4, 5)]


def test_who_waits_for_one_that_is_cancelled_is_served() -> None:
    served: list[tuple[int, ...]] = []

    async def run() -> None:
        first = anyio.CancelScope()

        async def act(items: tuple[int, ...]) -> None:
            if not first.cancel_called:
                first.cancel()
                await anyio.sleep_forever()
            served.append(items)

        coalesced = Coalesced(act)

        async def cancelled() -> None:
            with first:
                await coalesced.do(1)

        async with anyio.create_task_group() as group:
            group.start_soon(cancelled)
            group.start_soon(coalesced.do, 2)
            group.start_soon(coalesced.do, 3)

    anyio.run(run)

    assert served == [(1, 2, 3)]


def test_each_session_has_what_it_needs_under_refs_of_its_own(repo: Repo, network: Network) -> None:
    (base,) = commits(repo, 1)

    at_once(lambda: network.of_engine.publish("s", [base]), lambda: network.of_engine.publish("t", [base]))

    assert list(network.refs()) == [f"refs/iterdev/s/_given/{base}", f"refs/iterdev/t/_given/{base}"]
    assert network.calls == ["push"]


def test_a_commit_whose_files_are_not_there_yet_is_fetched(network: Network, repo: Repo) -> None:
    repo.write("new.txt", "new\n")
    commit = repo.commit()
    anyio.run(network.of_engine.publish, "s", [commit])
    # As a fetch leaves it that was killed: what comes first in a pack is written first.
    text = repo.git("cat-file", "commit", commit) + "\n"
    assert git("hash-object", "-t", "commit", "-w", "--stdin", cwd=network.host, stdin=text).stdout.strip() == commit

    anyio.run(network.of_host.fetch_published, "s", [commit])

    assert git("show", f"{commit}:new.txt", cwd=network.host).stdout == "new\n"
