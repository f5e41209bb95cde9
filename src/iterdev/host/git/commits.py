"""Commits and what they change."""

from collections.abc import Iterable
from pathlib import Path

from iterdev.host.git.command import Identity, git, git_names


def changed_files(top: Path, old: str, new: str, *, in_both: bool = False) -> tuple[str, ...]:
    which = ("--diff-filter=MT",) if in_both else ()
    return tuple(git_names("diff", "--name-only", "--no-renames", *which, "-z", old, new, cwd=top))


def count(top: Path, old: str, new: str) -> int:
    """How many commits lead from one to the other."""
    return int(git("rev-list", "--count", f"{old}..{new}", cwd=top).stdout)


def write_patch(top: Path, old: str, new: str, path: Path) -> None:
    """Writes the difference of two commits for `git apply`. Git writes the file, because it need not be UTF-8."""
    git("diff", "--binary", "--no-ext-diff", "--no-color", f"--output={path}", old, new, cwd=top)


_trees: dict[str, str] = {}
"""The trees of commits that were asked for or made here; a commit's tree never changes."""


def tree_of(top: Path, commit: str) -> str:
    if commit not in _trees:
        _trees[commit] = git("rev-parse", f"{commit}^{{tree}}", cwd=top).stdout.strip()
    return _trees[commit]


def commit_tree(top: Path, tree: str, parents: Iterable[str], message: str, author: Identity) -> str:
    options = [word for parent in parents for word in ("-p", parent)]
    commit = git("commit-tree", tree, *options, cwd=top, stdin=message, env=author.variables).stdout.strip()
    _trees[commit] = tree
    return commit


def index_pack(pack: Path) -> None:
    """Reads every object of a pack, and writes the index with which git uses it."""
    git("index-pack", str(pack), cwd=pack.parent)
