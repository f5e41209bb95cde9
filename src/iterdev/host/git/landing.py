"""How work becomes commits: kept under a ref of its own in any case, then landed by compare and swap."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import HostError
from iterdev.core.types import SessionId
from iterdev.host.folder_stamp import folder_stamp
from iterdev.host.git import command, commits, refs, session_branch, submodules, worktrees
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
    body: tuple[str, ...] = ()
    """Lines below the title."""
    part: str = ""
    """The suffix of the ref, for a part of the work."""
    shared_name: str = ""
    """What the session's refs are under in the mirror of a host; elsewhere it is the session's id."""

    @property
    def ref(self) -> str:
        return f"{ids.kept_ref(self.shared_name or self.session, self.task, self.number)}{self.part}"

    @property
    def ref_of_session(self) -> str:
        """What the ref is called in the repository that the session belongs to."""
        return f"{ids.kept_ref(self.session, self.task, self.number)}{self.part}"

    @property
    def author(self) -> command.Identity:
        return command.Identity(f"{self.role} ({self.agent})", f"{self.role}@{DOMAIN}")

    @property
    def in_submodules(self) -> submodules.Work:
        return submodules.Work(ref=self.ref, message=self.message(), author=self.author)

    def message(self, subject: str = "") -> str:
        title, body = " ".join(self.title.split()), "\n".join(self.body) + "\n\n" if self.body else ""
        return (
            f"{subject or f'{self.task}: {title}'}\n\n{body}"
            f"Iterdev-Session: {self.session}\nIterdev-Task: {self.task}\nIterdev-Attempt: {self.number}\n"
        )


class Landing(Struct, frozen=True, kw_only=True):
    tip: str
    conflicts: tuple[str, ...] = ()
    note: str = ""
    """What the user should know about the branch."""


class MergedWorks(Struct, frozen=True, kw_only=True):
    commit: str
    count: int
    """How many of the commits are in it, from the first one on."""
    conflicts: tuple[str, ...] = ()
    """The files in which the next one could not be merged."""


def keep(top: Path, worktree: Path, base: str, label: Label, *, merged: str = "") -> str | None:
    """Commits all that an attempt left in its worktree and puts it under the attempt's ref; None if nothing changed.

    Commits that the agent made itself stay in the history. If it switched to unrelated history, that head is
    kept too, and the change is taken relative to the base. A commit that the attempt `merged` becomes a parent. Of a
    worktree that was deleted, what the agent had committed is left.
    """
    if not worktree.is_dir():
        return _keep_commits_of_deleted(top, worktree, base, label)
    worktrees.relink(top, worktree, base)
    submodules.keep(top, worktree, base, label.in_submodules)
    # Taken before git reads the files: a later change of one is noticed.
    files = folder_stamp(worktree)
    tree, head = worktrees.write_tree(worktree), _head(top, worktree, base)
    if head != base and not refs.is_ancestor(top, base, head):
        refs.move_ref(top, f"{label.ref}-head", head)
        head = base
    other = [merged] if merged and not refs.is_ancestor(top, merged, head) else []
    if head == base and tree == commits.tree_of(top, base) and not other:
        return None
    unchanged = tree == commits.tree_of(top, head) and not other
    commit = head if unchanged else commits.commit_tree(top, tree, [head, *other], label.message(), label.author)
    refs.keep_under(top, label.ref, commit)
    worktrees.remember(worktree, commit, files)
    return commit


def _head(top: Path, worktree: Path, base: str) -> str:
    """The commit of a worktree, or the base if it has none that exists."""
    head = worktrees.head(worktree)
    return head if head == base else (refs.resolve(top, head) if head else None) or base


def _keep_commits_of_deleted(top: Path, worktree: Path, base: str, label: Label) -> str | None:
    head = worktrees.head_of_deleted(top, worktree)
    if not head or head == base or not refs.is_ancestor(top, base, head):
        return None
    refs.keep_under(top, label.ref, head)
    return head


def keep_late(top: Path, worktree: Path, handed_in: str, label: Label) -> str:
    """Keeps what was written after the work had been handed in; the session's ref of it, empty if there is nothing."""
    late = msgspec.structs.replace(label, part="-late")
    return late.ref_of_session if keep(top, worktree, handed_in, late) else ""


def left_history(top: Path, worktree: Path, base: str) -> bool:
    """Whether the worktree's HEAD is not based on `base` any more, so that it may lack the work of other tasks."""
    if not worktree.is_dir():
        return False
    worktrees.relink(top, worktree, base)
    head = worktrees.head(worktree)
    return not head or (head != base and not (refs.resolve(top, head) and refs.is_ancestor(top, base, head)))


def keep_interrupted(top: Path, worktree: Path, base: str, label: Label) -> str | None:
    """Keeps the work of an attempt whose end was not recorded; it may have been kept once and changed afterwards."""
    kept = refs.resolve(top, label.ref)
    if kept and worktree.is_dir():
        worktrees.relink(top, worktree, base)
        submodules.keep(top, worktree, base, label.in_submodules)
        if worktrees.write_tree(worktree) == commits.tree_of(top, kept):
            return kept
    return keep(top, worktree, base, label) or kept


def land(top: Path, commit: str, label: Label, *, worked_on: str, tip: str) -> Landing:
    """Brings a commit onto the session's branch exactly once: landing it again finds it there already.

    Mostly the branch is where work has landed last (`tip`). If that is also where this work started (`worked_on`),
    moving it is all there is to do. A branch that was moved anywhere else is put back first.
    """
    session = SessionId(label.session)
    if commit != tip == worked_on and (moved := session_branch.advance(top, session, commit, tip)):
        return Landing(tip=commit, note=moved.note)
    landing, target = _merged(top, tip, commit, label)
    if target and (moved := session_branch.advance(top, session, target, tip)):
        return msgspec.structs.replace(landing, note=moved.note)
    for _ in range(TRIES):
        found = session_branch.commit_of(top, session)
        if target and found and _is_same_landing(top, found, target):
            return msgspec.structs.replace(landing, tip=found)
        current = session_branch.position(top, session, tip)
        moved = session_branch.advance(top, session, target, tip) if target else current
        if moved:
            notes = dict.fromkeys((current.note, moved.note))
            return msgspec.structs.replace(landing, note="; ".join(note for note in notes if note))
    branch = ids.branch(session)
    raise HostError(f'The branch "{branch}" kept moving while {label.task} was landing', hint="run `iterdev resume`")


def merge_in_order(top: Path, tip: str, works: Sequence[tuple[str, Label]]) -> MergedWorks:
    """Merges commits one after another, as landing them would, until git cannot; no ref is moved."""
    for count, (commit, label) in enumerate(works):
        landing, _ = _merged(top, tip, commit, label)
        if landing.conflicts:
            return MergedWorks(commit=tip, count=count, conflicts=landing.conflicts)
        tip = landing.tip
    return MergedWorks(commit=tip, count=len(works))


def _is_same_landing(top: Path, found: str, target: str) -> bool:
    """Whether a landing was done before and not recorded: a merge that is made again has another time."""
    return found == target or commits.parents_and_tree(top, found) == commits.parents_and_tree(top, target)


def _merged(top: Path, tip: str, commit: str, label: Label) -> tuple[Landing, str | None]:
    """The result of the landing, and the commit that the branch has to be moved to, if any."""
    tree, complete, conflicts = try_merge(top, tip, commit)
    if not complete:
        return Landing(tip=tip, conflicts=conflicts), None
    # If one is in the history of the other, the merge is the newer one.
    shared = merge_base(top, tip, commit) if tree in {commits.tree_of(top, tip), commits.tree_of(top, commit)} else ""
    if shared == commit:
        return Landing(tip=tip), None
    if shared == tip:
        return Landing(tip=commit), commit
    message = label.message(f"Merge {label.task}: {label.title}")
    merge = commits.commit_tree(top, tree, [tip, commit], message, label.author)
    return Landing(tip=merge), merge
