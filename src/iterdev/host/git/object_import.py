"""Imports the objects that a git in the sandbox has made, after checking that the content of each matches its name.

A program inside cannot damage the repository: it writes to a store of the workspace (`confinement.py`).
"""

import hashlib
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from iterdev.host import untrusted_files
from iterdev.host.git import command, commits, confinement
from iterdev.host.git.confinement import Store

FANOUT = re.compile(r"[0-9a-f]{2}")
NAMED = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
PACK = re.compile(r"pack-[0-9A-Za-z._-]+\.pack")
LARGE_FILE = re.compile(r"[0-9a-f]{64}")
HASHES = {40: "sha1", 64: "sha256"}
CHUNK = 1 << 20
LARGEST = 8 << 30
"""Bytes of an object, unpacked; a small file can unpack to any size."""
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def import_new(tree: Path) -> None:
    """Copies new objects of a confined worktree, and of its submodules, to their repositories."""
    if confinement.is_confined(tree):
        for store in confinement.stores(tree):
            _import(store)


def _import(store: Store) -> None:
    objects = store.common / "objects"
    for folder, name in _files(store.new):
        if NAMED.fullmatch(folder + name):
            _import_file(store.new / folder / name, objects / folder / name, store.new, _is_genuine)
    for folder, name in _files(store.new, "pack"):
        if PACK.fullmatch(name):
            _import_pack(store.new / folder / name, objects / folder / name, store)
    if store.large_files:
        _import_large_files(store.large_files, store.common / confinement.LFS)


def _import_large_files(new: Path, target: Path) -> None:
    """Git LFS stores a file below `objects`, in folders named after the beginning of its hash."""
    for folder, _, names in os.walk(new / "objects"):
        for file in (Path(folder, name) for name in names if LARGE_FILE.fullmatch(name)):
            _import_file(file, target / "objects" / file.name[:2] / file.name[2:4] / file.name, new, _is_whole)


def _files(new: Path, only: str = "") -> Iterator[tuple[str, str]]:
    """The entries of the folders by which git spreads objects, or of one named folder."""
    for folder in [only] if only else sorted(filter(FANOUT.fullmatch, os.listdir(new))):  # noqa: PTH208
        with suppress(OSError), untrusted_files.opened_folder(new / folder, new, make=False) as opened:
            yield from ((folder, name) for name in os.listdir(opened))  # noqa: PTH208 - a descriptor


def _import_file(file: Path, target: Path, new: Path, is_genuine: Callable[[Path, Path], bool]) -> None:
    """Copied first and then checked, so that nothing can change in between; git never sees a partial object."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix="tmp_obj_", dir=target.parent)
        temporary = Path(name)
        with open(descriptor, "wb") as copy:  # noqa: PTH123
            if not _copied(file, copy, new) or not is_genuine(temporary, file):
                temporary.unlink()
                return
            os.fsync(copy.fileno())
            os.fchmod(copy.fileno(), 0o444)
            temporary.replace(target)
    untrusted_files.unlink(file, root=new)


def _copied(file: Path, copy: BinaryIO, new: Path) -> bool:
    """Copies a regular file; false if it is anything else."""
    with suppress(OSError), untrusted_files.opened_folder(file.parent, new, make=False) as folder:
        with open(os.open(file.name, READ, dir_fd=folder), "rb") as source:  # noqa: PTH123 - in a folder
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                return False
            while chunk := source.read(CHUNK):
                copy.write(chunk)
        copy.flush()
        return True
    return False


def _is_whole(copy: Path, file: Path) -> bool:
    with copy.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == file.name


def _is_genuine(copy: Path, file: Path) -> bool:
    name = file.parent.name + file.name
    digest, unpacked, size = hashlib.new(HASHES[len(name)], usedforsecurity=False), zlib.decompressobj(), 0
    with copy.open("rb") as source, suppress(zlib.error):
        while rest := unpacked.unconsumed_tail or source.read(CHUNK):
            content = unpacked.decompress(rest, CHUNK)
            size += len(content)
            digest.update(content)
            if size > LARGEST or (not content and unpacked.eof):
                break
        return size <= LARGEST and unpacked.eof and digest.hexdigest() == name
    return False


def _import_pack(file: Path, target: Path, store: Store) -> None:
    """Git checks the pack and writes its index; it ignores a pack without one."""
    if target.exists():
        return
    with target.open("xb") as copy:
        copied = _copied(file, copy, store.new)
    with suppress(command.GitFailed):
        if copied:
            commits.index_pack(target)
            untrusted_files.unlink(file, root=store.new)
            return
    target.unlink()
