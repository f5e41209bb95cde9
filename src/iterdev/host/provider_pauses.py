"""Providers that answer nobody for a while, told to every run of this user on this machine: one small file each.

A file that cannot be read is as good as none: whoever asks a paused provider is told so again.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from iterdev.core.limits.providers import ProviderPaused


class Pauses:
    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, now: float) -> list[ProviderPaused]:
        """The pauses in force; the files of those that are over are removed."""
        told = list(self._told())
        for path, pause in told:
            if pause.until <= now:
                with suppress(OSError):
                    path.unlink()
        return [pause for _, pause in told if pause.until > now]

    def write(self, pause: ProviderPaused) -> None:
        """Whole or not at all. A full disk keeps nobody from working: the journal of this run knows the pause too."""
        name = f"paused-{hashlib.sha256(pause.provider.encode()).hexdigest()[:16]}"
        temporary = self._root / f"{name}.{os.getpid()}"
        with suppress(OSError):
            self._root.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(msgspec.json.encode(pause))
            temporary.replace(self._root / f"{name}.json")

    def _told(self) -> Iterator[tuple[Path, ProviderPaused]]:
        for path in self._root.glob("paused-*.json"):
            with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
                yield path, msgspec.json.decode(path.read_bytes(), type=ProviderPaused)
