"""Merges without touching a checkout, and merges that are begun in a worktree for an agent to finish."""

import re
from pathlib import Path

from iterdev.host.git.command import Identity, _as, git


def merge_base(top: Path, one: str, other: str) -> str:
    """Where two histories went apart: one of the two, if the other was built on it; nothing, if they never met."""
    return git("merge-base", one, other, cwd=top, accept=(0, 1)).stdout.strip()


def merge_tree(top: Path, ours: str, theirs: str) -> tuple[str | None, tuple[str, ...]]:
    """The merged tree, or None and the files in conflict; no checkout is touched."""
    whole, tree, conflicts = try_merge(top, ours, theirs)
    return (tree, ()) if whole else (None, conflicts)


def try_merge(top: Path, ours: str, theirs: str) -> tuple[bool, str, tuple[str, ...]]:
    """Whether git can merge it, the tree as far as it can, and the files in conflict; no checkout is touched."""
    merged = git("merge-tree", "--write-tree", "--name-only", "-z", ours, theirs, cwd=top, accept=(0, 1))
    tree, *rest = merged.stdout.split("\0")
    if merged.returncode == 0:
        return True, tree, ()
    conflicts = rest[: rest.index("")] if "" in rest else rest
    return False, tree, tuple(dict.fromkeys(name for name in conflicts if name))


def begin_merge(worktree: Path, commit: str, author: Identity) -> None:
    """Merges into a worktree as far as git can, without a commit; what is left to do is marked in the files."""
    plain = ("-c", "rerere.enabled=false", "-c", "merge.conflictStyle=merge")
    options = ("--quiet", "--no-commit", "--no-ff", "--no-autostash", "--strategy=ort")
    git(*plain, "merge", *options, commit, cwd=worktree, env=_as(author), accept=(0, 1))


def merge_begun(worktree: Path) -> str:
    """The tree that git left when it began a merge in a worktree; nothing if none is under way."""
    found = git("rev-parse", "--verify", "--quiet", "AUTO_MERGE^{tree}", cwd=worktree, accept=(0, 1, 128))
    return found.stdout.strip()


def new_markers(top: Path, old: str, new: str) -> set[tuple[str, int]]:
    """Conflict markers that came with a change, as file and line."""
    options = ("--check", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    lines = git("diff", *options, old, new, cwd=top, accept=(0, 2)).stdout
    return {(name, int(line)) for name, line in re.findall(r"(?m)^(.*):(\d+): leftover conflict marker$", lines)}
