"""Whether a process that somebody wrote down is still the same one, and alive."""

import os
from pathlib import Path

from msgspec import Struct


class Identity(Struct, frozen=True, kw_only=True):
    """A process that no other is taken for, not even one that gets the same number later."""

    pid: int
    started: int = 0
    """In clock ticks since the boot; 0 where the system does not say."""
    boot: str = ""


def identity(pid: int) -> Identity | None:
    """Names a running process; one that has ended has no name, even if its parent has not noticed yet."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self/stat").exists() else _bare_identity(pid)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None if state in b"ZX" else Identity(pid=pid, started=int(fields[18]), boot=boot)


def _bare_identity(pid: int) -> Identity | None:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return Identity(pid=pid)
    except ProcessLookupError:
        return None
    return Identity(pid=pid)


def alive(recorded: Identity) -> bool:
    return identity(recorded.pid) == recorded
