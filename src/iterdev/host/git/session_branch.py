"""The branch of a session: created once, moved forward by landings and back by rollbacks.

A ref of its own (`ids.tip_ref`) keeps what has landed, so that the user may delete the branch, move it or check it out
meanwhile: nothing is lost, and no checkout has its branch moved away under it.
"""

from pathlib import Path

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import HostError, UserError
from iterdev.core.types import SessionId
from iterdev.host.git import refs
from iterdev.host.git.command import git

HEADS = "refs/heads/"
FOLDER = ids.branch(SessionId("")).rstrip("/")
"""What the branches of all sessions are in; a branch of that name stands in their way."""


class Position(Struct, frozen=True):
    tip: str
    """The commit that the next work goes on top of."""
    note: str = ""
    """What the user should know about the branch."""


class _Head(Struct, frozen=True):
    commit: str | None
    worktree: str
    """The checkout that has the branch checked out, if one has."""


def names(top: Path) -> set[str]:
    """The sessions that have a branch or a ref in the repository, whichever journal they are in."""
    listed = git("for-each-ref", "--format=%(refname)", f"{HEADS}{FOLDER}/", "refs/iterdev/", cwd=top).stdout
    parts = (line.removeprefix(HEADS).removeprefix("refs/").split("/") for line in listed.splitlines())
    return {part[1] for part in parts}


def check_name(top: Path) -> None:
    """Git cannot have a branch `iterdev/...` beside one called `iterdev`."""
    if refs.resolve(top, f"{HEADS}{FOLDER}"):
        raise UserError(
            f'A branch called "{FOLDER}" exists, and git cannot have "{FOLDER}/..." beside it',
            hint=f"git branch -m {FOLDER} {FOLDER}-old",
        )


def create(top: Path, session: SessionId, base: str) -> None:
    """For a new session; a branch that exists belongs to another one."""
    if not refs.move_ref(top, _ref(session), base, refs.ZERO):
        check_name(top)
        raise HostError(f'Cannot create the branch "{ids.branch(session)}"', hint="try again")


def discard(top: Path, session: SessionId, base: str) -> None:
    """Deletes the branch of a session that could not be created; one that has moved stays."""
    git("update-ref", "-d", _ref(session), base, cwd=top, accept=(0, 1, 128))


def position(top: Path, session: SessionId, known: str) -> Position:
    """Where the branch is, after bringing it to what has landed (`known`), if it was deleted or moved away from that.

    Commits on top of what has landed are the user's, or a landing that was not recorded: both stay.
    """
    head = _head(top, session)
    if head.commit == known or (head.commit and refs.is_ancestor(top, known, head.commit)):
        return Position(head.commit)
    branch, behind = ids.branch(session), bool(head.commit) and refs.is_ancestor(top, head.commit or "", known)
    kept = ids.moved_ref(session, head.commit) if head.commit and not behind else ""
    if head.commit and kept:
        refs.move_ref(top, kept, head.commit)
    where = f"is checked out in {head.worktree}" if head.worktree else "was deleted" if not head.commit else "was moved"
    found = f"; where it was is kept as {kept}" if kept else ""
    if head.worktree:
        how = f"git -C {head.worktree} merge {ids.tip_ref(session)}"
        return Position(known, f"{branch} {where} and lacks work that has landed{found}; get it with `{how}`")
    if not refs.move_refs(top, (_ref(session), known, head.commit or refs.ZERO), (ids.tip_ref(session), known, None)):
        check_name(top)
        raise HostError(f'The branch "{branch}" moved meanwhile', hint="try again")
    return Position(known, "" if behind else f"{branch} {where}, and is at {known[:12]} again{found}")


def advance(top: Path, session: SessionId, new: str, old: str) -> Position | None:
    """Moves the branch to what lands; None if it is not at `old`. A branch that is checked out stays as it is."""
    head, tip = _head(top, session), (ids.tip_ref(session), new, None)
    if not head.worktree:
        return Position(new) if refs.move_refs(top, (_ref(session), new, old), tip) else None
    if head.commit and head.commit != old and refs.is_ancestor(top, old, head.commit):
        return None
    refs.move_refs(top, tip)
    return position(top, session, new)


def last_known(top: Path, session: SessionId, base: str) -> str:
    """What has landed in a session of which the journal does not say it: it is new, or was rebuilt from its folder."""
    return refs.resolve(top, ids.tip_ref(session)) or refs.resolve(top, _ref(session)) or base


def rewind(top: Path, session: SessionId, to: str, kept: str) -> None:
    """Moves the branch back, and puts what was on it under the ref `kept`; doing it again changes nothing."""
    head = _head(top, session)
    if head.commit != to and head.worktree:
        raise checked_out(session, head.worktree)
    if head.commit and head.commit != to:
        refs.keep_under(top, kept, head.commit)
    landed = refs.resolve(top, ids.tip_ref(session))
    if landed and landed != to and not refs.is_ancestor(top, landed, head.commit or to):
        # It landed while the branch was checked out, and is not on it.
        refs.keep_under(top, f"{kept}-landed", landed)
    if not refs.move_refs(top, (_ref(session), to, head.commit or refs.ZERO), (ids.tip_ref(session), to, None)):
        raise HostError(f'The branch "{ids.branch(session)}" moved meanwhile', hint="try again")


def require_free(top: Path, session: SessionId) -> None:
    """Fails while a checkout has the branch checked out."""
    if worktree := _head(top, session).worktree:
        raise checked_out(session, worktree)


def checked_out(session: SessionId, worktree: str) -> UserError:
    return UserError(
        f'The branch "{ids.branch(session)}" is checked out in "{worktree}", and would be moved under it',
        hint=f"git -C {worktree} switch --detach",
    )


def all_work(top: Path, session: SessionId) -> str:
    """The commit with everything that has landed, and with what the user committed on the branch."""
    head, landed, branch = _head(top, session).commit, refs.resolve(top, ids.tip_ref(session)), ids.branch(session)
    if landed is None or head is None:
        if head or landed:
            return head or landed or ""
        raise UserError(f'The branch "{branch}" does not exist', hint="git branch --list 'iterdev/*'")
    if head == landed or refs.is_ancestor(top, landed, head):
        return head
    if refs.is_ancestor(top, head, landed):
        return landed
    raise UserError(
        f'The branch "{branch}" was moved, and lacks work that has landed',
        hint=f"merge what you need of it and of {ids.tip_ref(session)}, such as `git merge {ids.tip_ref(session)}`",
    )


def _ref(session: SessionId) -> str:
    return f"{HEADS}{ids.branch(session)}"


def _head(top: Path, session: SessionId) -> _Head:
    listed = git("for-each-ref", "--format=%(objectname) %(worktreepath)", _ref(session), cwd=top).stdout
    commit, _, worktree = listed.rstrip("\n").partition(" ")
    return _Head(commit or None, worktree if worktree and Path(worktree).is_dir() else "")
