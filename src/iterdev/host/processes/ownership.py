"""Processes that iterdev starts by itself, such as git: a variable in their environment says whose they are.

A process inherits it, wherever it moves to, so the whole tree is found without keeping a record of it. The supervisor
of an engine ends what a killed engine left (`supervisor.py`). A variable and a process group cost nothing, while a
program in between, such as setpriv, takes 1.5 ms of every start, and a new session 0.8 ms.
"""

import os
import signal
import time
from contextlib import suppress
from functools import lru_cache
from itertools import count

from msgspec import Struct

from iterdev.host.processes.identity import identity

VARIABLE = "ITERDEV_OWNED_BY"

_numbers = count(1)


class Marker(Struct, frozen=True):
    """Identifies one started process and all that it starts."""

    value: str

    @property
    def variable(self) -> dict[str, str]:
        return {VARIABLE: self.value}


def marker() -> Marker:
    prefix = of_this_process().removeprefix(f"{VARIABLE}=")
    return Marker(f"{prefix}{next(_numbers)}")


def of_this_process() -> str:
    """What the variable of everything that this process has started begins with, also a forked one."""
    return f"{VARIABLE}={_owner(os.getpid())}-"


@lru_cache(maxsize=1)
def _owner(pid: int) -> str:
    own = identity(pid)
    return f"{pid}-{own.started if own else 0}"


def kill(group: int, started: Marker) -> None:
    """Kills a process group and everything that its leader started."""
    # Needed only here, and slow to import.
    from iterdev.host.processes.supervisor import SWEEP, signal_all, started_with  # noqa: PLC0415

    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    entry = os.fsencode(f"{VARIABLE}={started.value}") + b"\0"
    while signal_all(started_with(entry), signal.SIGKILL):
        time.sleep(SWEEP)
