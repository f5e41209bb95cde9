"""Git in a workspace of the sandbox: every git that iterdev itself runs there is in a sandbox too.

What an agent writes decides what git does: attributes select filters and merge drivers, a repository inside of the
worktree has settings of its own, and git's folder of the worktree can be full of links. Inside, all of that reaches
only the worktree, git's folder of it, and new objects, which are checked before they are imported (`object_import.py`).

The sandbox writes down beside the worktree how to confine git, so that an engine that recovers the work of another one
does the same. Agents can read that file, but not write it.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.host import untrusted_files
from iterdev.host.folder_stamp import file_stamp
from iterdev.host.untrusted_files import PRIVATE

RECORD = Path(PRIVATE, "git.json")
SETTINGS = ("gc.auto=0", "maintenance.auto=false", "safe.directory=*")
"""The repository cannot be tidied up from inside, where the owners of other users' files are unknown too."""
VARIABLES = {"GIT_LFS_SKIP_DOWNLOAD_ERRORS": "1"}
"""There is no network inside: a large file that is not there stays a pointer."""
INSIDE = "ITERDEV_SANDBOX"
"""The variable of programs in the sandbox that names their workspace; iterdev may be one of them."""
LARGEST_LINK = 8192
LFS = "lfs"


class Store(Struct, frozen=True, kw_only=True):
    """Where git works inside: objects of the repository can be read, new ones go to a folder of the workspace."""

    common: Path
    """The repository's git folder."""
    admin: Path
    """The part of it that belongs to the worktree."""
    new: Path
    """Where new objects are written, mounted in place of the repository's."""
    known: Path
    """Where the repository's own are mounted instead."""
    large_files: Path | None = None
    """The same for the files of Git LFS, if there are any; it finds the known ones beside the known objects."""

    def objects(self) -> list[str]:
        """The words for bubblewrap that put the objects in their places."""
        repository = str(self.common / "objects")
        words = ["--bind", str(self.new), repository, "--ro-bind", repository, str(self.known)]
        if self.large_files:
            of_repository, known = str(self.common / LFS), str(self.known.parent / LFS)
            words += ["--bind", str(self.large_files), of_repository, "--ro-bind", of_repository, known]
        return words


class Record(Struct, frozen=True, kw_only=True):
    words: tuple[str, ...]
    """The command that makes the sandbox, up to what belongs to the workspace."""
    submodules: tuple[tuple[str, str], ...] = ()
    """For each submodule that is checked out: its path in the worktree, and git's folder of it."""


def confine(slot: Path, words: tuple[str, ...]) -> None:
    """Has every later git in the workspace run inside."""
    before = _record(slot)
    _write(slot, Record(words=words, submodules=before.submodules if before else ()))


def is_confined(tree: Path) -> bool:
    return (tree.parent / RECORD).exists()


def add_submodule(folder: Path) -> None:
    """Lets a confined git work in a submodule that was just checked out in a worktree."""
    tree = untrusted_files.root_of(folder)
    record = _record(tree.parent) if tree else None
    if tree is None or record is None:
        return
    path = str(folder.relative_to(tree))
    others = tuple(entry for entry in record.submodules if entry[0] != path)
    new = (path, os.path.realpath(git_dir(folder)))
    _write(tree.parent, Record(words=record.words, submodules=(*others, new)))


_git_dirs: dict[Path, tuple[tuple[int, ...], Path]] = {}
"""By worktree: the stamp of the file that leads to git's folder, and that folder."""


def git_dir(worktree: Path) -> Path:
    """Git's folder of a linked worktree. It is asked for so often that the file is read only when its stamp differs."""
    # Taken before it is read: what changes meanwhile is read the next time.
    stamp = file_stamp(link := worktree / ".git")
    if (known := _git_dirs.get(worktree)) and known[0] == stamp:
        return known[1]
    named = os.fsdecode(untrusted_files.read_bytes(link, root=worktree, most=LARGEST_LINK))
    found = Path(os.path.join(worktree, named.removeprefix("gitdir:").strip()))  # noqa: PTH118 - a name of any form
    if stamp and stat.S_ISREG(stamp[1]):
        _git_dirs[worktree] = stamp, found
    return found


def common_dir(admin: Path) -> Path:
    """The repository's git folder that git's folder of a worktree belongs to."""
    named = untrusted_files.read_bytes(admin / "commondir", root=admin, most=LARGEST_LINK)
    return Path(os.path.realpath(admin / os.fsdecode(named).strip()))


def alternates(common: Path) -> tuple[Path, ...]:
    """The objects of other repositories that a repository uses, such as one that was cloned with --shared."""
    found: list[Path] = []
    pending = [common / "objects"]
    while pending:
        named = untrusted_files.read_or_empty(pending.pop() / "info" / "alternates").splitlines()
        new = [path for path in map(Path, map(os.fsdecode, named)) if path.name == "objects" and path.is_absolute()]
        pending += [path for path in new if path not in found]
        found += [path for path in new if path not in found]
    return tuple(found)


def store(tree: Path) -> Store:
    """The objects of the worktree, with the folders that are needed."""
    return _store(tree, Path(os.path.realpath(git_dir(tree))), "objects")


def stores(tree: Path) -> Iterator[Store]:
    """The objects of the worktree, and of its submodules."""
    yield store(tree)
    record = _record(tree.parent)
    for path, admin in record.submodules if record else ():
        if Path(admin).is_dir():
            yield _store(tree, Path(admin), f"objects-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}")


def prefix(cwd: Path) -> tuple[str, ...]:
    """What comes before a git command that works in this folder; nothing outside of workspaces of the sandbox."""
    # Inside of a workspace, iterdev may be tried out on another one, which is in it.
    around = os.environ.get(INSIDE)
    tree = next((one for one in untrusted_files.roots_of(cwd) if os.path.realpath(one.parent) != around), None)
    record = _record(tree.parent) if tree else None
    if tree is None or record is None:
        return ()
    slot = Path(os.path.realpath(tree.parent))
    place = slot / tree.name
    main, *others = stores(place)
    words = [*record.words, "--ro-bind", str(slot), str(slot), "--bind", str(place), str(place)]
    words += ["--ro-bind", str(place / ".git"), str(place / ".git")]
    for one in (main, *others):
        words += [*one.objects(), *folder_words(one.admin)]
    return (*words, "--chdir", str(slot / cwd.relative_to(tree.parent)), "--")


def folder_words(admin: Path) -> list[str]:
    """Git's folder of a worktree: its files that lead elsewhere, or hold settings, cannot be written."""
    words = ["--bind", str(admin), str(admin), "--ro-bind", "/dev/null", str(admin / "config.worktree")]
    for name in ("commondir", "gitdir"):
        words += ["--ro-bind", str(admin / name), str(admin / name)]
    return words


def _store(tree: Path, admin: Path, name: str) -> Store:
    private, common = Path(os.path.realpath(tree.parent / PRIVATE)), common_dir(admin)
    known, large_files = private / f"{name}-known" / "objects", None
    if (common / LFS).is_dir() or b"filter=lfs" in untrusted_files.read_or_empty(tree / ".gitattributes"):
        large_files = private / f"{name}-lfs"
    found = Store(common=common, admin=admin, new=private / name, known=known, large_files=large_files)
    of_lfs = (large_files, common / LFS, known.parent / LFS) if large_files else ()
    for folder in (found.new, known, *of_lfs):
        folder.mkdir(parents=True, exist_ok=True)
    _name_alternate(found)
    return found


def _name_alternate(found: Store) -> None:
    """Leads git from the new objects to the known ones; what an agent put in the way is removed."""
    path, line = found.new / "info" / "alternates", os.fsencode(found.known) + b"\n"
    if untrusted_files.read_or_empty(path, root=found.new) == line:
        return
    try:
        untrusted_files.write_bytes(path, line, root=found.new)
    except OSError:
        untrusted_files.remove(path.parent, root=found.new)
        untrusted_files.write_bytes(path, line, root=found.new)


def _record(slot: Path) -> Record | None:
    try:
        return msgspec.json.decode((slot / RECORD).read_bytes(), type=Record)
    except OSError:
        return None


def _write(slot: Path, record: Record) -> None:
    path = slot / RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(msgspec.json.encode(record))
    new.replace(path)
