"""How soon work goes on when a host or the engine fails, and what becomes of it."""

import json
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from msgspec import Struct

import host_processes
from host_processes import Machines, Relay, machines, until
from iterdev.core.session.events import AttemptEnded
from iterdev.store.journal import Journal

LONG = 120
"""Seconds of a lease that does not end in a measurement."""


class Failure(Struct, frozen=True, kw_only=True):
    seconds: float
    """Most often from the failure until the work goes on."""
    lost: int
    """Tasks whose work is not on the session's branch in the end."""
    twice: int
    """Tasks whose work is there more than once."""
    again: int = 0
    """Attempts of an engine that was killed which the next one started again."""


def lost_host(root: Path, lease: float) -> Failure:
    return _next(root, lease, lambda all_: all_.kill_host("one"))


def crashed_worker(root: Path) -> Failure:
    def crash(all_: Machines) -> None:
        all_.crash_worker("one")
        all_.start_host("one")

    return _next(root, LONG, crash, spare="")


def stopped_host(root: Path) -> Failure:
    return _next(root, LONG, lambda all_: all_.hosts["one"].send_signal(signal.SIGTERM))


def _next(root: Path, lease: float, fail: Callable[[Machines], None], spare: str = "two") -> Failure:
    """Until the next agent at the task begins, on the other host if there is one."""
    with machines(root, lease=lease) as all_:
        all_.start_host("one")
        with all_.engine(*all_.run(1)) as engine:
            all_.until_begun()
            if spare:
                all_.start_host(spare)
            began = time.time()
            fail(all_)
            seconds = all_.until_begun(2) - began
            all_.open_gate()
            all_.finish(engine)
        return _failure(all_, seconds)


def spared(root: Path, lease: float) -> Failure:
    """How long the agent of a host that is cut off has ended when the server gives its attempt away."""
    with machines(root, lease=lease, wait=host_processes.STUBBORN) as all_:
        relay = Relay(all_.address)
        all_.start_host("one", address=relay.address)
        with all_.engine(*all_.run(1)) as engine:
            all_.until_begun()
            relay.cut()
            all_.start_host("two")
            all_.finish(engine)
        given_away = _first_end(all_.repo.top)
        relay.close()
        all_.kill_host("one")
        return _failure(all_, given_away - _last_sign(root))


def woken(root: Path, lease: float) -> Failure:
    """How long the agent of a host that was frozen goes on when it wakes, although the next one has begun."""
    wait = f"{host_processes.STUBBORN}\n{host_processes.UNTIL_OPENED}"
    with machines(root, lease=lease, wait=wait) as all_:
        all_.start_host("one", slots=1)
        with all_.engine(*all_.run(1)) as engine:
            all_.until_begun()
            all_.start_host("two")
            with all_.frozen("one"):
                all_.until_begun(2)
                wakes = time.time()
            until(lambda: not all_.pids_of("one", "ITERDEV_TASK="), "the end of the agent that was frozen")
            all_.open_gate()
            all_.finish(engine)
        return _failure(all_, _last_sign(root) - wakes)


def _last_sign(root: Path) -> float:
    """When a stubborn agent lived for the last time."""
    return float((root / "alive").read_text())


def _failure(all_: Machines, seconds: float, again: int = 0) -> Failure:
    landed = Counter(all_.landed)
    lost, twice = all_.tasks - len(landed), sum(number > 1 for number in landed.values())
    return Failure(seconds=seconds, lost=lost, twice=twice, again=again)


def _first_end(top: Path) -> float:
    journal = Journal(top / ".workflow" / "iterdev.db")
    (session,) = journal.sessions()
    entries = journal.read(session)
    journal.close()
    return next(entry.at for entry in entries if isinstance(entry.event, AttemptEnded))


def killed_engine(root: Path, tasks: int, *, here: bool) -> Failure:
    with machines(root, tasks=tasks, here=here) as all_:
        if not here:
            all_.start_host("one", slots=tasks)
        with all_.engine(*all_.run(tasks)) as engine:
            all_.until_begun()
            engine.kill()
            engine.wait()
        began = time.time()
        with all_.engine("iterdev", "resume", "--json") as engine:
            seconds = (all_.until_begun(2) if here else _attached(all_, began)) - began
            again = len(list(all_.began.iterdir())) - tasks
            all_.open_gate()
            all_.finish(engine)
        return _failure(all_, seconds, again)


def _attached(all_: Machines, since: float) -> float:
    """When the server had answered for each attempt of the earlier engine."""

    def answered() -> list[float]:
        (log,) = all_.repo.top.glob(".workflow/.team/*/logs/engine.jsonl")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        found = (datetime.fromisoformat(line["ts"]).timestamp() for line in lines if line["effect"] == "submit")
        moments = [moment for moment in found if moment > since]
        return moments if len(moments) == all_.tasks else []

    return max(until(answered, "the attempts of the earlier engine"))
