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

PREFIX = "paused-"


def read(root: Path, now: float) -> list[ProviderPaused]:
    """The pauses in force; the files of those that are over are removed."""
    pauses = []
    for path in _files(root):
        with suppress(OSError, ValueError, RecursionError):
            pause = msgspec.json.decode(path.read_bytes(), type=ProviderPaused)
            if pause.until > now:
                pauses.append(pause)
            else:
                path.unlink()
    return pauses


def _files(root: Path) -> list[Path]:
    with suppress(OSError):
        return [path for path in root.iterdir() if path.name.startswith(PREFIX) and path.suffix == ".json"]
    return []


def write(root: Path, pause: ProviderPaused) -> None:
    """Atomic. A full disk is ignored: the journal of this run has the pause too."""
    name = f"{PREFIX}{hashlib.sha256(pause.provider.encode()).hexdigest()[:16]}"
    temporary = root / f"{name}.{os.getpid()}"
    with suppress(OSError):
        paths.make_private(root)
        temporary.write_bytes(msgspec.json.encode(pause))
        temporary.replace(root / f"{name}.json")
