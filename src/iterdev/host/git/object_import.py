"""Imports the objects that a git in the sandbox has made, after checking that the content of each matches its name.

A program inside cannot damage the repository: it writes to a store of the workspace (`confinement.py`).
"""

import hashlib
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from iterdev.host import untrusted_files
from iterdev.host.git import command, commits, confinement
from iterdev.host.git.confinement import Store

FANOUT = re.compile(r"[0-9a-f]{2}")
NAMED = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
PACK = re.compile(r"pack-[0-9A-Za-z._-]+\.pack")
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
            _import_file(store.new / folder / name, objects / folder / name, store)
    for folder, name in _files(store.new, "pack"):
        if PACK.fullmatch(name):
            _import_pack(store.new / folder / name, objects / folder / name, store)


def _files(new: Path, only: str = "") -> Iterator[tuple[str, str]]:
    """The entries of the folders by which git spreads objects, or of one named folder."""
    for folder in [only] if only else sorted(filter(FANOUT.fullmatch, os.listdir(new))):  # noqa: PTH208
        with suppress(OSError), untrusted_files.opened_folder(new / folder, new, make=False) as opened:
            yield from ((folder, name) for name in os.listdir(opened))  # noqa: PTH208 - a descriptor


def _import_file(file: Path, target: Path, store: Store) -> None:
    """Copied first and then checked, so that nothing can change in between; git never sees a partial object."""
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix="tmp_obj_", dir=target.parent)
        temporary = Path(name)
        with open(descriptor, "wb") as copy:  # noqa: PTH123
            if not _copied(file, copy, store) or not _is_genuine(temporary, file.parent.name + file.name):
                temporary.unlink()
                return
            os.fsync(copy.fileno())
            os.fchmod(copy.fileno(), 0o444)
            temporary.replace(target)
    untrusted_files.unlink(file, root=store.new)


def _copied(file: Path, copy: BinaryIO, store: Store) -> bool:
    """Copies a regular file; false if it is anything else."""
    with suppress(OSError), untrusted_files.opened_folder(file.parent, store.new, make=False) as folder:
        with open(os.open(file.name, READ, dir_fd=folder), "rb") as source:  # noqa: PTH123 - in a folder
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                return False
            while chunk := source.read(CHUNK):
                copy.write(chunk)
        copy.flush()
        return True
    return False


def _is_genuine(file: Path, name: str) -> bool:
    digest, unpacked, size = hashlib.new(HASHES[len(name)], usedforsecurity=False), zlib.decompressobj(), 0
    with file.open("rb") as source, suppress(zlib.error):
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
        copied = _copied(file, copy, store)
    with suppress(command.GitFailed):
        if copied:
            commits.index_pack(target)
            untrusted_files.unlink(file, root=store.new)
            return
    target.unlink()
