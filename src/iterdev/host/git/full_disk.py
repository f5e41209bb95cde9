"""What git leaves behind when the disk is full: objects that it had begun to write."""

import shutil
from contextlib import suppress
from pathlib import Path

from iterdev.host.processes.open_files import opened

REASONS = (b"No space left on device", b"Disk quota exceeded")
TEMPORARY = ("[0-9a-f][0-9a-f]/tmp_obj_*", "pack/tmp_*", "tmp_objdir-*", "info/*/tmp_graph_*")
CLOCK = 1.0
"""Seconds by which the times of files may differ from the clock."""


def is_reason(stderr: bytes) -> bool:
    return any(reason in stderr for reason in REASONS)


def remove_temporary_objects(objects: Path, since: float) -> None:
    """Removes what was begun since then and nobody writes any more: a git of the user may be writing too."""
    begun = [path for pattern in TEMPORARY for path in objects.glob(pattern) if _modified(path) >= since - CLOCK]
    used = opened() if begun else set()
    for path in begun:
        if not any(Path(name).is_relative_to(path) for name in used):
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _modified(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0
