"""Writing a file so that a reader, or a crash, never meets half of it."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from iterdev.core.errors import HostError

SUFFIX = ".iterdev-tmp"


def write(path: Path, text: str, *, durable: bool = False) -> None:
    """Temporary file and rename; what could not be made again is also forced to the disk."""
    temporary = path.with_name(path.name + SUFFIX)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise _unwritable(path, error) from error


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def create(path: Path, text: str) -> None:
    """Writes the file only if there is none."""
    if not path.exists():
        write(path, text)


def extend(path: Path, lines: str) -> None:
    """Adds whole lines in one write, and changes nothing that is there."""
    data = lines.encode()
    try:
        with path.open("ab+") as file:
            # A long line of another writer becomes visible page by page; its half must not look like one left behind.
            fcntl.flock(file, fcntl.LOCK_EX)
            size = os.fstat(file.fileno()).st_size
            # A writer that was killed may have left half a line; the next one must not grow onto it.
            if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                data = b"\n" + data
            file.write(data)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> HostError:
    return HostError(
        f'Cannot write "{path}": {error.strerror or error}',
        hint="check the free space and the permissions (`iterdev doctor`), then `iterdev resume`",
    )
