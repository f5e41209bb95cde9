"""The orders that a host has begun and not reported on yet, as files: what a killed host left is found by them."""

from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.host import paths


class NotedOrder(Struct, frozen=True, kw_only=True):
    activity: str
    task_token: bytes
    """By which the server knows who reports."""
    order: bytes


class NotedOrders:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        paths.make_private(folder)

    def add(self, noted: NotedOrder) -> None:
        path = self._path(noted.activity)
        new = path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(noted))
        new.replace(path)

    def remove(self, activity: str) -> None:
        self._path(activity).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[NotedOrder]:
        for path in sorted(self._folder.glob("*.json")):
            with suppress(OSError, ValueError):
                yield msgspec.json.decode(path.read_bytes(), type=NotedOrder)

    def _path(self, activity: str) -> Path:
        return self._folder / f"{sha256(activity.encode()).hexdigest()[:24]}.json"
