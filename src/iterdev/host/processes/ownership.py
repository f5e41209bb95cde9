"""Whose a process is: a variable in its environment says which engine started it.

A process inherits it, wherever it moves to, so the whole tree is found without keeping a record of it. The supervisor
of an engine ends what a killed engine left (`supervisor.py`), and the next command what is left when the supervisor was
killed too. A variable and a process group cost nothing, while a program in between, such as setpriv, takes 1.5 ms of
every start of git, and a new session 0.8 ms.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from pathlib import Path

from msgspec import Struct

from iterdev.core.processes import ProcessIdentity
from iterdev.host.processes.identity import identity

VARIABLE = "_ITERDEV_OWNED_BY"
"""Not one of those that an agent is promised: those begin with `ITERDEV_`."""
GROUP = "iterdev-"
"""What the name of an engine's control group begins with."""

_numbers = count(1)


class Marker(Struct, frozen=True):
    """Identifies one started process and all that it starts."""

    value: str

    @property
    def variable(self) -> dict[str, str]:
        return {VARIABLE: self.value}


def marker() -> Marker:
    return Marker(f"{owner()}-{next(_numbers)}")


def owner() -> str:
    """Identifies this process, also a forked one."""
    return _owner(os.getpid())


def of_this_process() -> str:
    """What the variable of everything that this process has started begins with; that of its supervisor ends before."""
    return f"{VARIABLE}={owner()}-"


def of_supervisor() -> dict[str, str]:
    """The variable of a supervisor of this process; without a number, because it ends what has one."""
    return {VARIABLE: owner()}


@lru_cache(maxsize=1)
def _owner(pid: int) -> str:
    own = identity(pid)
    return name_of(own) if own else f"{pid}-0"


def name_of(process: ProcessIdentity) -> str:
    return f"{process.pid}-{process.started}"


def run(
    argv: Sequence[str], *, env: Mapping[str, str], seconds: float, cwd: Path | None = None, stdin: bytes | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Runs a program to its end, in a process group of its own; its whole tree ends at the time limit."""
    started = marker()
    try:
        with subprocess.Popen(
            argv,
            cwd=cwd,
            env={**env, **started.variable},
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        ) as process:
            try:
                stdout, stderr = process.communicate(stdin, seconds)
            except BaseException:
                kill(started, group=process.pid)
                raise
    except KeyboardInterrupt:
        # It may have come before the process was known here.
        kill(started)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def kill(started: Marker, group: int | None = None) -> None:
    """Kills a started process and everything that it has started, first of all its process group, if that is known."""
    # Needed only here, and slow to import.
    from iterdev.host.processes.trees import kill_tree  # noqa: PLC0415

    if group:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    kill_tree(started)
