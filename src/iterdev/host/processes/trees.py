"""Finds the processes of an engine by the variable that says whose they are, and kills them with their descendants."""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from iterdev.core.processes import ProcessIdentity
from iterdev.host.processes import control_group, supervisor
from iterdev.host.processes.ownership import GROUP, VARIABLE, Marker, name_of


def kill_tree(started: Marker) -> None:
    """Kills a started process and all that it has started."""
    _kill(lambda value: value == started.value)


def kill_left_by(engine: ProcessIdentity) -> None:
    """Kills what an engine that has ended left: its supervisors, their programs, and processes such as git."""
    name = name_of(engine)
    _kill(lambda value: f"{value}-".startswith(f"{name}-"))
    if group := control_group.find(f"{GROUP}{name}"):
        control_group.end(group)


def _kill(is_meant: Callable[[str], bool]) -> None:
    def tree() -> list[int]:
        return supervisor.with_descendants({pid for pid, value in _owned() if is_meant(value)})

    while supervisor.signal_all(tree(), signal.SIGKILL):
        time.sleep(supervisor.SWEEP)


def _owned() -> Iterator[tuple[int, str]]:
    """Every process that has the variable, with its value.

    The environment of supervisors and monitors is hidden from their own user; their arguments say the same.
    """
    entry = re.compile(rb"(?:^|\0)%s=([^\0]*)" % VARIABLE.encode())
    for process in Path("/proc").glob("[0-9]*"):
        for place in ("environ", "cmdline"):
            with suppress(OSError):
                if found := entry.search((process / place).read_bytes()):
                    yield int(process.name), os.fsdecode(found[1]).removesuffix("-")
                    break
