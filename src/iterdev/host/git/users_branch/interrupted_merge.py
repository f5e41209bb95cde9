"""A change of the user's branch and checkout that was cut off: it is found to be complete, or what it left is undone.

Git has changed some of the files by then, and holds a lock on the index if it was killed. Refs say what was begun, and
where; they are there until the journal knows of it. Nothing of the user's is changed.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.types import AcceptStyle, SessionId
from iterdev.host.git import commits, refs
from iterdev.host.git.command import git, git_bytes, git_names
from iterdev.host.git.merge import try_merge
from iterdev.host.processes import ownership
from iterdev.host.processes.open_files import opened

OWN = "-own"
BACK = "back"
WORK = "work"


class Move(Struct, frozen=True, kw_only=True):
    """What was begun."""

    before: str
    """Where the branch was."""
    source: str
    """What is merged, or the earlier commit that the branch goes back to."""
    work: str
    """The session's commit that the source has the change of."""
    style: AcceptStyle = AcceptStyle.fast_forward
    own_author: bool = False
    is_back: bool = False
    """Accepted work is taken out of the branch again."""

    @property
    def name(self) -> str:
        return BACK if self.is_back else f"{self.style}{OWN if self.own_author else ''}"


class Completed(Struct, frozen=True):
    move: Move
    commit: str
    """Where the branch was then; the user may have gone on since."""


def begin(top: Path, session: SessionId, move: Move) -> None:
    """Records what is about to happen."""
    names = ((move.name, move.source), (WORK, move.work))
    incoming = ((ids.incoming_ref(session, name), commit, None) for name, commit in names)
    refs.move_refs(top, (ids.accepting_ref(session), move.before, None), *incoming)


@contextmanager
def undone_unless_complete(top: Path, session: SessionId, move: Move) -> Iterator[None]:
    """If it fails or is interrupted the checkout is what it was; if it is killed, `undo` is left to be called.

    The refs stay when it succeeds: `forget` is for when the journal knows.
    """
    begin(top, session, move)
    try:
        yield
    except BaseException:
        if completed(top, session, move.work) is None:
            undo(top, session, move.work)
        raise


def sessions(top: Path) -> list[SessionId]:
    """The sessions of which something was begun."""
    listed = git("for-each-ref", "--format=%(refname)", ids.accepting_ref(SessionId("*")), cwd=top).stdout
    return [SessionId(ref.split("/")[2]) for ref in listed.splitlines()]


def begun(top: Path, session: SessionId, work: str) -> Move | None:
    """What was begun; of an older version, only where the branch was is known."""
    spaces = (ids.accepting_ref(session), ids.incoming_ref(session))
    lines = git("for-each-ref", "--format=%(refname) %(objectname)", *spaces, cwd=top).stdout.splitlines()
    found = dict(line.split(" ") for line in lines)
    before = found.pop(ids.accepting_ref(session), None)
    if before is None:
        return None
    incoming = {ref.removeprefix(ids.incoming_ref(session)): commit for ref, commit in found.items()}
    brought = incoming.pop(WORK, work)
    name, source = next(iter(incoming.items()), (AcceptStyle.fast_forward.value, work))
    return Move(
        before=before,
        source=source,
        work=brought,
        style=AcceptStyle.fast_forward if name == BACK else AcceptStyle(name.removesuffix(OWN)),
        own_author=name.endswith(OWN),
        is_back=name == BACK,
    )


def completed(top: Path, session: SessionId, work: str) -> Completed | None:
    """What was begun, if git came to its end."""
    move, head = begun(top, session, work), refs.resolve(top, "HEAD")
    if move is None or head is None or head == move.before:
        return None
    if move.is_back:
        gone = not refs.is_ancestor(top, move.before, head)
        return Completed(move, move.source) if gone and refs.is_ancestor(top, move.source, head) else None
    if not refs.is_ancestor(top, move.before, head):
        return None
    since = git("rev-list", "--first-parent", "--reverse", f"{move.before}..{head}", cwd=top).stdout.split()
    if move.source in since:
        return Completed(move, move.source)
    first = since[0] if since else ""
    return Completed(move, first) if first and _is_end(top, session, move, first) else None


def _is_end(top: Path, session: SessionId, move: Move, commit: str) -> bool:
    """Whether a commit is the merge, or has all that was to be one commit; a hook may have changed its files."""
    if move.style is not AcceptStyle.squash:
        return refs.is_ancestor(top, move.source, commit)
    message = git("show", "--no-patch", "--format=%B", commit, cwd=top).stdout
    same = commits.tree_of(top, commit) == commits.tree_of(top, move.source)
    return same or ids.session_trailer(session) in message.splitlines()


def undo(top: Path, session: SessionId, work: str) -> None:
    """Makes the files of what was cut off what they were; those that the user has changed since stay."""
    move = begun(top, session, work)
    if move is None:
        return
    _remove_lock(top)
    if move.before == refs.resolve(top, "HEAD"):
        if refs.resolve(top, "MERGE_HEAD"):
            git("merge", "--quit", cwd=top)
        if target := _target(top, move):
            _restore(top, move.before, target)
        _remove_message(top, move.source)
    forget(top, session)


def _target(top: Path, move: Move) -> str | None:
    """The tree that it led to."""
    if move.is_back:
        return commits.tree_of(top, move.source)
    merged, complete, _ = try_merge(top, move.before, move.source)
    return merged if complete else None


def _remove_message(top: Path, source: str) -> None:
    """What `git merge --squash` leaves for the next commit."""
    path = top / git("rev-parse", "--git-path", "SQUASH_MSG", cwd=top).stdout.rstrip("\n")
    with suppress(OSError):
        if source.encode() in path.read_bytes():
            path.unlink()


def forget(top: Path, session: SessionId) -> None:
    """Removes the refs: the journal has it, or it is undone."""
    spaces = (ids.accepting_ref(session), ids.incoming_ref(session))
    lines = git("for-each-ref", "--format=delete %(refname)", *spaces, cwd=top).stdout
    git("update-ref", "--stdin", cwd=top, stdin=lines)


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
    written = open_ - deleted
    ours = as_merged | (open_ - there) | {name for name in written & there if _is_beginning(top, name, merged)}
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
        # A file with another time or inode and the same contents is not different.
        git("update-index", "-q", "--refresh", cwd=top, env=variables, accept=(0, 1))
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
