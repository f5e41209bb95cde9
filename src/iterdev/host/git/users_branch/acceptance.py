"""Brings the work of a session into the user's branch, as git would: with the user's hooks, name and signature.

It refuses whatever would lose something of the user's, and leaves the checkout as it was.
"""

import os
import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from subprocess import CompletedProcess

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.session.delivery import Accepted
from iterdev.core.types import AcceptStyle, SessionId
from iterdev.host.git import commits, refs, session_branch, submodules
from iterdev.host.git.command import GitFailed, git, git_names, users_git
from iterdev.host.git.merge import adds_nothing, try_merge, try_merge_since
from iterdev.host.git.users_branch import interrupted_merge, own_author
from iterdev.host.git.users_branch.interrupted_merge import Move

Effect = Callable[[str], AbstractContextManager[None]]


class Merged(Struct, frozen=True):
    commit: str
    notes: tuple[str, ...] = ()
    """What is left for the user to do."""
    before: str = ""
    """Where the branch was; empty if it had the work already."""


class How(Struct, frozen=True, kw_only=True):
    style: AcceptStyle = AcceptStyle.fast_forward
    own_author: bool = False
    message: str = ""
    """Of the one commit."""
    previous: Accepted | None = None
    """What the branch got of the session before."""


def accept(
    top: Path,
    session: SessionId,
    into: str,
    work: str,
    how: How = How(),  # noqa: B008 - frozen
    *,
    record: Callable[[Merged], None] = lambda _: None,
    effect: Effect = lambda _: nullcontext(),
) -> Merged:
    """Brings the session's work, a commit, into the branch that is checked out; `record` makes it known for good.

    What was cut off before is undone; if git had come to its end, the caller has recorded it.
    """
    require_branch(top, into)
    interrupted_merge.undo(top, session, work)
    tree = merged_tree(top, session, into, work, how.previous)
    moved = session_branch.position(top, session, work).note
    moved_notes = (moved,) if moved else ()
    before = refs.head(top)
    if refs.is_ancestor(top, work, before) or (_is_rewritten(how) and tree == commits.tree_of(top, before)):
        return Merged(before, moved_notes)
    notes = submodules.publish(top, "HEAD", tree, session)
    source = _source(top, work, tree, how)
    move = Move(before=before, source=source, work=work, style=how.style, own_author=how.own_author)
    with interrupted_merge.undone_unless_complete(top, session, move):
        _merge(top, session, source, how, effect)
    merged = Merged(refs.head(top), (*notes, *moved_notes), before)
    record(merged)
    with effect("forget accept"):
        interrupted_merge.forget(top, session)
    return merged


def _is_rewritten(how: How) -> bool:
    """Whether the branch gets other commits than those of the session."""
    return how.own_author or how.style is AcceptStyle.squash


def _source(top: Path, work: str, tree: str, how: How) -> str:
    """The commit that git merges."""
    if how.style is AcceptStyle.squash:
        return commits.commit_tree(top, tree, (refs.head(top),), how.message, own_author.NOBODY)
    if not how.own_author:
        return work
    known = base_of(top, how.previous, work)
    return own_author.rewritten(top, work, known, how.previous.commit if how.previous and known else "")


def base_of(top: Path, previous: Accepted | None, work: str) -> str:
    """The session's commit whose change the branch has in other commits; empty if git itself knows what it has.

    A later change of the session is then merged as what has changed since that commit. If the user has taken the work
    out of the branch, it is merged as a whole.
    """
    head = refs.head(top)
    if previous is None or not previous.work or not previous.before or not refs.resolve(top, previous.work):
        return ""
    if refs.is_ancestor(top, previous.work, head) or not refs.is_ancestor(top, previous.commit, head):
        return ""
    if refs.is_ancestor(top, previous.commit, work):
        return ""  # The session was brought up to date with the branch since.
    again, complete, _ = try_merge_since(top, previous.before, head, previous.commit)
    is_there = not complete or again == commits.tree_of(top, head)
    return previous.work if is_there else ""


def merged_tree(top: Path, session: SessionId, into: str, work: str, previous: Accepted | None = None) -> str:
    """The tree that accepting leads to; raises `UserError` if it would lose something. No ref and no file changes."""
    require_branch(top, into)
    _require_clean(top, "accept")
    branch = ids.branch(session)
    base = base_of(top, previous, work)
    head = refs.head(top)
    merged, complete, conflicts = try_merge_since(top, base, head, work) if base else try_merge(top, head, work)
    if not complete:
        raise UserError(
            f'"{branch}" conflicts with "{into}" in {", ".join(conflicts)}; nothing was changed',
            hint=f"git merge {branch if session_branch.commit_of(top, session) == work else work}",
        )
    _require_room(top, merged, "accept")
    return merged


def take_back(
    top: Path,
    session: SessionId,
    accepted: Accepted,
    *,
    record: Callable[[], None],
    effect: Effect = lambda _: nullcontext(),
) -> None:
    """Moves the user's branch back to where it was before the work came; raises `UserError` if anything followed."""
    check_take_back(top, session, accepted)
    move = Move(before=accepted.commit, source=accepted.before, work=accepted.work, is_back=True)
    with interrupted_merge.undone_unless_complete(top, session, move), effect("move branch back"):
        # It refuses to touch files with changes that are not committed, and takes another time for a change.
        users_git("update-index", "-q", "--refresh", cwd=top)
        reset = users_git("reset", "--quiet", "--keep", accepted.before, cwd=top)
        if reset.returncode:
            raise GitFailed(("reset", "--keep", accepted.before), reset.returncode, reset.stderr)
    record()
    with effect("forget accept"):
        interrupted_merge.forget(top, session)


def check_take_back(top: Path, session: SessionId, accepted: Accepted) -> None:
    """Raises `UserError` if the work cannot be taken out as if it had never come."""
    require_branch(top, accepted.branch)
    revert = undo(top, session, accepted, accepted.before)
    if not accepted.before:
        raise UserError(f'It is not known where "{accepted.branch}" was before', hint=revert)
    if not refs.contains(top, accepted.branch, accepted.commit):
        hint = f"iterdev status {session}"
        raise UserError(f'"{accepted.branch}" does not have {accepted.commit[:12]} any more', hint=hint)
    if refs.head(top) != accepted.commit:
        raise UserError(f'"{accepted.branch}" has commits that followed {accepted.commit[:12]}', hint=revert)
    if others := _others_with(top, session, accepted):
        raise UserError(f'"{others[0]}" has {accepted.commit[:12]} too', hint=revert)
    _require_clean(top, "accept --undo")
    _require_room(top, commits.tree_of(top, accepted.before), "accept --undo")


def _others_with(top: Path, session: SessionId, accepted: Accepted) -> list[str]:
    """Further branches that have the commit, also those of remotes: it was pushed, or somebody built on it."""
    form = ("--format=%(refname)", f"--contains={accepted.commit}")
    listed = git("for-each-ref", *form, "refs/heads", "refs/remotes", "refs/tags", cwd=top).stdout.splitlines()
    mine = {f"refs/heads/{accepted.branch}", f"refs/heads/{ids.branch(session)}"}
    return [ref.removeprefix("refs/").removeprefix("heads/") for ref in listed if ref not in mine]


def has_change(top: Path, accepted: Accepted, commit: str) -> bool:
    """Whether a commit of the session went into other commits that the user's branch has, shown by their files."""
    if not accepted.work or not refs.resolve(top, accepted.work):
        return False
    went_in = refs.is_ancestor(top, commit, accepted.work) and refs.contains(top, accepted.branch, accepted.commit)
    return went_in and adds_nothing(top, accepted.commit, accepted.work)


def undo(top: Path, session: SessionId, accepted: Accepted, to: str) -> str:
    """The command that reverts accepted work in the user's branch: a merge as a whole, else what came after `to`."""
    commit = accepted.commit
    parents, _, message = git("show", "--no-patch", "--format=%P%n%B", commit, cwd=top).stdout.partition("\n")
    if accepted.style is AcceptStyle.squash:
        return f"git revert --no-edit {commit[:12]}"
    # The merge of a landing names its task too.
    if " " in parents and ids.session_trailer(session) in message and "Iterdev-Task:" not in message:
        return f"git revert -m 1 {commit[:12]}"
    start = accepted.before if accepted.own_author and accepted.before else to
    if git("rev-list", "--merges", "--max-count=1", f"{start}..{commit}", cwd=top).stdout:
        reverse = f"git diff --binary {commit[:12]} {start[:12]} | git apply --index"
        return f"{reverse} && git commit -m 'Undo {ids.branch(session)}'"
    return f"git revert --no-edit {start[:12]}..{commit[:12]}"


def require_branch(top: Path, into: str) -> None:
    """Raises `UserError` unless the branch is checked out."""
    current = refs.current_branch(top)
    if not into:
        raise UserError("No branch is checked out that could take the work", hint="git switch main")
    if current != into:
        where = f'"{current}" is checked out' if current else "no branch is checked out"
        raise UserError(f'The session belongs to the branch "{into}", but {where}', hint=f"git switch {into}")


def _require_clean(top: Path, command: str) -> None:
    if changed := git_names(
        *("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all", "--no-renames", "-z"), cwd=top
    ):
        raise UserError(
            f'The checkout has uncommitted changes, such as "{changed[0][3:]}"',
            hint=f"commit or stash them (git stash), then run {command} again",
        )


def _require_room(top: Path, tree: str, command: str) -> None:
    if lost := _overwritten(top, tree):
        raise UserError(
            f'"{lost[0]}" is not tracked by git, and the work of the session would overwrite it',
            hint=f"mv {shlex.join((lost[0], f'{lost[0]}.mine'))}, then run {command} again",
        )


def _overwritten(top: Path, merged: str) -> list[str]:
    """Files of a checkout that git does not track, and that the merged tree would overwrite, ignored ones too."""
    options = ("--name-only", "--no-renames", "--diff-filter=A", "-z")
    added = git_names("diff", *options, "HEAD", merged, cwd=top)
    places = {parent for name in added for parent in (Path(name), *Path(name).parents) if _is_no_folder(top / parent)}
    folders = {name for name in added if (top / name).is_dir() and not (top / name).is_symlink()}
    if not places and not folders:
        return []
    named = ("--", *(f":(literal){place}" for place in sorted({*map(str, places), *folders})))
    return git_names("ls-files", "--others", "-z", *named, cwd=top)


def _is_no_folder(path: Path) -> bool:
    return os.path.lexists(path) and (path.is_symlink() or not path.is_dir())


def _merge(top: Path, session: SessionId, source: str, how: How, effect: Effect) -> None:
    """Settings of the user's, such as merge.ff, choose how git merges; here the user has chosen."""
    if how.style is AcceptStyle.squash:
        with effect("merge"):
            _require_done(users_git("merge", "--quiet", "--ff", "--squash", source, cwd=top), source)
        with effect("commit"):
            _require_done(users_git("commit", "--quiet", "-m", how.message, cwd=top), source)
        return
    how_far = "--no-ff" if how.style is AcceptStyle.merge else "--ff"
    message = f"Merge {ids.branch(session)}\n\n{ids.session_trailer(session)}\n"
    with effect("merge"):
        merged = users_git("merge", "--quiet", "--no-squash", "--commit", how_far, "-m", message, source, cwd=top)
        if merged.returncode:
            users_git("merge", "--abort", cwd=top)
        _require_done(merged, source)


def _require_done(ran: CompletedProcess[str], source: str) -> None:
    if ran.returncode == 0:
        return
    said = (ran.stderr or ran.stdout).strip() or "no message"
    if ran.returncode == 1:
        said = said.splitlines()[0]
        raise UserError(f"A hook of the repository or git refused the merge: {said}", hint=f"git merge {source[:12]}")
    raise GitFailed(("merge", source), ran.returncode, said)
