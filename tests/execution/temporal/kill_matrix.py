"""Kills a host or an engine at an effect of a session on hosts, has the session go on, and says what is wrong then.

    python -m tests.execution.temporal.kill_matrix [FIRST [STEP]]

runs a session that notes the effects of both sides, and then one for each kill point: before and after each effect of
the host, of the host with its supervisor, of the host that is started after a kill, and of the engine. With numbers, it
tries only FIRST, FIRST + STEP, ...
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from msgspec import Struct
from tests import temporal_server
from tests.clis import alive
from tests.conftest import Repo, make_repo
from tests.e2e.conftest import PATIENCE, Background, eventually
from tests.hosts import Hosts, hosts_of, journal_of
from tests.session_files import left_behind, statuses
from tests.temporal_server import TemporalServer

from iterdev.core.session.events import AttemptEnded, AttemptStarted, Landed
from iterdev.engine.repository import Repository

MODULE = "tests.execution.temporal.killed"
PATCH = ("run", "-y", "--pipeline", "patch", "Fix it")
LONG = 300.0
"""Seconds of a lease that does not end meanwhile."""
SHORT = 12.0
"""For an order of which nothing is known but to the server, which gives it to the next host when this is over."""
HOST, WITH_SUPERVISOR, ENGINE = "host", "host-with-supervisor", "engine"
NEXT_HOST = "next-host"
"""The one that finds what a killed host has left."""
NOT_NOTED = [(who, "before", "note order") for who in (HOST, WITH_SUPERVISOR)]
OF_NEXT_HOST = ("keep leftover work", "keep report", "push work", "report", "forget order")


class NotReached(AssertionError):
    """The session came to its end without this effect, as one may that depends on time."""


class KillPoint(Struct, frozen=True):
    who: str
    when: str
    effect: str

    def __str__(self) -> str:
        return f"{self.who} {self.when} {self.effect}"


class PassedEffects(Struct, frozen=True):
    """Those of an undisturbed session, each once, in their order."""

    of_host: Sequence[str]
    of_engine: Sequence[str]

    def kill_points(self) -> list[KillPoint]:
        pairs = [(HOST, self.of_host), (WITH_SUPERVISOR, self.of_host), (NEXT_HOST, OF_NEXT_HOST)]
        pairs.append((ENGINE, self.of_engine))
        return [KillPoint(who, *one) for who, effects in pairs for one in product(("before", "after"), effects)]


@contextmanager
def _hosts(repo: Repo, server: TemporalServer, *, lease: float = LONG) -> Iterator[Hosts]:
    with hosts_of(repo, server, lease=lease) as hosts:
        file = repo.path / "iterdev.toml"
        file.write_text(file.read_text().replace("[project]", '[project]\nsetup = "true"'))
        yield hosts


def passed_effects(repo: Repo, server: TemporalServer) -> PassedEffects:
    notes = {who: repo.home.parent / f"effects of {who}" for who in (HOST, ENGINE)}
    with _hosts(repo, server) as hosts:
        hosts.start("one", module=MODULE, words=(HOST, "noting", str(notes[HOST])))
        hosts.wait()
        engine = _engine(repo, hosts, "noting", str(notes[ENGINE]))
        assert engine.returncode == 0, engine.stderr
    of_host, of_engine = (tuple(dict.fromkeys(note.read_text().splitlines())) for note in notes.values())
    return PassedEffects(of_host, of_engine)


def problems(repo: Repo, server: TemporalServer, point: KillPoint) -> list[str]:
    """What is wrong when the session is over."""
    lease = SHORT if (point.who, point.when, point.effect) in NOT_NOTED else LONG
    with _hosts(repo, server, lease=lease) as hosts:
        done = _with_killed_engine(repo, hosts, point) if point.who == ENGINE else _with_killed_host(repo, hosts, point)
        of_session = list(_of_session(repo, done, point))
        of_engine = [f"left: {one}" for one in left_behind(repo) if not one.startswith("process")]
    return [*of_session, *of_engine, *_left_on_host(hosts)]


def _with_killed_host(repo: Repo, hosts: Hosts, point: KillPoint) -> subprocess.CompletedProcess[str]:
    at_work, this = (HOST, "before", "commit"), (point.who, point.when, point.effect)
    first, *others = [at_work, this] if point.who == NEXT_HOST else [this]
    hosts.start("one", module=MODULE, words=first)
    hosts.wait()
    with Background(repo, *PATCH) as running:
        _until_killed(hosts, point)
        for words in others:
            hosts.start("one", module=MODULE, words=words)
            _until_killed(hosts, point)
        hosts.start("one")
        return running.end()


def _until_killed(hosts: Hosts, point: KillPoint) -> None:
    status = hosts.processes.pop("one").wait(PATIENCE)
    assert status == -signal.SIGKILL, f"not killed {point}: {hosts.log('one')}"
    eventually(lambda: not alive(str(hosts.root / "one")), "the end of its processes")


def _with_killed_engine(repo: Repo, hosts: Hosts, point: KillPoint) -> subprocess.CompletedProcess[str]:
    hosts.start("one")
    hosts.wait()
    killed = _engine(repo, hosts, point.when, point.effect)
    if killed.returncode == 0:
        raise NotReached(f"{point} was not reached")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    # After its last effect there is nothing left to resume.
    return repo.iterdev("resume") if _is_unfinished(repo) else subprocess.CompletedProcess([], 0, "", "")


def _is_unfinished(repo: Repo) -> bool:
    repository = Repository(repo.path)
    try:
        return bool(repository.unfinished() or repository.incomplete())
    finally:
        repository.close()


def _engine(repo: Repo, hosts: Hosts, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", MODULE, ENGINE, *words]
    return subprocess.run(argv, cwd=repo.path, env=hosts.with_tests, capture_output=True, text=True, check=False)


def _of_session(repo: Repo, done: subprocess.CompletedProcess[str], point: KillPoint) -> Iterator[str]:
    folder = repo.folder()
    if done.returncode:
        yield f"exit code {done.returncode}: {done.stdout}{done.stderr}"
    if (found := statuses(folder)) != {"DEV-001": "completed", "VERIFY-001": "completed"}:
        yield f"the tasks are {found}"
    if (landed := [event.task for event in journal_of(repo, Landed)]) != ["DEV-001"]:
        yield f"landed: {landed}"
    if (log := repo.git("log", "--format=%s", f"main..iterdev/{folder.name}")) != "DEV-001: Fix it":
        yield f"on the branch: {log}"
    started, ended = journal_of(repo, AttemptStarted), journal_of(repo, AttemptEnded)
    if Counter(one.task for one in started) != Counter(one.task for one in ended):
        yield f"attempts began {len(started)} times, and ended {len(ended)} times"
    kept = set(repo.git("rev-list", "--all").split())
    yield from (f"{one.outcome.commit} is under no ref" for one in ended if one.outcome.commit not in {None, *kept})
    calls = Counter(str(call["task"]) for call in repo.calls())
    most = 1 if point.who == ENGINE else 2
    yield from (f"{count} agents were at {task}" for task, count in calls.items() if count > most)


def _left_on_host(hosts: Hosts) -> Iterator[str]:
    """What a host that has ended has left on its machine."""
    home = hosts.root / "one"
    yield from (f"left: process {one}" for one in alive(str(home)))
    state = home / "iterdev" / "host"
    yield from (f"left: order {path.name}" for path in (state / "orders").iterdir())
    yield from (f"left: workspace {path}" for path in (state / "workspaces").glob("*/*/*"))
    for mirror in (state / "mirrors").iterdir():
        listed = hosts.repo.git("--git-dir", str(mirror), "worktree", "list").splitlines()
        yield from (f"left: worktree {line}" for line in listed[1:])


def main(first: int = 0, step: int = 1) -> int:
    failed = 0
    with tempfile.TemporaryDirectory() as folder, temporal_server.running(Path(folder)) as server:
        root = Path(folder)
        points = passed_effects(make_repo(root / "noted"), server).kill_points()
        for number, point in list(enumerate(points))[first::step]:
            try:
                found = problems(make_repo(root / str(number)), server, point)
            except NotReached as why:
                sys.stdout.write(f"{number + 1}/{len(points)} {why}\n")
                continue
            except (AssertionError, subprocess.TimeoutExpired) as error:
                found = [str(error)]
            failed += bool(found)
            sys.stdout.write(f"{number + 1}/{len(points)} {point}: {'; '.join(found) or 'ok'}\n")
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    code = main(*map(int, sys.argv[1:]))
    sys.stdout.flush()
    os._exit(code)  # The server that forks commands would keep the process.
