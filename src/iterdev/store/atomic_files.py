"""Writing files so that neither a reader nor a crash sees a partial file.

Agents can write into a session folder: a pipe in the place of a file, or a file without end, must not stop an engine.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import IO

from iterdev.core.errors import HostError

SUFFIX = ".iterdev-tmp"
LARGEST = 64 * 1024 * 1024
"""Bytes that are read of a file."""
CHUNK = 65536
PAUSE, PATIENCE = 0.01, 1.0
"""Seconds between two checks of a lock, and those that another writer may hold a file to which lines are appended."""


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        problem = "the disk is full" if is_full else error.strerror or error
        hint = (
            "free some space, then run `iterdev resume`" if is_full else f"make {path.parent} writable, then try again"
        )
        raise HostError(f'Cannot write "{path}": {problem}', hint=hint) from error


def write(path: Path, text: str, *, durable: bool = False) -> None:
    """Temporary file and rename; `durable` also forces the data to the disk."""
    temporary = path.with_name(path.name + SUFFIX)
    with _writing(path):
        try:
            with os.fdopen(_open_in_folder(temporary), "wb", buffering=0) as file:
                rest = memoryview(text.encode(errors="backslashreplace"))
                while rest:
                    rest = rest[file.write(rest) :]
                if durable:
                    os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def _open_in_folder(path: Path) -> int:
    """A descriptor to write to, of an empty file; its folder is made if there is none."""
    try:
        return open_to_write(path, os.O_WRONLY | os.O_TRUNC)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open_to_write(path, os.O_WRONLY | os.O_TRUNC)


def make_folder(path: Path) -> None:
    with _writing(path):
        path.mkdir(parents=True, exist_ok=True)


def make_private(path: Path) -> None:
    """Creates a folder that only its owner can look into, or makes an existing one such a folder."""
    with _writing(path):
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.stat().st_mode & 0o077:
            path.chmod(0o700)


def create(path: Path, text: str) -> None:
    """Writes the file only if there is none."""
    if not path.exists():
        write(path, text)


def read(path: Path) -> bytes | None:
    """The content of a file as far as it is read; None if it does not exist, empty if it is not a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b"" if os.path.lexists(path) else None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            return b""
        raise
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return b""
        # Python sets aside as much memory as is asked for.
        content = os.read(descriptor, min(LARGEST, found.st_size + 1))
        while len(content) < LARGEST and (more := os.read(descriptor, min(LARGEST - len(content), CHUNK))):
            content += more
        return content
    finally:
        os.close(descriptor)


def open_to_write(path: Path, flags: int, mode: int = 0o666) -> int:
    """A descriptor of a file, which is made if there is none. A pipe or socket in its place is renamed.

    Nothing else is ever renamed: agents cannot make devices, and one that the user leads to is theirs.
    """
    with suppress(FileNotFoundError):
        kind = path.lstat().st_mode
        if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
            set_aside(path, path.with_name(f"{path.name}.no-file"))
    # One that is put there in this moment, or that a link leads to, is an error and not waited for.
    return os.open(path, flags | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, mode)


def set_aside(path: Path, wanted: Path) -> Path:
    """Renames a file to the wanted name or, if it is taken, to the first free name with a number appended."""
    names = (wanted.with_stem(f"{wanted.stem}-{number}") for number in count(2))
    free = next(place for place in chain((wanted,), names) if not os.path.lexists(place))
    with _writing(free):
        return path.rename(free)


def extend(path: Path, lines: str) -> None:
    """Appends whole lines in one write."""
    data = lines.encode(errors="backslashreplace")
    with _writing(path), os.fdopen(open_to_write(path, os.O_RDWR | os.O_APPEND), "ab+") as file:
        # A long line of another writer becomes visible page by page; a part of it must not look like a broken line.
        _lock(file)
        size = os.fstat(file.fileno()).st_size
        # A writer that was killed may have left half a line, to which nothing must be appended.
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            data = b"\n" + data
        file.write(data)


def _lock(file: IO[bytes]) -> None:
    """Waits for other writers, which take a moment; a process that holds the lock longer is not a writer."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(PAUSE)
