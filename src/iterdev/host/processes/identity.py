"""Whether a recorded process is still alive, and has not been replaced by another one with its number."""

import os
from contextlib import suppress
from pathlib import Path

from iterdev.core.processes import ProcessIdentity


def identity(pid: int) -> ProcessIdentity | None:
    """The identity of a running process; None for one that has ended, also before its parent has noticed."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self/stat").exists() else _without_proc(pid)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None if state in b"ZX" else ProcessIdentity(pid=pid, started=int(fields[18]), boot=boot)


def _without_proc(pid: int) -> ProcessIdentity | None:
    try:
        with suppress(PermissionError):
            os.kill(pid, 0)
    except ProcessLookupError:
        return None
    return ProcessIdentity(pid=pid)


def alive(recorded: ProcessIdentity) -> bool:
    return identity(recorded.pid) == recorded


def is_stopped(pid: int) -> bool:
    """Whether a process was stopped by a signal; one that a debugger holds is not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    return False
