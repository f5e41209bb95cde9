"""A control group of Linux for the programs of an engine, where the user may make one.

No process leaves it by forking, by a new session or by clearing its environment, so that the next command finds what is
left when engine, supervisor and monitors were killed together.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

TYPE = "cgroup2"
PAUSE = 0.01
TRIES = 200


def make(name: str) -> Path | None:
    """A group below the one that this process is in; None where that is not possible."""
    root = _root()
    with suppress(OSError, StopIteration):
        own = next(line for line in _lines("/proc/self/cgroup") if line.startswith("0::")).removeprefix("0::/")
        if root and (root / own / "cgroup.procs").exists():
            group = root / own / name
            group.mkdir(exist_ok=True)
            return group
    return None


def end(group: Path) -> None:
    """Kills every process in the group, and in those below it, and removes it."""
    for _ in range(TRIES):
        with suppress(OSError):
            (group / "cgroup.kill").write_text("1")
        for folder, _inner, _files in os.walk(group, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()
        if not group.exists():
            return
        time.sleep(PAUSE)


def find(name: str) -> Path | None:
    """The group of that name, wherever it was made."""
    root = _root()
    found = (Path(folder, name) for folder, inner, _ in os.walk(root) if name in inner) if root else iter(())
    return next(found, None)


def _root() -> Path | None:
    """Where the groups are mounted."""
    with suppress(OSError):
        for line in _lines("/proc/self/mountinfo"):
            place, _, kind = line.partition(" - ")
            if kind.startswith(f"{TYPE} "):
                return Path(place.split()[4])
    return None


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
