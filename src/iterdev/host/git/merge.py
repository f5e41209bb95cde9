"""Merges without touching a checkout, and merges that git begins in a worktree and an agent finishes.

An agent may merge and commit by itself, or just write the files as they should be in the end: all that counts is what
the commit holds.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from iterdev.core.session.conflicts import FinishedMerge
from iterdev.host import untrusted_files
from iterdev.host.git import commits, submodules, worktrees
from iterdev.host.git.command import Identity, git

READ_HERE = 1024 * 1024
"""Bytes of a file that is looked at before git is asked."""


def merge_base(top: Path, one: str, other: str) -> str:
    """The newest commit that two histories share; empty if they have none."""
    return git("merge-base", one, other, cwd=top, accept=(0, 1)).stdout.strip()


def try_merge(top: Path, ours: str, theirs: str) -> tuple[str, bool, tuple[str, ...]]:
    """The merged tree, whether git could merge everything, and the files in conflict; no checkout is touched."""
    merged = git("merge-tree", "--write-tree", "--name-only", "-z", ours, theirs, cwd=top, accept=(0, 1))
    tree, *rest = merged.stdout.split("\0")
    if merged.returncode == 0:
        return tree, True, ()
    conflicts = rest[: rest.index("")] if "" in rest else rest
    return tree, False, tuple(dict.fromkeys(name for name in conflicts if name))


def try_merge_since(top: Path, base: str, ours: str, theirs: str) -> tuple[str, bool, tuple[str, ...]]:
    """As `try_merge`, with what has changed since a commit that need not be in the history of either."""
    # The option --merge-base is newer than the oldest git that is supported.
    author = Identity("iterdev", "iterdev@iterdev.invalid")
    root = commits.commit_tree(top, commits.tree_of(top, base), (), "base", author)
    sides = [commits.commit_tree(top, commits.tree_of(top, side), (root,), side, author) for side in (ours, theirs)]
    return try_merge(top, *sides)


def adds_nothing(top: Path, commit: str, work: str) -> bool:
    """Whether a commit has all that has changed in the other one, by the files: a merge of the two is the first."""
    tree, complete, _ = try_merge(top, commit, work)
    return complete and tree == commits.tree_of(top, commit)


def begin(top: Path, worktree: Path, base: str, commit: str, author: Identity) -> None:
    """Merges into a worktree as far as git can, without a commit; conflicts are marked in the files.

    The worktree is reset first: tracked files that the project's setup changed would prevent the merge.
    """
    worktrees.reset(top, worktree, base)
    plain = ("-c", "rerere.enabled=false", "-c", "merge.conflictStyle=merge")
    options = ("--quiet", "--no-commit", "--no-ff", "--no-autostash", "--no-verify-signatures", "--strategy=ort")
    git(*plain, "merge", *options, commit, cwd=worktree, env=author.variables, accept=(0, 1))


def is_as_begun(top: Path, worktree: Path, base: str) -> bool:
    """Whether nothing has changed since git began the merge."""
    if not worktree.is_dir():
        return False
    worktrees.relink(top, worktree, base)
    begun = git("rev-parse", "--verify", "--quiet", "AUTO_MERGE^{tree}", cwd=worktree, accept=(0, 1, 128)).stdout
    # What is not committed in a submodule is in no tree.
    same = bool(begun) and not submodules.is_touched(top, worktree)
    return same and worktrees.write_tree(worktree) == begun.strip()


def finished(top: Path, base: str, other: str, commit: str) -> FinishedMerge:
    """How the commit differs from the merge of the other commit into the base, as git began it."""
    begun, _, conflicts = try_merge(top, base, other)
    changed, differs = set(commits.changed_files(top, base, commit)), set(commits.changed_files(top, other, commit))
    in_both = set(commits.changed_files(top, base, other, in_both=True)).intersection(conflicts)
    # Only what neither side had before is a marker of this merge: files may contain examples of conflicts.
    markers = _new_markers(top, base, commit) & _new_markers(top, other, commit)
    lines = {file: tuple(sorted(line for name, line in markers if name == file)) for file in conflicts}
    return FinishedMerge(
        marked={file: found for file, found in lines.items() if found},
        dropped=tuple(
            file for file in commits.changed_files(top, base, begun) if file not in changed and file not in conflicts
        ),
        without=tuple(file for file in conflicts if file in in_both - changed),
        replaced=tuple(file for file in conflicts if file in in_both - differs),
    )


def left_conflicts(top: Path, worktree: Path, base: str, commit: str, changed: Iterable[str]) -> list[str]:
    """One sentence per conflict that a change left in a file, with all three of its markers."""
    if not any(_may_have_markers(worktree / name) for name in changed):
        return []
    lines: dict[str, list[int]] = {}
    for name, line in sorted(_new_markers(top, base, commit)):
        lines.setdefault(name, []).append(line)
    return [
        f"{name}:{line}: a conflict marker is left"
        for name, places in lines.items()
        for line in _beginnings(worktree / name, places)
    ]


def _may_have_markers(file: Path) -> bool:
    """A conflict begins with a line of these letters, whatever their number; git reads what is large or no file."""
    try:
        text = b"" if file.is_symlink() else untrusted_files.read_bytes(file, most=READ_HERE)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return text.startswith(b"<") or b"\n<" in text


def _beginnings(file: Path, places: list[int]) -> list[int]:
    """Git also lists lines of seven equals signs alone, which underline a heading elsewhere."""
    text = untrusted_files.read_or_empty(file).splitlines()
    kinds = [(place, text[place - 1][:1] if place <= len(text) else b"") for place in places]
    rest = [kind for _, kind in kinds]
    return [place for at, (place, kind) in enumerate(kinds) if kind == b"<" and rest[at + 1 : at + 3] == [b"=", b">"]]


def _new_markers(top: Path, old: str, new: str) -> set[tuple[str, int]]:
    """Conflict markers that came with a change, as file and line."""
    options = ("--check", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    return markers_in(git("diff", *options, old, new, cwd=top, accept=(0, 2)).stdout)


def markers_in(listed: str) -> set[tuple[str, int]]:
    """The conflict markers that `git diff --check` lists."""
    return {(name, int(line)) for name, line in re.findall(r"(?m)^(.*):(\d{1,9}): leftover conflict marker$", listed)}
