"""Git's objects in a sandbox: those of the repository can be read there, new ones go to a store of the workspace.

A program inside cannot damage the repository. `adopt` copies new objects to it, after checking that the content of each
one matches its name.
"""

import hashlib
import os
import re
import shutil
import stat
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from iterdev.host.git import command, commits, submodules, worktrees
from iterdev.host.workspaces.pool import Workspace

NAMED = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
HASHES = {40: "sha1", 64: "sha256"}


class Store(Struct, frozen=True, kw_only=True):
    common: Path
    """The repository's git folder."""
    admin: Path
    """The part of it that belongs to the worktree."""
    new: Path
    """Where new objects are written, mounted in place of the repository's."""
    known: Path
    """Where the repository's own are mounted instead."""


def prepare(workspace: Workspace) -> Store:
    admin = Path(os.path.realpath(worktrees.git_dir(workspace.tree)))
    common = Path(os.path.realpath(admin / (admin / "commondir").read_text(encoding="utf-8").strip()))
    private = Path(os.path.realpath(workspace.private))
    store = Store(common=common, admin=admin, new=private / "objects", known=private / "known")
    for folder in (store.new / "info", store.known):
        folder.mkdir(parents=True, exist_ok=True)
    (store.new / "info" / "alternates").write_text(f"{store.known}\n", encoding="utf-8")
    return store


def adopt(workspace: Workspace, base: str) -> None:
    """Copies the objects that a sandboxed git has made to the repository; without a sandbox there are none.

    A HEAD that was deleted is restored to the base; git's other files cannot be deleted in the sandbox. Repositories
    that were made inside of the worktree are made plain folders.
    """
    if not (workspace.private / "objects").is_dir() or not workspace.tree.is_dir():
        return
    store = prepare(workspace)
    if not (store.admin / "HEAD").is_file():
        (store.admin / "HEAD").write_text(f"{base}\n", encoding="ascii")
    submodules.disarm(workspace.tree, store.common, store.admin)
    for file in store.new.glob("[0-9a-f][0-9a-f]/*"):
        name = file.parent.name + file.name
        if NAMED.fullmatch(name) and _is_plain(file) and _is_genuine(file, name):
            _install(file, store.common / "objects" / file.parent.name / file.name)
            file.unlink()
    for file in store.new.glob("pack/pack-*.pack"):
        if _is_plain(file):
            _install_pack(file, store.common / "objects" / "pack" / file.name)


def _is_plain(file: Path) -> bool:
    return stat.S_ISREG(file.lstat().st_mode)


def _is_genuine(file: Path, name: str) -> bool:
    with suppress(OSError, zlib.error):
        content = zlib.decompress(file.read_bytes())
        return hashlib.new(HASHES[len(name)], content, usedforsecurity=False).hexdigest() == name
    return False


def _install(file: Path, target: Path) -> None:
    """Temporary file and rename, so that git never reads a partial object."""
    if target.exists():
        return
    target.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix="tmp_obj_", dir=target.parent, delete=False) as copy:
        copy.write(file.read_bytes())
        copy.flush()
        os.fsync(copy.fileno())
        os.fchmod(copy.fileno(), 0o444)
        Path(copy.name).replace(target)


def _install_pack(file: Path, target: Path) -> None:
    """Git checks the pack and writes its index; it ignores a pack without one."""
    if target.exists():
        return
    shutil.copyfile(file, target)
    with suppress(command.GitFailed):
        commits.index_pack(target)
        file.unlink()
        return
    target.unlink()
