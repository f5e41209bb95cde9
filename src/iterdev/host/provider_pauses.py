"""Paused providers, shared by all runs of this user on this machine: one small file each.

An unreadable file is ignored: a request to a paused provider is rejected again.
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from iterdev.core.limits.providers import ProviderPaused
from iterdev.host import paths


def read(root: Path, now: float) -> list[ProviderPaused]:
    """The pauses in force; the files of those that are over are removed."""
    pauses = []
    for path in root.glob("paused-*.json"):
        with suppress(OSError, ValueError, RecursionError):
            pause = msgspec.json.decode(path.read_bytes(), type=ProviderPaused)
            if pause.until > now:
                pauses.append(pause)
            else:
                path.unlink()
    return pauses


def write(root: Path, pause: ProviderPaused) -> None:
    """Atomic. A full disk is ignored: the journal of this run has the pause too."""
    name = f"paused-{hashlib.sha256(pause.provider.encode()).hexdigest()[:16]}"
    temporary = root / f"{name}.{os.getpid()}"
    with suppress(OSError):
        paths.make_private(root)
        temporary.write_bytes(msgspec.json.encode(pause))
        temporary.replace(root / f"{name}.json")
