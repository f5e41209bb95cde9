"""Which files are in use."""

from contextlib import suppress
from pathlib import Path


def opened() -> set[str]:
    """The files that processes have open, as far as they may be seen."""
    found = set[str]()
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            found.add(str(descriptor.readlink()))
    return found
