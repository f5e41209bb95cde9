"""Conflicts: two developers changed the same file, and neither had seen the work of the other.

A task that worked on top of another one is never in conflict with it. What git merges by itself lands; what it cannot
merge is kept, and a further task (see `resolvers`) brings both changes together.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from iterdev.core.words import Strategy, TaskId


class Conflict(Struct, frozen=True, kw_only=True):
    files: tuple[str, ...]
    others: tuple[TaskId, ...]
    merged: bool
    """Git could merge it; otherwise nothing of the task has landed."""
    strategy: Strategy | None = None
    resolved_by: TaskId | None = None


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


def since(began: int, changes: Iterable[Change]) -> list[Change]:
    return [change for change in changes if change.landed > began]
