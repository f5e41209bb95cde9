"""Processes as data: which one it is, and how it ended."""

from msgspec import Struct


class ProcessIdentity(Struct, frozen=True, kw_only=True):
    """Identifies a process, even if a later one has the same number."""

    pid: int
    started: int = 0
    """In clock ticks since the boot; 0 where the system does not say."""
    boot: str = ""


class Exit(Struct, frozen=True, kw_only=True, tag=True):
    code: int
    """As in subprocess: negative for a signal."""
    timed_out: bool = False
