"""The branches and refs of sessions: listed with what holds their commits, removed, and restored.

A ref that is removed is moved to `refs/iterdev-trash/`, which protects its commits from garbage collection; its name
there says when that was and what it was called.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from iterdev.core.rules.cleaning import RefFacts
from iterdev.host.git.command import git

SPACES = ("refs/heads/iterdev", "refs/iterdev")
TRASH = "refs/iterdev-trash"


class RemovedRef(Struct, frozen=True, kw_only=True):
    place: str
    """Where it is kept."""
    name: str
    """What it was called."""
    commit: str
    at: int


def list_refs(top: Path) -> list[RefFacts]:
    """Every branch and ref of sessions, whether all its commits are on a branch of the user's or not."""
    form = "--format=%(refname)%00%(objectname)%00%(worktreepath)"
    lines = git("for-each-ref", form, *SPACES, cwd=top).stdout.splitlines()
    found = [line.split("\0") for line in lines]
    contained = _contained(top, {name for name, _, _ in found})
    return [
        RefFacts(name=name, session=session(name), commit=commit, contained=name in contained, checked_out=worktree)
        for name, commit, worktree in found
    ]


def session(ref: str) -> str:
    """The session that a ref belongs to, by its name."""
    return ref.removeprefix("refs/heads/iterdev/").removeprefix("refs/iterdev/").partition("/")[0]


def _contained(top: Path, names: set[str]) -> set[str]:
    contained: set[str] = set()
    for branch in _users_branches(top):
        if names <= contained:
            break
        merged = git("for-each-ref", f"--merged={branch}", "--format=%(refname)", *SPACES, cwd=top).stdout
        contained.update(merged.splitlines())
    return contained


def _users_branches(top: Path) -> list[str]:
    names = git("for-each-ref", "--format=%(refname)", "refs/heads", cwd=top).stdout.splitlines()
    return [name for name in names if not name.startswith("refs/heads/iterdev/")]


def remove(top: Path, refs: Sequence[RefFacts], at: int) -> None:
    """Moves refs to the trash in one transaction; it fails if one of them has moved meanwhile."""
    changes = (
        (f"create {TRASH}/{at}/{ref.name.removeprefix('refs/')} {ref.commit}", f"delete {ref.name} {ref.commit}")
        for ref in refs
    )
    _transact(top, (line for pair in changes for line in pair))


def removed(top: Path) -> list[RemovedRef]:
    """The refs in the trash, the oldest first."""
    lines = git("for-each-ref", "--format=%(refname) %(objectname)", TRASH, cwd=top).stdout.splitlines()
    matches = (re.fullmatch(rf"({TRASH}/(\d+)/(\S+)) (\S+)", line) for line in lines)
    found = (
        RemovedRef(place=match[1], name=f"refs/{match[3]}", commit=match[4], at=int(match[2]))
        for match in matches
        if match
    )
    return sorted(found, key=lambda ref: ref.at)


def restore(top: Path, ref: RemovedRef) -> bool:
    """Gives a ref its name back; False if the name is taken."""
    taken = git("rev-parse", "--verify", "--quiet", ref.name, cwd=top, accept=(0, 1, 128)).returncode == 0
    if not taken:
        _transact(top, (f"create {ref.name} {ref.commit}", f"delete {ref.place} {ref.commit}"))
    return not taken


def purge(top: Path, refs: Iterable[RemovedRef]) -> None:
    """Removes refs from the trash; git may then delete their commits."""
    _transact(top, (f"delete {ref.place} {ref.commit}" for ref in refs))


def _transact(top: Path, lines: Iterable[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    if text:
        git("update-ref", "--stdin", cwd=top, stdin=f"start\n{text}commit\n")
