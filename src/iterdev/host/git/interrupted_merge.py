"""A merge into the user's checkout that was cut off: what it left there is undone, and nothing of the user's is.

Git has changed some of the files by then, and holds a lock on the index if it was killed. A ref says that a merge was
begun, and where.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId
from iterdev.host.git import refs
from iterdev.host.git.command import git, git_bytes, git_names
from iterdev.host.git.merge import try_merge
from iterdev.host.processes import ownership
from iterdev.host.processes.open_files import opened


@contextmanager
def undone_unless_complete(top: Path, session: SessionId, work: str) -> Iterator[None]:
    """Around a merge: if it fails or is interrupted the checkout is what it was; if it is killed, `undo` is left."""
    refs.move_ref(top, ids.accepting_ref(session), refs.head(top))
    try:
        yield
    except BaseException:
        undo(top, session, work)
        raise
    _forget(top, session)


def sessions(top: Path) -> list[SessionId]:
    """The sessions of which a merge was cut off."""
    listed = git("for-each-ref", "--format=%(refname)", ids.accepting_ref(SessionId("*")), cwd=top).stdout
    return [SessionId(ref.split("/")[2]) for ref in listed.splitlines()]


def undo(top: Path, session: SessionId, work: str) -> None:
    """Makes the files of a merge that was cut off what they were; those that the user has changed since stay."""
    before = refs.resolve(top, ids.accepting_ref(session))
    if before is None:
        return
    _remove_lock(top)
    if before == refs.resolve(top, "HEAD"):
        merged, complete, _ = try_merge(top, before, work)
        if refs.resolve(top, "MERGE_HEAD"):
            git("merge", "--quit", cwd=top)
        if complete:
            _restore(top, before, merged)
    _forget(top, session)


def _forget(top: Path, session: SessionId) -> None:
    git("update-ref", "-d", ids.accepting_ref(session), cwd=top)


def _remove_lock(top: Path) -> None:
    lock = top / git("rev-parse", "--git-path", "index.lock", cwd=top).stdout.rstrip("\n")
    if not lock.exists():
        return
    if not Path("/proc/self").exists() or _is_used(top, lock):
        raise UserError(
            f'Another git works in "{top}": it has locked the index',
            hint=f"wait until it has ended, then run accept again; if there is none: rm {lock}",
        )
    lock.unlink(missing_ok=True)


def _is_used(top: Path, lock: Path) -> bool:
    """Whether a process has the lock open, or a git runs in the checkout: it closes the lock while a hook runs.

    An engine's own git never locks the index of the checkout.
    """
    if os.path.realpath(lock) in opened():
        return True
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_git = (process / "comm").read_bytes().startswith(b"git")
            is_here = is_git and (process / "cwd").readlink().is_relative_to(os.path.realpath(top))
            if is_here and ownership.VARIABLE.encode() not in (process / "environ").read_bytes():
                return True
    return False


def _restore(top: Path, before: str, merged: str) -> None:
    options = ("--no-renames", "--name-only", "-z")
    touched = set(git_names("diff-tree", "-r", *options, before, merged, cwd=top))
    added = set(git_names("diff-tree", "-r", "--diff-filter=A", *options, before, merged, cwd=top))
    deleted = set(git_names("diff-tree", "-r", "--diff-filter=D", *options, before, merged, cwd=top))
    other_than_merged, other_than_before = _differing(top, merged), _differing(top, before)
    there = {name for name in touched if os.path.lexists(top / name)}
    as_merged = {name for name in touched if (name not in there if name in deleted else name not in other_than_merged)}
    as_before = {name for name in touched if (name not in there if name in added else name not in other_than_before)}
    open_ = touched - as_merged - as_before
    ours = as_merged | {name for name in open_ if name not in there or _is_beginning(top, name, merged)}
    _git_with_names(top, ours & added, "rm", "--quiet", "--cached", "--ignore-unmatch")
    for name in ours & added & there:
        _delete(top, name)
    _git_with_names(top, ours - added, "restore", f"--source={before}", "--staged", "--worktree")


def _differing(top: Path, tree: str) -> set[str]:
    """The files of a tree that are different in the checkout, or missing."""
    index = top / git("rev-parse", "--git-path", "index", cwd=top).stdout.rstrip("\n")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "index")
        # With what git knows of the files, those that have not changed need not be read.
        shutil.copy2(index, copy)
        variables = {"GIT_INDEX_FILE": str(copy)}
        git("read-tree", "--reset", tree, cwd=top, env=variables)
        listed = git("diff-files", "--name-only", "--ignore-submodules=all", "-z", cwd=top, env=variables).stdout
    return {name for name in listed.split("\0") if name}


def _is_beginning(top: Path, name: str, merged: str) -> bool:
    """Whether a file is the beginning of what git was writing when it was killed."""
    with suppress(OSError):
        return git_bytes("cat-file", "--filters", f"{merged}:{name}", cwd=top, stdin=b"").startswith(
            (top / name).read_bytes()
        )
    return False


def _git_with_names(top: Path, names: Iterable[str], *args: str) -> None:
    if listed := "\0".join(f":(top,literal){name}" for name in sorted(names)):
        git(*args, "--pathspec-from-file=-", "--pathspec-file-nul", cwd=top, stdin=listed)


def _delete(top: Path, name: str) -> None:
    """Deletes a file, and the folders that are empty without it."""
    (top / name).unlink(missing_ok=True)
    for folder in Path(name).parents[:-1]:
        with suppress(OSError):
            (top / folder).rmdir()
