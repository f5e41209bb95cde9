"""The stamp of a folder: equal stamps show that nothing in it changed in between, without reading a file.

It holds what the file system notes of every entry, the time of its last change included, which no program can set.
Where two changes of a moment get the same time, a stamp says something only of what is older than that.
"""

import os
import stat
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryFile

from msgspec import Struct

MOST = 1_000
"""Entries: with more of them, git finds out faster what changed."""
COARSE = 2_100_000_000
"""Nanoseconds that the times of some file systems are apart."""
PROBES = 5
REPOSITORY = ".git"

Entry = tuple[str, int, int, int, int, int]
"""Path, inode, mode, size, and the times of the last changes of content and status."""


class FolderStamp(Struct, frozen=True):
    entries: tuple[Entry, ...]
    devices: frozenset[int]
    taken: int
    """When, in nanoseconds."""

    @property
    def names(self) -> Iterator[str]:
        """The paths of all entries that are no folders."""
        return (entry[0] for entry in self.entries if not stat.S_ISDIR(entry[2]))

    def still_holds(self, later: "FolderStamp", probe: Path) -> bool:
        """Whether nothing changed until the later stamp. The probe is a folder of ours on the same file system."""
        if self.entries != later.entries:
            return False
        if all(entry[5] < self.taken - COARSE for entry in self.entries):
            return True
        device = _device(probe)
        return self.devices == {device} and tells_changes_apart(probe, device)

    def without(self, ignored: Collection[str]) -> "FolderStamp":
        """The stamp as it would be if these folders had not been looked into."""
        inside = tuple(f"{name}/" for name in ignored)
        return FolderStamp(tuple(e for e in self.entries if not e[0].startswith(inside)), self.devices, self.taken)


def folder_stamp(folder: Path, ignored: Collection[str] = (), most: int = MOST) -> FolderStamp | None:
    """None if there is too much in the folder, or another repository; `ignored` are the paths of folders in it.

    The entry `.git` of the folder itself is git's, and no part of it.
    """
    devices: set[int] = set()
    taken, entries = time.time_ns(), []
    try:
        for entry in _entries(folder, ignored, devices):
            entries.append(entry)
            if len(entries) > most:
                return None
    except (OSError, _InnerRepositoryError):
        return None
    entries.sort()
    return FolderStamp(tuple(entries), frozenset(devices), taken)


class _InnerRepositoryError(Exception):
    pass


def _entries(folder: Path, ignored: Collection[str], devices: set[int]) -> Iterator[Entry]:
    pending = [("", str(folder))]
    while pending:
        prefix, place = pending.pop()
        with os.scandir(place) as found:
            for entry in found:
                name = prefix + entry.name
                if entry.name == REPOSITORY:
                    if prefix:
                        raise _InnerRepositoryError
                    continue
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    if name not in ignored:
                        pending.append((f"{name}/", entry.path))
                        devices.add(status.st_dev)
                    # Its times also change with what is ignored, or is gone again.
                    yield name, status.st_ino, status.st_mode, 0, 0, 0
                else:
                    devices.add(status.st_dev)
                    yield (
                        name,
                        status.st_ino,
                        status.st_mode,
                        status.st_size,
                        status.st_mtime_ns,
                        status.st_ctime_ns,
                    )


def file_stamp(path: Path) -> tuple[int, ...]:
    """The same of one file; empty if there is none."""
    try:
        status = os.lstat(path)  # pathlib takes several times as long, and this is asked often.
    except OSError:
        return ()
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _device(folder: Path) -> int:
    with suppress(OSError):
        return os.stat(folder).st_dev  # noqa: PTH116 - asked often
    return -1


@lru_cache(maxsize=16)
def tells_changes_apart(folder: Path, _device: int) -> bool:
    """Whether the file system of a folder gives a change another time than that of the one that was seen before it."""
    try:
        with TemporaryFile(dir=folder, buffering=0) as file:
            times = [_changed(file.fileno()) for _ in range(PROBES)]
    except OSError:
        return False
    return len(set(times)) == PROBES


def _changed(number: int) -> int:
    os.pwrite(number, b"x", 0)
    return os.fstat(number).st_ctime_ns
