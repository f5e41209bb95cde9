"""Writing files so that neither a reader nor a crash sees a partial file."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path

from iterdev.core.errors import HostError

SUFFIX = ".iterdev-tmp"


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
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                file.write(text)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise


def make_folder(path: Path) -> None:
    with _writing(path):
        path.mkdir(parents=True, exist_ok=True)


def create(path: Path, text: str) -> None:
    """Writes the file only if there is none."""
    if not path.exists():
        write(path, text)


def read(path: Path) -> bytes | None:
    """The content of a file; None if it does not exist, empty if it is not a file."""
    if not os.path.lexists(path):
        return None
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return None


def set_aside(path: Path, wanted: Path) -> Path:
    """Renames a file to the wanted name, or to the first free one of those with a number behind it."""
    names = (wanted.with_stem(f"{wanted.stem}-{number}") for number in count(2))
    free = next(place for place in chain((wanted,), names) if not os.path.lexists(place))
    with _writing(free):
        return path.rename(free)


def extend(path: Path, lines: str) -> None:
    """Appends whole lines in one write."""
    data = lines.encode(errors="backslashreplace")
    with _writing(path), path.open("ab+") as file:
        # A long line of another writer becomes visible page by page; a part of it must not look like a broken line.
        fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file.fileno()).st_size
        # A writer that was killed may have left half a line, to which nothing must be appended.
        if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
            data = b"\n" + data
        file.write(data)
