"""How work becomes commits: kept under a ref of its own in any case, then landed by compare and swap."""

from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import HostError, UserError
from iterdev.host.git import checkout, command, commits, refs, worktrees
from iterdev.host.git.merge import merge_base, try_merge

TRIES = 20
DOMAIN = "iterdev.invalid"


class Label(Struct, frozen=True, kw_only=True):
    session: str
    task: str
    number: int
    role: str
    agent: str
    title: str
    part: str = ""
    """The suffix of the ref, for a part of the work."""

    @property
    def ref(self) -> str:
        return f"{ids.kept_ref(self.session, self.task, self.number)}{self.part}"

    @property
    def author(self) -> command.Identity:
        return command.Identity(f"{self.role} ({self.agent})", f"{self.role}@{DOMAIN}")

    def message(self, subject: str = "") -> str:
        return (
            f"{subject or f'{self.task}: {self.title}'}\n\n"
            f"Iterdev-Session: {self.session}\nIterdev-Task: {self.task}\nIterdev-Attempt: {self.number}\n"
        )


class Landing(Struct, frozen=True, kw_only=True):
    tip: str
    conflicts: tuple[str, ...] = ()


def keep(top: Path, worktree: Path, base: str, label: Label, *, merged: str = "") -> str | None:
    """Commits all that an attempt left in its worktree and puts it under the attempt's ref; None if nothing changed.

    Commits that the agent made itself stay in the history. If it switched to unrelated history, that head is
    kept too, and the change is taken relative to the base. A commit that the attempt `merged` becomes a parent.
    """
    if not worktree.is_dir():
        return None
    worktrees.relink(top, worktree)
    tree, head = worktrees.write_tree(worktree), worktrees.head(worktree) or base
    if head != base and not refs.is_ancestor(top, base, head):
        refs.move_ref(top, f"{label.ref}-head", head)
        head = base
    other = [merged] if merged and not refs.is_ancestor(top, merged, head) else []
    if head == base and tree == commits.tree_of(top, base) and not other:
        return None
    unchanged = tree == commits.tree_of(top, head) and not other
    commit = head if unchanged else commits.commit_tree(top, tree, [head, *other], label.message(), label.author)
    _keep_under(top, label.ref, commit)
    return commit


def keep_late(top: Path, worktree: Path, handed_in: str, label: Label) -> str:
    """Keeps what was written after the work had been handed in, and returns the ref."""
    late = msgspec.structs.replace(label, part="-late")
    keep(top, worktree, handed_in, late)
    return late.ref


def _keep_under(top: Path, ref: str, commit: str) -> None:
    """Puts the commit under its ref; a different commit that the ref had before gets a ref of its own."""
    if refs.move_ref(top, ref, commit, refs.ZERO):
        return
    before = refs.resolve(top, ref)
    if before and before != commit:
        refs.move_ref(top, f"{ref}-{before[:12]}", before)
    refs.move_ref(top, ref, commit)


def left_history(top: Path, worktree: Path, base: str) -> bool:
    """Whether the worktree's HEAD is not based on `base` any more, so that it may lack the work of other tasks."""
    head = worktrees.head(worktree) if worktree.is_dir() else base
    return not head or (head != base and not refs.is_ancestor(top, base, head))


def keep_interrupted(top: Path, worktree: Path, base: str, label: Label) -> str | None:
    """Keeps the work of an attempt whose end was not recorded; it may have been kept once and changed afterwards."""
    kept = refs.resolve(top, label.ref)
    if kept and worktree.is_dir():
        worktrees.relink(top, worktree)
        if worktrees.write_tree(worktree) == commits.tree_of(top, kept):
            return kept
    return keep(top, worktree, base, label) or kept


def open_branch(top: Path, branch: str, base: str) -> str:
    """Makes the session's branch if it is not there yet, and returns its tip."""
    refs.move_ref(top, f"refs/heads/{branch}", base, refs.ZERO)
    tip = refs.resolve(top, f"refs/heads/{branch}")
    if tip is None:
        raise HostError(f'Cannot create the branch "{branch}"', hint="run `iterdev doctor`")
    return tip


def land(top: Path, branch: str, commit: str, label: Label, *, worked_on: str = "", tip: str = "") -> Landing:
    """Brings a commit onto the branch exactly once: landing it again finds it there already.

    Mostly the branch is where it was last seen (`tip`). If that is also where the work started (`worked_on`), moving it
    is all there is to do.
    """
    ref = f"refs/heads/{branch}"
    if worked_on and worked_on != commit and tip in {"", worked_on}:
        if refs.move_ref(top, ref, commit, worked_on):
            return Landing(tip=commit)
        tip = ""
    for _ in range(TRIES):
        current = tip or refs.resolve(top, ref)
        if current is None:
            raise HostError(f'The branch "{branch}" does not exist any more', hint=f"git branch {branch} {commit}")
        landing, target = _merged(top, current, commit, label)
        if target is None or refs.move_ref(top, ref, target, current):
            return landing
        tip = ""
    raise HostError(f'The branch "{branch}" kept moving while {label.task} was landing', hint="run `iterdev resume`")


def _merged(top: Path, tip: str, commit: str, label: Label) -> tuple[Landing, str | None]:
    """The result of the landing, and the commit that the branch has to be moved to, if any."""
    shared = merge_base(top, tip, commit)
    if shared == commit:
        return Landing(tip=tip), None
    if shared == tip:
        return Landing(tip=commit), commit
    tree, complete, conflicts = try_merge(top, tip, commit)
    if not complete:
        return Landing(tip=tip, conflicts=conflicts), None
    message = label.message(f"Merge {label.task}: {label.title}")
    merge = commits.commit_tree(top, tree, [tip, commit], message, label.author)
    return Landing(tip=merge), merge


def rewind(top: Path, branch: str, to: str, kept: str) -> None:
    """Moves the branch back, and puts what was on it under the ref `kept`; doing it again changes nothing."""
    ref = f"refs/heads/{branch}"
    tip = refs.resolve(top, ref)
    if tip == to:
        return
    if tip:
        _keep_under(top, kept, tip)
    if not refs.move_ref(top, ref, to, tip or refs.ZERO):
        raise HostError(f'The branch "{branch}" moved meanwhile', hint="try again")


def accept(top: Path, branch: str, into: str, session: str) -> str:
    """Brings the session's branch into the user's; a tree that is not clean is never touched."""
    current = refs.current_branch(top)
    if not into:
        raise UserError("No branch is checked out that could take the work", hint="git switch main")
    if current != into:
        where = f'"{current}" is checked out' if current else "no branch is checked out"
        raise UserError(f'The session belongs to the branch "{into}", but {where}', hint=f"git switch {into}")
    if dirty := checkout.status(top):
        raise UserError(
            f'The checkout has uncommitted changes, such as "{dirty[0][3:]}"',
            hint="commit or stash them (git stash -u), then run accept again",
        )
    tip = refs.resolve(top, f"refs/heads/{branch}")
    if tip is None:
        raise UserError(f'The branch "{branch}" does not exist', hint="git branch --list 'iterdev/*'")
    if lost := checkout.overwritten(top, tip):
        raise UserError(
            f'"{lost[0]}" is ignored by git, and the work of the session would overwrite it',
            hint=f"mv {lost[0]} {lost[0]}.mine, then run accept again",
        )
    if conflicts := checkout.merge(top, tip, f"Merge {branch}\n\nIterdev-Session: {session}\n"):
        raise UserError(
            f'"{branch}" conflicts with "{into}" in {", ".join(conflicts)}; nothing was changed',
            hint=f"git merge {branch}",
        )
    return refs.head(top)
