"""Who may drive a session: one engine at a time.

The lease is a lock on the session folder itself, so there is no file that could be left behind. The descriptor is
handed down to the supervisor, not to agents: the lock is free when the engine and every process it owned are gone.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 15.0
"""Seconds in which the processes of a dead engine have certainly been ended."""
PAUSE = 0.02


class Held(Exception):
    """Another engine holds the lease."""


@contextmanager
def lease(folder: Path, *, wait: Callable[[], bool]) -> Iterator[int]:
    """Holds the folder's lock and lends its descriptor; while `wait()` says so, a held lock is waited for."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _lock(descriptor, wait)
        yield descriptor
    finally:
        os.close(descriptor)


def is_held(folder: Path) -> bool:
    """Whether an engine, or a process that one left, lives."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock(descriptor: int, wait: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end or not wait():
                raise Held from None
            time.sleep(PAUSE)
        else:
            return
