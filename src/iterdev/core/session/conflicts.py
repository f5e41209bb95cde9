"""Conflicts: two developers changed the same file, and neither had seen the work of the other.

A task that worked on top of another one is never in conflict with it. What git merges by itself lands; what it cannot
merge is kept, and a further task (see `resolvers`) brings both changes together.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from iterdev.core.types import Strategy, TaskId


class Conflict(Struct, frozen=True, kw_only=True):
    files: tuple[str, ...]
    others: tuple[TaskId, ...]
    merged: bool
    """Git could merge it; otherwise nothing of the task has landed."""
    strategy: Strategy | None = None
    resolved_by: TaskId | None = None


class Merging(Struct, frozen=True, kw_only=True):
    """Work that could not land, and that a resolver brings in."""

    task: TaskId
    commit: str


class Merged(Struct, frozen=True, kw_only=True):
    """How a merge that somebody finished compares with how git had begun it."""

    marked: Mapping[str, tuple[int, ...]] = {}
    """Files with lines in which a conflict marker is left."""
    dropped: tuple[str, ...] = ()
    """Files that git had merged by itself, and that are as if it had not."""
    without: tuple[str, ...] = ()
    """Files in conflict that have nothing of the work that was to be brought in."""
    replaced: tuple[str, ...] = ()
    """Files in conflict that have nothing but it."""


class Change(Struct, frozen=True, gc=False):
    """A task whose work changed a file, and the place in the journal at which it landed."""

    task: TaskId
    landed: int


def overlap(
    changed: tuple[str, ...], began: int, touched: Mapping[str, tuple[Change, ...]]
) -> tuple[tuple[str, ...], tuple[TaskId, ...]]:
    """The files that others changed too since the work on them began, and who they are."""
    both = {file: changes for file in changed if (changes := since(began, touched.get(file, ())))}
    return tuple(both), tuple(dict.fromkeys(change.task for changes in both.values() for change in changes))


def faults(merged: Merged, work: TaskId, left_alone: Callable[[str], bool]) -> list[str]:
    """What is wrong with a finished merge. Who leaves a file alone has to say so."""
    lines = {file: ", ".join(map(str, lines)) for file, lines in merged.marked.items()}
    why = "if that is right, leave the file out of `changed_files` and say why in `findings`"
    return [
        *(f"{file}: conflict markers are left in line {places}" for file, places in lines.items()),
        *(f"{file}: the change of {work}, which git had merged, is gone" for file in merged.dropped),
        *(f"{_missing(file, work)}; {why}" for file in merged.without if not left_alone(file)),
    ]


def doubts(merged: Merged, work: TaskId, left_alone: Callable[[str], bool]) -> list[str]:
    """What may be right in a finished merge, and is worth a second look and a warning."""
    return [
        *(_missing(file, work) for file in merged.without if left_alone(file)),
        *(f"{file}: it is as {work} left it, without anything that others changed" for file in merged.replaced),
    ]


def _missing(file: str, work: TaskId) -> str:
    return f"{file}: nothing of the change of {work} is in it"


def since(began: int, changes: Iterable[Change]) -> list[Change]:
    return [change for change in changes if change.landed > began]
