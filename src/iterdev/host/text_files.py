"""Reading files that people or agents wrote or named. A pipe or a device would block, or never end, and is refused."""

import errno
import os
import stat
from pathlib import Path

LARGEST = 64 * 1024 * 1024
"""Bytes; no table, text or configuration that people write comes near."""


def read(path: Path, most: int = LARGEST, *, errors: str = "strict") -> str:
    """The text of a regular file; raises OSError, or UnicodeDecodeError if it is not UTF-8."""
    return read_bytes(path, most).decode("utf-8", errors)


def read_bytes(path: Path, most: int = LARGEST) -> bytes:
    """The content of a regular file; raises OSError."""
    try:
        # Opening a pipe without a writer must not wait for one.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:
        raise OSError(errno.EINVAL, "The name contains a null character", str(path)) from error
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(errno.EINVAL, "It is not a regular file", str(path))
        body = file.read(most + 1)
    if len(body) > most:
        raise OSError(errno.EFBIG, f"It is larger than {most // 2**20} MiB", str(path))
    return body
