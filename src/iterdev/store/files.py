"""Writing a file so that a reader, or a crash, never meets half of it."""

import os
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
        temporary.unlink(missing_ok=True)
        raise HostError(
            f'Cannot write "{path}": {error.strerror or error}',
            hint="check the free space and the permissions (`iterdev doctor`), then `iterdev resume`",
        ) from error


def create(path: Path, text: str) -> None:
    """Writes the file only if there is none."""
    if not path.exists():
        write(path, text)
