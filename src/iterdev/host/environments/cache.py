"""The environments that are kept for all workspaces and sessions of this user, by the content that they are made from.

An entry is complete from the moment it has its name: it is put together elsewhere and renamed. Whoever makes one holds
the lock of its key, and the lock ends with the process. An entry whose files were changed is not used again.
"""

import fcntl
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

import anyio
import msgspec
from msgspec import Struct

from iterdev.host.environments import folder_copies
from iterdev.host.environments.folder_copies import Listing, Moves

Ecosystem = Literal["python", "node"]
PAUSE = 0.1
"""Seconds between two looks at a lock that another engine holds."""

_RECORD, _FILES, _CONTENT, _TREE, _USED = "made.json", "files.msgpack", "content", "tree", "used"


class Made(Struct, frozen=True, kw_only=True):
    """How an entry was made."""

    ecosystem: Ecosystem
    source: str
    """What it was made from, as the user reads it."""
    places: Mapping[str, str]
    """The paths that its files mention, by what is there: `environment` and `tree`."""
    builds_in_tree: bool = False
    """Whether installing the project compiled something into the tree."""
    problems: tuple[str, ...] = ()
    installed: str = ""
    """The packages, what of them was downloaded, and how long that took."""


class _Files(Struct, frozen=True):
    content: Listing
    tree: Listing


class Entry(Struct, frozen=True, kw_only=True):
    """A cached environment."""

    key: str
    folder: Path
    made: Made

    @property
    def content(self) -> Path:
        return self.folder / _CONTENT

    @property
    def last_use(self) -> float:
        return (self.folder / _USED).stat().st_mtime

    def size(self) -> int:
        """Its bytes on the disk, of which hard links in workspaces share a part."""
        paths = (Path(root, name) for root, _, names in os.walk(self.folder) for name in names)
        return sum(path.lstat().st_blocks * 512 for path in paths)


class Cache(Struct, frozen=True):
    root: Path

    def find(self, key: str) -> Entry | None:
        folder = self.root / key
        try:
            made = msgspec.json.decode((folder / _RECORD).read_bytes(), type=Made)
        except (OSError, ValueError, RecursionError):
            return None
        return Entry(key=key, folder=folder, made=made)

    def entries(self) -> Iterator[Entry]:
        for folder in sorted(self.root.glob("*")):
            if found := self.find(folder.name):
                yield found

    def remove(self, key: str) -> None:
        """The name goes first, so that no engine takes half of an entry for a whole one."""
        making = Path(mkdtemp(dir=self._making(), prefix=f"{key}."))
        with suppress(FileNotFoundError):
            (self.root / key).rename(making / "removed")
        shutil.rmtree(making, ignore_errors=True)

    @asynccontextmanager
    async def locked(self, key: str) -> AsyncIterator[None]:
        """Waits until no other engine makes the entry."""
        locks = self.root / ".locks"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / key).open("wb") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await anyio.sleep(PAUSE)
            yield

    def publish(self, key: str, made: Made, content: Mapping[str, Path], generated: Mapping[str, Path]) -> Entry:
        """Takes the folders out of the workspace that they were made in. The caller holds the lock of the key."""
        self._sweep(key)
        self.remove(key)
        making = Path(mkdtemp(dir=self._making(), prefix=f"{key}."))
        for name, path in content.items():
            _move(path, making / _CONTENT / name)
        for name, path in generated.items():
            target = making / _TREE / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
        moves = Moves({path: path for path in made.places.values()})
        (making / _TREE).mkdir(exist_ok=True)
        files = _Files(*(folder_copies.listing(making / part, moves) for part in (_CONTENT, _TREE)))
        (making / _FILES).write_bytes(msgspec.msgpack.encode(files))
        (making / _RECORD).write_bytes(msgspec.json.encode(made))
        (making / _USED).touch()
        making.rename(self.root / key)
        return Entry(key=key, folder=self.root / key, made=made)

    def lay(
        self, entry: Entry, places: Mapping[str, str], content: Path, tree: Path, *, hard_links: bool = True
    ) -> bool:
        """Puts a copy of the entry into a workspace; false if the entry was damaged, and is removed."""
        files = msgspec.msgpack.decode((entry.folder / _FILES).read_bytes(), type=_Files)
        if not folder_copies.is_intact(entry.folder / _CONTENT, files.content):
            self.remove(entry.key)
            return False
        moves = Moves({old: places[name] for name, old in entry.made.places.items() if name in places})
        with suppress(OSError):
            os.utime(entry.folder / _USED, (time.time(), time.time()))
        content.mkdir(parents=True, exist_ok=True)
        folder_copies.lay(entry.folder / _CONTENT, files.content, content, moves, root=content, hard_links=hard_links)
        missing = [file for file in files.tree.files if not os.path.lexists(tree / file.path)]
        folder_copies.lay(
            entry.folder / _TREE,
            Listing(files.tree.folders, tuple(missing)),
            tree,
            moves,
            root=tree,
            hard_links=False,
        )
        return True

    def is_laid(self, entry: Entry, content: Path) -> bool:
        """Whether a copy in a workspace still has every file of the entry, unchanged."""
        files = msgspec.msgpack.decode((entry.folder / _FILES).read_bytes(), type=_Files)
        return folder_copies.is_intact(content, files.content)

    def _making(self) -> Path:
        folder = self.root / ".making"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _sweep(self, key: str) -> None:
        """Deletes what a killed engine left of the entry. The caller holds the lock of the key."""
        for folder in self._making().glob(f"{key}.*"):
            shutil.rmtree(folder, ignore_errors=True)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(target)
    except OSError:
        # The cache is on another file system.
        shutil.move(source, target)
