"""What hosts cost beside attempts on the engine's machine, and how soon work goes on when something fails."""

import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

import host_failures
import life
from crowd import resident
from host_failures import LONG, Failure
from host_processes import AT_ONCE, PROGRAM, Machines, git_commands, machines
from iterdev.core.session.events import AttemptEnded, AttemptStarted, Event
from iterdev.store.journal import Journal
from measure import Aim, Effort, Section, ms
from stopwatch import Stopwatch

T = TypeVar("T")

HERE = Path(__file__).resolve().parent
TITLE = "Hosts"
MEASURED = """\
One `iterdev run --tasks FILE.csv -y --engine beat` on a table of DEV rows whose agents are shell scripts: here, and \
on `iterdev worker` processes with homes of their own, through a Temporal server of one process with a file, and a \
bare git repository as the remote, all on this machine. An attempt: {lives} rows, one after the other, with agents \
that end at once; the time from the entry that the first attempt started to the one that the last ended, and the CPU \
of engine, git, server, hosts and agents without that of a run whose rows are completed, each by the number of rows. \
Many attempts: {crowd} rows with agents that wait until all are at work, on one host, and then end at once; while they \
wait, the server answers nothing for {stall:g} s. Failures: one attempt ({killed} for the engine that is killed), \
until the next agent writes the time with which it begins. A host that is lost, cut off or frozen has its attempt \
taken away after {lease:g} s without a heartbeat; in the other measurements after {long} s."""
WHY_GIT = """\
most of what an attempt on a host adds are git's processes: the engine makes a commit of the documents, pushes and \
fetches, the host fetches, keeps the report and pushes; each transfer is three processes or more"""
WHY_CALLS = "each attempt is a handful of calls to the server, whose messages are compressed and sealed"
WHY_MEMORY = """\
Temporal's client and what it loads are 48 MB of the engine, and 200 attempts 42 MB, of which they need 17 MB here \
too"""
WHY_LOOP = "the event loop competes for the processors with the agents"
WHY_ENDING = """\
a host looks at the {crowd} worktrees and commits what is in them, a few at a time, so that they end one by one"""
WHY_LOAD = "of these seconds, loading and starting what takes over is the greatest part"
WHY_LEASE = """\
a host asks its agent to end before the lease is over, by 15 % of it, at least 0.5 s, and by the {grace:g} s after \
which it is killed; on a busy machine it is killed later"""
WHY_WOKEN = """\
a host that wakes finds out within 0.25 s that its lease is over, and gives an agent {grace:g} s before it is killed, \
which this one uses up"""
WHY_WORK = (
    "one outcome of each attempt may be used, which is kept under a ref before; `make chaos` shows where that fails"
)
MORE = """\
`make chaos` looks for work that is lost or done twice with 200 tasks on three hosts in networks of their own, which \
need root, while each part fails in turn; it is no part of this run."""
WHY_START = "the command is started, Temporal's client is loaded, and the journal is read before attempts are asked for"
LEASE, LEAST_LEASE = 10.0, 5.0
GRACE, AFTER_WAKING = 2.0, 0.5
"""Seconds that a host gives its agent to end, and that it may take to find out."""
REPETITIONS = 3
STALL = 3.0
"""Seconds for which the server answers nothing."""


class Cost(Struct, frozen=True, kw_only=True):
    seconds: float
    engine: float
    """CPU of the engine's own process."""
    all: float
    """CPU of everything."""


class Crowd(Struct, frozen=True, kw_only=True):
    """An engine with many attempts out, which then end at once."""

    megabytes: float
    pause: float
    """Seconds for which its event loop was not free at most."""
    seconds: float
    """From the first end to the last."""
    pushes: int
    fetches: int


def measure(effort: Effort, root: Path) -> Section:
    if PROGRAM is None:
        left_out = (("left out: `make test` installs `temporal`",),)
        return Section(title=TITLE, measured="", repetitions="none", header=("",), rows=left_out)
    large = effort.cache is not None
    crowd, killed, lease = (200, 8, LEASE) if large else (2, 1, LEAST_LEASE)
    lives, numbers = max(1, effort.lives // 2), count()

    def folder() -> Path:
        return root / f"hosts-{next(numbers)}"

    def crowded(*, here: bool) -> Crowd:
        return _crowd(folder(), crowd, here=here)

    def engine_killed(*, here: bool) -> Failure:
        return host_failures.killed_engine(folder(), killed, here=here)

    repetitions = min(effort.repetitions, REPETITIONS)
    here, there = _costs(effort.stopwatch, repetitions, lives, folder)
    near, far = (_once(effort, partial(crowded, here=here)) for here in (True, False))
    local, remote = (_once(effort, partial(engine_killed, here=here)) for here in (True, False))
    failures = {
        "lost": lambda: host_failures.lost_host(folder(), lease),
        "crashed": lambda: host_failures.crashed_worker(folder()),
        "stopped": lambda: host_failures.stopped_host(folder()),
        "spared": lambda: host_failures.spared(folder(), lease),
        "woken": lambda: host_failures.woken(folder(), lease),
    }
    found = {name: _once(effort, fail) for name, fail in failures.items()}
    failed = {name: failure.seconds for name, failure in found.items()}
    all_failures = (*found.values(), remote)
    lost, twice = (sum(map(attrgetter(what), all_failures)) for what in ("lost", "twice"))
    ending = WHY_ENDING.format(crowd=crowd)
    return Section(
        title=TITLE,
        measured=MEASURED.format(lives=lives, crowd=crowd, stall=STALL, killed=killed, lease=lease, long=LONG),
        repetitions=f"{repetitions} of an attempt, the median; one of everything else",
        header=("", "here", "on hosts"),
        rows=(
            ("an attempt", ms(here.seconds), ms(there.seconds)),
            ("CPU of the engine's own process for it", ms(here.engine), ms(there.engine)),
            ("CPU of all processes for it", ms(here.all), ms(there.all)),
            (f"memory of an engine with {crowd} attempts", f"{near.megabytes:.1f} MB", f"{far.megabytes:.1f} MB"),
            ("longest time for which its event loop was not free", ms(near.pause), ms(far.pause)),
            (
                f"until all of {crowd} attempts that end at once have ended",
                *(f"{one.seconds:.1f} s" for one in (near, far)),
            ),
            ("pushes of the host, and fetches of the engine meanwhile", "none", f"{far.pushes}, {far.fetches}"),
            (
                f"engine killed: until the next has its {killed} attempts",
                *(f"{one.seconds:.1f} s" for one in (local, remote)),
            ),
            ("of these, started again", str(local.again), str(remote.again)),
            ("host lost: until the next agent begins", "", f"{failed['lost']:.1f} s"),
            ("worker crashed and started again: until the next agent begins", "", f"{failed['crashed']:.1f} s"),
            ("host stopped in order: until the next agent begins", "", f"{failed['stopped']:.1f} s"),
            (
                "host cut off: from the end of its agent until its attempt is given away",
                "",
                f"{failed['spared']:.1f} s",
            ),
            ("host frozen: from its waking until its agent has ended", "", f"{failed['woken']:.1f} s"),
            ("failures on hosts: tasks whose work is lost, and landed twice", "", f"{lost}, {twice}"),
        ),
        aims=(
            _aim("an attempt on a host takes at most 0.5 s more than here", there.seconds - here.seconds, 0.5, WHY_GIT),
            _aim("it takes at most 0.05 s more of the engine's own CPU", there.engine - here.engine, 0.05, WHY_CALLS),
            _aim("it takes at most 0.25 s more of the CPU of all processes", there.all - here.all, 0.25, WHY_GIT),
            Aim(
                claim=f"the engine with {crowd} attempts on hosts needs at most 110 MB",
                value=far.megabytes,
                limit=110,
                unit="MB",
                why=WHY_MEMORY,
            ),
            _aim("its event loop is free again after at most 0.5 s, also without the server", far.pause, 0.5, WHY_LOOP),
            *(
                Aim(
                    claim=f"{crowd} attempts that end at once take at most 10 {what}", value=found, limit=10, why=ending
                )
                for what, found in (("pushes", far.pushes), ("fetches", far.fetches))
            ),
            _aim(
                f"the next agent begins at most {lease:g} + 3 s after a host is lost",
                failed["lost"],
                lease + 3,
                WHY_LOAD,
            ),
            _aim(
                "it begins at most 10 s after a worker has crashed, which is started again",
                failed["crashed"],
                10,
                WHY_LOAD,
            ),
            _aim("it begins at most 2 s after a host is stopped in order", failed["stopped"], 2, WHY_LOAD),
            _aim(
                "the next engine has the attempts of one that was killed after at most 2 s",
                remote.seconds,
                2,
                WHY_START,
            ),
            Aim(claim="it starts none of them again", value=remote.again, limit=0, why=WHY_START),
            Aim(
                claim=f"a host that is cut off ends its agent {lease / 10:g} s before the attempt is given away",
                value=failed["spared"],
                limit=lease / 10,
                unit="s",
                at_least=True,
                why=WHY_LEASE.format(grace=GRACE),
            ),
            _aim(
                f"a host that was frozen ends its agent at most {GRACE:g} + {AFTER_WAKING:g} s after it wakes",
                failed["woken"],
                GRACE + AFTER_WAKING,
                WHY_WOKEN.format(grace=GRACE),
            ),
            Aim(claim="no work is lost in these failures", value=lost, limit=0, unit="tasks", why=WHY_WORK),
            Aim(claim="none of it lands twice", value=twice, limit=0, unit="tasks", why=WHY_WORK),
        ),
        notes=(MORE,),
    )


def _aim(claim: str, seconds: float, limit: float, why: str) -> Aim:
    return Aim(claim=claim, value=max(seconds, 0.0), limit=limit, unit="s", why=why)


def _once(effort: Effort, act: Callable[[], T]) -> T:
    """What it finds when nobody disturbs it."""
    found: list[T] = []

    def sample() -> float:
        found.append(act())
        return 0.0

    effort.stopwatch.medians(1, {"once": sample})
    return found[-1]


def _costs(stopwatch: Stopwatch, repetitions: int, lives: int, folder: Callable[[], Path]) -> tuple[Cost, Cost]:
    """Of an attempt here, and of one on a host."""
    found: dict[str, list[Cost]] = {}

    def sample(name: str, status: str, *, here: bool) -> float:
        cost = _one_after_another(folder(), lives, status, here=here)
        found.setdefault(name, []).append(cost)
        return cost.seconds

    runs = {
        f"{place}{status}": partial(sample, f"{place}{status}", status, here=place == "here ")
        for place in ("here ", "hosts ")
        for status in ("pending", "completed")
    }
    stopwatch.medians(repetitions, runs)
    return _per_attempt(found, "here ", lives), _per_attempt(found, "hosts ", lives)


def _per_attempt(found: Mapping[str, Sequence[Cost]], place: str, lives: int) -> Cost:
    def more(of: Callable[[Cost], float]) -> float:
        """Than a run without attempts."""
        whole, start = (statistics.median(map(of, found[place + status])) for status in ("pending", "completed"))
        return (whole - start) / lives

    return Cost(
        seconds=more(lambda one: one.seconds), engine=more(lambda one: one.engine), all=more(lambda one: one.all)
    )


def _one_after_another(root: Path, lives: int, status: str, *, here: bool) -> Cost:
    with machines(root, tasks=lives, wait=AT_ONCE, here=here, status=status) as all_:
        if not here:
            all_.start_host("one")
        said, before = root / "cpu", _ended_cpu() + all_.cpu
        with all_.engine(sys.executable, "-c", life.MEASURING, str(said), *all_.run(1)[1:]) as engine:
            all_.finish(engine)
        used = _ended_cpu() + all_.cpu - before
        started, ended = (_moments(all_.repo.top, kind) for kind in (AttemptStarted, AttemptEnded))
        seconds = ended[-1] - started[0] if started else 0.0
        return Cost(seconds=seconds, engine=float(said.read_text()), all=used)


def _ended_cpu() -> float:
    """Of what this process has started and seen ending."""
    times = os.times()
    return times.children_user + times.children_system


def _moments(top: Path, kind: type[Event]) -> list[float]:
    """When the events of a kind were recorded in the only session."""
    journal = Journal(top / ".workflow" / "iterdev.db")
    (session,) = journal.sessions()
    entries = journal.read(session)
    journal.close()
    return [entry.at for entry in entries if isinstance(entry.event, kind)]


def _crowd(root: Path, tasks: int, *, here: bool) -> Crowd:
    with machines(root, tasks=tasks, here=here) as all_:
        if not here:
            all_.start_host("one", slots=tasks)
        watch, longest = str(HERE / "watched_engine.py"), root / "longest"
        with all_.engine(sys.executable, watch, str(longest), *all_.run(tasks)[1:]) as engine:
            all_.until_begun()
            megabytes = resident(engine.pid)
            if all_.server:
                all_.server.send_signal(signal.SIGSTOP)
                time.sleep(STALL)
                all_.server.send_signal(signal.SIGCONT)
            before = _pushes(all_), _fetches(all_)
            all_.open_gate()
            all_.finish(engine)
        ended = _moments(all_.repo.top, AttemptEnded)
        return Crowd(
            megabytes=megabytes,
            pause=float(longest.read_text()),
            seconds=ended[-1] - ended[0],
            pushes=_pushes(all_) - before[0],
            fetches=_fetches(all_) - before[1],
        )


def _pushes(all_: Machines) -> int:
    return sum(git_commands(all_.root / name).count("push") for name in all_.hosts)


def _fetches(all_: Machines) -> int:
    return git_commands(all_.repo.home).count("fetch")
