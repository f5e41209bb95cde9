"""Blocks of ports, one for each workspace: no two on this machine overlap, also those of other users.

The first port of a block is the lock: it is bound for as long as the block is in use, and the system frees it when the
process ends, even if it is killed. There is no lock file.
"""

import socket
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from iterdev.core.errors import HostError
from iterdev.core.settings import MOST_PORTS

ALL = range(20000, 32768)
"""Above what services use, below what the system hands out by itself."""


class Ports(AbstractAsyncContextManager["Ports"]):
    """The blocks of one engine; leaving it gives them back."""

    def __init__(self, count: int, among: range = ALL) -> None:
        self._count = count
        self._among = among
        self._locks: dict[Path, socket.socket] = {}

    def of(self, slot: Path) -> range:
        """The ports of a workspace, always the same ones."""
        if not self._count:
            return range(0)
        if slot not in self._locks:
            self._locks[slot] = self._lock()
        _, lock = self._locks[slot].getsockname()
        return range(lock + 1, lock + 1 + self._count)

    async def __aexit__(self, *_: object) -> None:
        for lock in self._locks.values():
            lock.close()
        self._locks.clear()

    def _lock(self) -> socket.socket:
        for port in self._among[: -MOST_PORTS : MOST_PORTS + 1]:
            if lock := _bound(port, "127.0.0.1"):
                if all(_is_free(number) for number in range(port + 1, port + 1 + self._count)):
                    return lock
                lock.close()
        raise HostError(
            f"No {self._count} free ports in a row are left between {self._among[0]} and {self._among[-1]}",
            hint="end what uses them, or set `ports = 0` under [project] in iterdev.toml",
        )


def _is_free(port: int) -> bool:
    if bound := _bound(port, ""):
        bound.close()
    return bound is not None


def _bound(port: int, address: str) -> socket.socket | None:
    bound = socket.socket()
    try:
        bound.bind((address, port))
    except OSError:
        bound.close()
        return None
    return bound
