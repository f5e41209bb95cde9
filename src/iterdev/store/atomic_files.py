"""Writing a file so that a reader, or a crash, never meets half of it."""

import fcntl
import os
from contextlib import suppress
from itertools import chain, count
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


def held(path: Path) -> bytes | None:
    """What a file holds, None if there is none; of something else in its place, such as a folder, nothing."""
    if not (path.exists() or path.is_symlink()):
        return None
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return None


def put_aside(path: Path, wanted: Path) -> Path:
    """Renames whatever is there; of names like the wanted one it gets the first that is free."""
    names = (wanted.with_stem(f"{wanted.stem}-{number}") for number in count(2))
    free = next(place for place in chain((wanted,), names) if not (place.exists() or place.is_symlink()))
    try:
        return path.rename(free)
    except OSError as error:
        raise _unwritable(free, error) from error


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
