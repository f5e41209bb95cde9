"""The lease of a session: one engine at a time runs it.

The lease is a lock on the session folder itself, so that no lock file can be left behind. The supervisor inherits the
descriptor and agents do not: the lock is free when the engine and all its processes have ended.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 15.0
"""Seconds after which the processes of a dead engine have been ended."""
BY_THEMSELVES = 3.0
"""Seconds after which they have to be ended by force: their supervisor may have been stopped."""
PAUSE = 0.02


class Held(Exception):
    """Another engine holds the lease."""


@contextmanager
def lease(folder: Path, *, wait: Callable[[], bool], free: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Holds the folder's lock and yields its descriptor; a held lock is waited for while `wait()` is true.

    If the processes that hold it do not end by themselves, `free()` is called once to end them.
    """
    begun = time.monotonic()
    freed = False
    with _opened(folder) as descriptor:
        while not _locked(descriptor, fcntl.LOCK_EX):
            waited = time.monotonic() - begun
            if waited > PATIENCE or not (_is_looked_at(descriptor) or wait()):
                raise Held
            if waited > BY_THEMSELVES and not freed:
                freed = True
                free()
            time.sleep(PAUSE)
        yield descriptor


def is_held(folder: Path) -> bool:
    """Whether an engine, or a process of one that has ended, holds the lease."""
    try:
        with _opened(folder) as descriptor:
            return not _locked(descriptor, fcntl.LOCK_SH)
    except OSError:
        return False


def _is_looked_at(descriptor: int) -> bool:
    """Whether nobody holds the lease: another process only looks at the lock in this moment (`is_held`)."""
    if is_free := _locked(descriptor, fcntl.LOCK_SH):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    return is_free


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
