"""Whether a process runs under a monitor, that is inside of an attempt.

An agent can unset its variables, but it cannot leave its tree: a monitor adopts every process whose own parent has
ended. Only Linux has /proc; elsewhere no monitor is found.
"""

from collections.abc import Iterator
from pathlib import Path

from iterdev.core.processes import ProcessIdentity
from iterdev.host.processes.identity import identity

PROC = Path("/proc")
MONITOR = (b"-I", b"-S", b"/host/processes/supervisor.py")
"""The arguments of the supervisor, of which every monitor is a fork; the last one is how its path ends."""
DEEPEST = 1_000


def nearest_monitor(pid: int) -> ProcessIdentity | None:
    """The monitor of the program that a process belongs to."""
    return next((identity(above) for above in ancestors(pid) if _is_monitor(above)), None)


def ancestors(pid: int) -> Iterator[int]:
    """The process itself, its parent, and so on."""
    for _ in range(DEEPEST):
        if pid <= 1:
            return
        yield pid
        pid = parent(pid)


def parent(pid: int) -> int:
    """0 for one that has ended."""
    try:
        return int((PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def _is_monitor(pid: int) -> bool:
    try:
        _, isolated, without_site, program, *_ = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return False
    return (isolated, without_site) == MONITOR[:2] and program.endswith(MONITOR[2])
