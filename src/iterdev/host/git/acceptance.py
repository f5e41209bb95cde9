"""Brings the work of a session into the user's branch, as `git merge` would: with the user's hooks, name and signature.

It refuses whatever would lose something of the user's, and leaves the checkout as it was.
"""

import os
import shlex
from pathlib import Path

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId
from iterdev.host.git import interrupted_merge, refs, session_branch, submodules
from iterdev.host.git.command import GitFailed, git, git_names, users_git
from iterdev.host.git.merge import try_merge


class Merged(Struct, frozen=True):
    commit: str
    notes: tuple[str, ...] = ()
    """What is left for the user to do."""


def accept(top: Path, session: SessionId, into: str, work: str) -> Merged:
    """Merges the session's work, a commit, into the branch that is checked out, fast-forward where possible."""
    _require_branch(top, into)
    interrupted_merge.undo(top, session, work)
    merged = merged_tree(top, session, into, work)
    moved = session_branch.position(top, session, work).note
    notes = submodules.publish(top, "HEAD", merged, session)
    with interrupted_merge.undone_unless_complete(top, session, work):
        _merge(top, work, f"Merge {ids.branch(session)}\n\nIterdev-Session: {session}\n")
    return Merged(refs.head(top), (*notes, *([moved] if moved else [])))


def merged_tree(top: Path, session: SessionId, into: str, work: str) -> str:
    """The tree that accepting leads to; raises `UserError` if it would lose something. No ref and no file changes."""
    _require_branch(top, into)
    if changed := git_names(
        *("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all", "--no-renames", "-z"), cwd=top
    ):
        raise UserError(
            f'The checkout has uncommitted changes, such as "{changed[0][3:]}"',
            hint="commit or stash them (git stash), then run accept again",
        )
    branch = ids.branch(session)
    merged, complete, conflicts = try_merge(top, "HEAD", work)
    if not complete:
        raise UserError(
            f'"{branch}" conflicts with "{into}" in {", ".join(conflicts)}; nothing was changed',
            hint=f"git merge {branch if session_branch.commit_of(top, session) == work else work}",
        )
    if lost := _overwritten(top, merged):
        raise UserError(
            f'"{lost[0]}" is not tracked by git, and the work of the session would overwrite it',
            hint=f"mv {shlex.join((lost[0], f'{lost[0]}.mine'))}, then run accept again",
        )
    return merged


def undo(top: Path, session: SessionId, accepted: str, to: str) -> str:
    """The command that takes accepted work out of the user's branch: a merge as a whole, else what came after `to`."""
    parents, _, message = git("show", "--no-patch", "--format=%P%n%B", accepted, cwd=top).stdout.partition("\n")
    # The merge of a landing names its task too.
    if " " in parents and f"Iterdev-Session: {session}" in message and "Iterdev-Task:" not in message:
        return f"git revert -m 1 {accepted[:12]}"
    if git("rev-list", "--merges", "--max-count=1", f"{to}..{accepted}", cwd=top).stdout:
        reverse = f"git diff --binary {accepted[:12]} {to[:12]} | git apply --index"
        return f"{reverse} && git commit -m 'Undo {ids.branch(session)}'"
    return f"git revert --no-edit {to[:12]}..{accepted[:12]}"


def _require_branch(top: Path, into: str) -> None:
    current = refs.current_branch(top)
    if not into:
        raise UserError("No branch is checked out that could take the work", hint="git switch main")
    if current != into:
        where = f'"{current}" is checked out' if current else "no branch is checked out"
        raise UserError(f'The session belongs to the branch "{into}", but {where}', hint=f"git switch {into}")


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


def _merge(top: Path, commit: str, message: str) -> None:
    merged = users_git("merge", "--quiet", "--ff", "-m", message, commit, cwd=top)
    if merged.returncode == 0:
        return
    users_git("merge", "--abort", cwd=top)
    said = (merged.stderr or merged.stdout).strip() or "no message"
    if merged.returncode == 1:
        said = said.splitlines()[0]
        raise UserError(f"A hook of the repository or git refused the merge: {said}", hint=f"git merge {commit[:12]}")
    raise GitFailed(("merge", commit), merged.returncode, said)
