"""What git leaves behind when the disk is full: objects that it had begun to write."""

import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from iterdev.host.processes.open_files import opened

REASONS = (b"No space left on device", b"Disk quota exceeded")
TEMPORARY = ("[0-9a-f][0-9a-f]/tmp_obj_*", "pack/tmp_*", "tmp_objdir-*", "info/*/tmp_graph_*")
ABANDONED = 600.0
"""Seconds after which an object that nobody writes is not going to be completed."""
CLOCK = 1.0
"""Seconds by which the times of files may differ from the clock."""


def is_reason(stderr: bytes) -> bool:
    return any(reason in stderr for reason in REASONS)


def remove_temporary_objects(objects: Path, since: float) -> None:
    """Removes what was begun since then and nobody writes any more: a git of the user may be writing too."""
    remove(_unused(path for path in _temporary(objects) if _modified(path) >= since - CLOCK))


def abandoned_objects(objects: Path) -> list[Path]:
    """Objects that were begun a while ago, and that no process writes any more."""
    return _unused(path for path in _temporary(objects) if _modified(path) < time.time() - ABANDONED)


def remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _temporary(objects: Path) -> Iterator[Path]:
    return (path for pattern in TEMPORARY for path in objects.glob(pattern))


def _unused(paths: Iterable[Path]) -> list[Path]:
    found = list(paths)
    used = opened() if found else set()
    return [path for path in found if not any(Path(name).is_relative_to(path) for name in used)]


def _modified(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0
