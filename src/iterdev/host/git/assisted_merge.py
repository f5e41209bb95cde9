"""A merge that is begun in a worktree by git and finished by an agent, and a look at what became of it.

An agent may merge and commit by itself, or just write the files as they should be in the end: all that counts is what
the commit holds.
"""

from pathlib import Path

from iterdev.core.session.conflicts import FinishedMerge
from iterdev.host.git import commits, merge, worktrees
from iterdev.host.git.landing import Label


def begin(worktree: Path, base: str, commit: str, label: Label) -> None:
    """Whatever setting up has left in files that git knows would be in the way of the merge."""
    worktrees.reset_worktree(worktree, base)
    merge.begin_merge(worktree, commit, label.author)


def is_as_begun(top: Path, worktree: Path) -> bool:
    """Whether nobody has done anything about the merge yet."""
    if not worktree.is_dir():
        return False
    worktrees.relink(top, worktree)
    begun = merge.merge_begun(worktree)
    return bool(begun) and worktrees.write_tree(worktree) == begun


def finished(top: Path, base: str, other: str, commit: str) -> FinishedMerge:
    """What the commit makes of the merge of the other one into the base."""
    _, begun, conflicts = merge.try_merge(top, base, other)
    changed, differs = set(commits.changed_files(top, base, commit)), set(commits.changed_files(top, other, commit))
    in_both = set(commits.changed_files(top, base, other, in_both=True)).intersection(conflicts)
    return FinishedMerge(
        marked=_marked(top, base, other, commit, conflicts),
        dropped=tuple(
            file for file in commits.changed_files(top, base, begun) if file not in changed and file not in conflicts
        ),
        without=tuple(file for file in conflicts if file in in_both - changed),
        replaced=tuple(file for file in conflicts if file in in_both - differs),
    )


def _marked(top: Path, base: str, other: str, commit: str, conflicts: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """Only what neither side had before is a marker of this merge: some files tell of conflicts."""
    new = merge.new_markers(top, base, commit) & merge.new_markers(top, other, commit)
    lines = {file: tuple(sorted(line for name, line in new if name == file)) for file in conflicts}
    return {file: found for file, found in lines.items() if found}
