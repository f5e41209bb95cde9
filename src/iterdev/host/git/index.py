"""What git knows of the files of a worktree. An agent can write all of it, so that iterdev's own is put back first.

Flags of the index (skip-worktree, assume-unchanged), times and sizes that do not belong to a file, a sparse checkout,
and settings of the worktree alone all make git overlook changes: those of the attempt itself, and of every later one.
"""

import hashlib
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from iterdev.host import untrusted_files
from iterdev.host.git.command import git, git_names
from iterdev.host.git.confinement import git_dir

INDEX = "index"
SETTINGS = ("config.worktree", "info/sparse-checkout")
"""Files of git's folder of a worktree that decide which files are looked at; git makes them for users who have them."""
KEPT = Path(untrusted_files.PRIVATE, "git")
"""Beside the worktree: these files as git made them."""
LARGEST = 1 << 30
HEADER, STAT, FLAGS = 12, 40, 2
"""Bytes of the parts of an index."""
HASHES = {"sha1": 20, "sha256": 32}
"""Those that git uses for ids, and for the index itself, with their sizes."""
SKIPPED = "S"
"""The tag of an entry whose file need not be there."""
ADD_ALL = ("add", "--all", "--sparse")
"""Also files that a sparse checkout leaves out: an agent may write them, and git would refuse to add them."""
GITLINK = "160000"
"""The mode of a submodule."""


class Own(Struct, frozen=True):
    """An index as iterdev's git left it."""

    stamp: tuple[int, ...]
    content: bytes
    modified: int


_own: dict[Path, Own] = {}
"""By git's folders of the worktrees."""


class Tracked(Struct, frozen=True):
    """What the agent's own index said, as far as it counts."""

    names: tuple[str, ...] = ()
    """All files, also those that git would ignore."""
    skipped: tuple[str, ...] = ()
    """Files that the agent had taken out of its worktree without deleting them."""
    submodules: tuple[str, ...] = ()
    """As `git update-index --index-info` reads them."""


def remember(worktree: Path) -> None:
    """To be called after iterdev's git wrote the index."""
    admin = _admin(worktree)
    with suppress(OSError):
        stamp = _stamp(admin)
        content = untrusted_files.read_bytes(admin / INDEX, root=admin, most=LARGEST)
        # Times tell which entries may have changed since; git compares them with that of the index itself.
        _own[admin] = Own(stamp, content, (admin / INDEX).lstat().st_mtime_ns)


def remember_settings(worktree: Path) -> None:
    """To be called after git made the worktree."""
    admin, kept = _admin(worktree), worktree.parent / KEPT
    for name in SETTINGS:
        if content := untrusted_files.read_or_empty(admin / name, root=admin):
            (kept / name).parent.mkdir(parents=True, exist_ok=True)
            (kept / name).write_bytes(content)
        else:
            (kept / name).unlink(missing_ok=True)


def put_back(worktree: Path) -> Tracked:
    """Puts iterdev's own index back, unless nobody else has written it; no file of the work changes.

    The index of another engine is not known: the new one is made of HEAD, and git reads every file.
    """
    admin = _admin(worktree)
    _put_settings_back(worktree, admin)
    own = _own.get(admin)
    with suppress(OSError):
        if own and _stamp(admin) == own.stamp:
            return Tracked()
    found = _tracked(worktree)
    untrusted_files.remove(admin / INDEX, root=admin)
    if own:
        untrusted_files.write_bytes(admin / INDEX, own.content, root=admin)
        os.utime(admin / INDEX, ns=(own.modified, own.modified), follow_symlinks=False)
    else:
        git("read-tree", "HEAD", cwd=worktree)
        if _is_sparse(worktree):
            git("sparse-checkout", "reapply", cwd=worktree)
        git("update-index", "-q", "--refresh", cwd=worktree, accept=(0, 1))
    if found.submodules:
        git("update-index", "-z", "--index-info", cwd=worktree, stdin="\0".join(found.submodules))
    remember(worktree)
    _write_files(worktree, found.skipped)
    return found


def names(worktree: Path) -> frozenset[str] | None:
    """The files in iterdev's own index; None if it is not the one that is there, or has another format."""
    admin = _admin(worktree)
    own = _own.get(admin)
    with suppress(OSError):
        if own and _stamp(admin) == own.stamp:
            return _names(own.content)
    return None


@lru_cache(maxsize=16)
def _names(content: bytes) -> frozenset[str] | None:
    """Reads an index of version 2, the one that git writes unless it is configured otherwise.

    An entry has what the file system said of the file, the id of its content, flags, and its path, which is filled up
    with null bytes to a multiple of 8. After the entries come extensions, each with its name and size, and a checksum.
    """
    signature, version, count = struct.unpack(">4sII", content[:HEADER])
    hashes = (name for name, size in HASHES.items() if content.endswith(_hash(name, content[:-size])))
    id_size = HASHES.get(next(hashes, ""), 0)
    if (signature, version) != (b"DIRC", 2) or not id_size:
        return None
    found, place = set(), HEADER
    for _ in range(count):
        begin = place + STAT + id_size + FLAGS
        end = content.index(b"\0", begin)
        found.add(os.fsdecode(content[begin:end]))
        place += (end - place) // 8 * 8 + 8
    while place < len(content) - id_size:
        name, size = struct.unpack(">4sI", content[place : place + 8])
        if name[:1].islower():
            return None  # One without which the entries cannot be understood.
        place += 8 + size
    return frozenset(found)


def _hash(name: str, content: bytes) -> bytes:
    return hashlib.new(name, content, usedforsecurity=False).digest()


def add_forced(worktree: Path, names: Iterable[str]) -> bool:
    """Adds files that the agent had added although git ignores them; False if there are none."""
    known = set(git_names("ls-files", "-z", cwd=worktree)) if names else set()
    forced = [name for name in names if name not in known and os.path.lexists(worktree / name)]
    if forced:
        options = ("--force", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul")
        git("--literal-pathspecs", "add", *options, cwd=worktree, stdin="\0".join(forced), accept=(0, 1))
    return bool(forced)


def _put_settings_back(worktree: Path, admin: Path) -> None:
    for name in SETTINGS:
        # A submodule has none: what is beside it can be written too.
        kept = worktree.parent / KEPT / name if untrusted_files.root_of(worktree) == worktree else None
        wanted = kept.read_bytes() if kept and kept.is_file() else b""
        if untrusted_files.read_or_empty(admin / name, root=admin) == wanted:
            continue
        if wanted:
            untrusted_files.write_bytes(admin / name, wanted, root=admin)
        else:
            untrusted_files.remove(admin / name, root=admin)


def _tracked(worktree: Path) -> Tracked:
    """Of a damaged index nothing counts."""
    listed = git("ls-files", "-t", "--stage", "-z", cwd=worktree, accept=(0, 128)).stdout.split("\0")
    entries = [(entry[:1], entry[2:], entry.partition("\t")[2]) for entry in listed if entry]
    gone = (name for tag, _, name in entries if tag == SKIPPED and not os.path.lexists(worktree / name))
    return Tracked(
        names=tuple(name for _, _, name in entries),
        skipped=tuple(gone),
        submodules=tuple(stage for _, stage, _ in entries if stage.startswith(GITLINK)),
    )


def _write_files(worktree: Path, names: Iterable[str]) -> None:
    """Writes files that are missing, unless they are meant to be."""
    if not names or _is_sparse(worktree):
        return
    known = set(git_names("ls-files", "-z", cwd=worktree))
    if wanted := [name for name in names if name in known]:
        git("checkout-index", "--quiet", "-z", "--stdin", cwd=worktree, stdin="\0".join(wanted), accept=(0, 1, 128))


def _is_sparse(worktree: Path) -> bool:
    set_to = git("config", "--type=bool", "--get", "core.sparseCheckout", cwd=worktree, accept=(0, 1, 128)).stdout
    return set_to.strip() == "true"


def _admin(worktree: Path) -> Path:
    return Path(os.path.realpath(git_dir(worktree)))


def _stamp(admin: Path) -> tuple[int, ...]:
    status = (admin / INDEX).lstat()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
