"""Reads back what people and agents added to the wisdom files, and the conventions on the discovery board."""

from collections.abc import Iterator
from pathlib import Path

from iterdev.core.collaboration import wisdom
from iterdev.core.collaboration.wisdom import Written
from iterdev.store import atomic_files
from iterdev.store.session_folder import discoveries

CONVENTION = "convention"
"""The type of a discovery that is a convention."""


class WisdomReader:
    """Reads the files again only after one of them has changed."""

    def __init__(self, folder: Path) -> None:
        self._board = folder / discoveries.NAME
        self._files = {name: folder / "wisdom" / f"{name}.md" for name in wisdom.FILES}
        self._read: tuple[object, ...] = ()

    def changed(self) -> list[Written]:
        """Every entry, if something was written since the last call."""
        now = tuple(_signature(path) for path in (self._board, *self._files.values()))
        if now == self._read:
            return []
        self._read = now
        return [*self._written_lines(), *self._conventions()]

    def _written_lines(self) -> Iterator[Written]:
        for name, path in self._files.items():
            body = atomic_files.read(path) or b""
            yield from wisdom.written_lines(name, body.decode("utf-8", "replace"))

    def _conventions(self) -> Iterator[Written]:
        for line in discoveries.read(self._board):
            if line.type == CONVENTION and (entry := wisdom.convention(line.data, str(line.worker))):
                yield entry


def _signature(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
