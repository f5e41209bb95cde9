"""How a program ended."""

from msgspec import Struct


class Exit(Struct, frozen=True, kw_only=True, tag=True):
    code: int
    """As in subprocess: negative for a signal."""
    timed_out: bool = False
