"""The branch of a session: created once, moved forward by landings and back by rollbacks.

The journal knows where it is. Whatever else it was moved to is kept under a ref, and the branch is put back: an agent
can move it too. A ref of its own (`ids.tip_ref`) keeps what has landed, so that the user may delete the branch, move it
or check it out meanwhile: nothing is lost, and no checkout has its branch moved away under it.
"""

import shlex
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


def position(top: Path, session: SessionId, known: str, *, adopt: bool = False) -> Position:
    """Where the branch is, after bringing it to what has landed (`known`), if it was deleted or moved.

    With `adopt`, commits on top of what has landed become a part of the session: no agent can have made them.
    """
    head = _head(top, session)
    if head.commit == known:
        return Position(known)
    branch, behind = ids.branch(session), bool(head.commit) and refs.is_ancestor(top, head.commit or "", known)
    ahead = head.commit if head.commit and refs.is_ancestor(top, known, head.commit) else None
    if adopt and ahead:
        return Position(ahead, f"{branch} has commits that are no task's, up to {ahead[:12]}; they belong to it now")
    kept = ids.moved_ref(session, head.commit) if head.commit and not behind else ""
    if head.commit and kept:
        refs.move_ref(top, kept, head.commit)
    if head.worktree:
        return Position(known, _checked_out_note(session, head.worktree, kept, ahead=bool(ahead)))
    if not refs.move_refs(top, (_ref(session), known, head.commit or refs.ZERO), (ids.tip_ref(session), known, None)):
        check_name(top)
        raise HostError(f'The branch "{branch}" moved meanwhile', hint="try again")
    how = "had commits that are no task's" if ahead else "was moved" if head.commit else "was deleted"
    found = f"; where it was is kept: `git merge {kept}` gets it" if kept else ""
    return Position(known, "" if behind else f"{branch} {how}, and is at {known[:12]} again{found}")


def _checked_out_note(session: SessionId, worktree: str, kept: str, *, ahead: bool) -> str:
    where = f"{ids.branch(session)} is checked out in {worktree}"
    if ahead:
        return f"{where} and has commits there that are no task's; they are not part of the session"
    found = f"; where it was is kept as {kept}" if kept else ""
    how = f"git -C {worktree} merge {ids.tip_ref(session)}"
    return f"{where} and lacks work that has landed{found}; get it with `{how}`"


def advance(top: Path, session: SessionId, new: str, old: str) -> Position | None:
    """Moves the branch to what lands; None if it is not at `old`. A branch that is checked out stays as it is."""
    tip = ids.tip_ref(session), new, None
    if not is_checked_out(top, session):
        return Position(new) if refs.move_refs(top, (_ref(session), new, old), tip) else None
    refs.move_refs(top, tip)
    return position(top, session, new)


def is_checked_out(top: Path, session: SessionId) -> bool:
    """Whether a checkout has the branch checked out. Reading the HEAD of each is faster than git."""
    common, branch = refs.common_dir(top), f"ref: {_ref(session)}".encode()
    try:
        heads = [path.read_bytes().strip() for path in (common / "HEAD", *common.glob("worktrees/*/HEAD"))]
    except OSError:
        return bool(_head(top, session).worktree)
    if any(b".invalid" in head for head in heads):
        # The refs are in tables, and the files say nothing.
        return bool(_head(top, session).worktree)
    return branch in heads and bool(_head(top, session).worktree)


def commit_of(top: Path, session: SessionId) -> str | None:
    """Where the branch is, whoever moved it there."""
    return _head(top, session).commit


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
        hint=f"git -C {shlex.quote(worktree)} switch --detach",
    )


def _ref(session: SessionId) -> str:
    return f"{HEADS}{ids.branch(session)}"


def _head(top: Path, session: SessionId) -> _Head:
    listed = git("for-each-ref", "--format=%(objectname) %(worktreepath)", _ref(session), cwd=top).stdout
    commit, _, worktree = listed.rstrip("\n").partition(" ")
    return _Head(commit or None, worktree if worktree and Path(worktree).is_dir() else "")
