"""Conflicts: two developers changed the same file, and neither had seen the work of the other.

A task that worked on top of another one is never in conflict with it. What git merges by itself lands; what it cannot
merge is kept, and a further task brings both changes together.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from iterdev.core import events as e
from iterdev.core import names, pipelines, plan
from iterdev.core.briefs import Scope
from iterdev.core.plan import Task
from iterdev.core.words import Strategy, TaskId

LONGEST_CHAIN = 2
"""How often the resolving of a conflict may itself collide with what landed meanwhile."""


class Conflict(Struct, frozen=True, kw_only=True):
    files: tuple[str, ...]
    others: tuple[TaskId, ...]
    merged: bool
    """Git could merge it; otherwise nothing of the task has landed."""
    strategy: Strategy | None = None
    resolved_by: TaskId | None = None

    @property
    def status(self) -> str:
        return "resolved" if self.strategy else "detected"


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


def resolution(
    task: Task,
    conflict: Conflict,
    wanted: Strategy,
    tasks: Mapping[TaskId, Task],
    dependants: tuple[TaskId, ...],
    scope: Scope,
) -> tuple[e.Event, ...]:
    """What follows from a conflict: nothing more, a further task before those that wait, or the end of this one."""
    if wanted is Strategy.abort and not conflict.merged:
        return (e.ConflictResolved(task=task.id, strategy=Strategy.abort),)
    if conflict.merged and wanted is not Strategy.manual:
        return (e.ConflictResolved(task=task.id, strategy=Strategy.auto_merge),)
    if task.id.count(names.CONFLICT_FIX) >= LONGEST_CHAIN:
        return (e.ConflictResolved(task=task.id, strategy=Strategy.abort),)
    (fix,) = pipelines.with_waves([pipelines.conflict_fix(task, conflict.others, scope, tasks)], tasks)
    waiting = tuple(
        plan.redirected(tasks[other], task.id, fix.id) for other in dependants if names.CONFLICT_FIX not in other
    )
    replanned = (e.TasksReplanned(waiting),) if waiting else ()
    resolved = e.ConflictResolved(task=task.id, strategy=Strategy.manual, fix=fix.id)
    return e.TasksAdded((fix,)), *replanned, resolved
