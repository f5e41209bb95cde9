"""Resolvers: tasks that bring work together with what landed before it, where the two collide.

Two of them that touch the same files would collide again side by side, so each waits for those before it.
"""

from collections.abc import Iterator

import msgspec

from iterdev.core import events as e
from iterdev.core import names, pipelines, plan
from iterdev.core.plan import Task
from iterdev.core.state import State
from iterdev.core.words import LOST, Strategy, TaskId

LONGEST_CHAIN = 2
"""How often the resolving of a conflict may itself collide with what landed meanwhile."""


def brings(state: State, task: TaskId) -> TaskId | None:
    """The task whose work a resolver brings in; None if it is no resolver."""
    return next((other for other, conflict in state.conflicts.items() if conflict.resolved_by == task), None)


def resolution(state: State, task: TaskId) -> tuple[e.Event, ...]:
    """What follows from a conflict: nothing more, a resolver before those that wait, or the end of the task."""
    conflict, wanted = state.conflicts[task], state.policy.conflicts
    if wanted is Strategy.abort and not conflict.merged:
        return (e.ConflictResolved(task=task, strategy=Strategy.abort),)
    if conflict.merged and wanted is not Strategy.manual:
        return (e.ConflictResolved(task=task, strategy=Strategy.auto_merge),)
    if task.count(names.CONFLICT_FIX) >= LONGEST_CHAIN:
        return (e.ConflictResolved(task=task, strategy=Strategy.abort),)
    row = pipelines.conflict_fix(state.tasks[task], conflict.others, _before(state, task), state.scope, state.tasks)
    (fix,) = pipelines.with_waves([row], state.tasks)
    waiting = tuple(plan.redirected(other, task, fix.id) for other in _waiting(state, task))
    replanned = (e.TasksReplanned(waiting),) if waiting else ()
    return e.TasksAdded((fix,)), *replanned, e.ConflictResolved(task=task, strategy=Strategy.manual, fix=fix.id)


def freed(state: State) -> tuple[e.Event, ...]:
    """Resolvers that need not wait any more: they wait for others to come after them, whatever becomes of those."""
    rows = tuple(row for task in state.doomed if (row := _without_lost(state, task)) != state.tasks[task])
    return (e.TasksReplanned(rows),) if rows else ()


def _without_lost(state: State, task: TaskId) -> Task:
    row, own = state.tasks[task], brings(state, task)
    if own is None:
        return row
    deps = (dep for dep in row.deps if dep == own or state.progress[dep].status not in LOST)
    return msgspec.structs.replace(row, deps=tuple(deps))


def _before(state: State, task: TaskId) -> list[TaskId]:
    """The resolvers that a new one comes after; of those that wait for each other, the last."""
    mine = _files(state, task)
    found = [fix for other, fix in _unfinished(state) if not mine.isdisjoint(_files(state, other))]
    first = [fix for fix in found if task not in state.ancestors(fix)]
    awaited = {dep for fix in first for dep in state.tasks[fix].deps}
    return [fix for fix in first if fix not in awaited]


def _unfinished(state: State) -> Iterator[tuple[TaskId, TaskId]]:
    for task, conflict in state.conflicts.items():
        if conflict.resolved_by and not state.progress[conflict.resolved_by].status.is_final:
            yield task, conflict.resolved_by


def _files(state: State, task: TaskId) -> set[str]:
    """What a task changed, and so what its resolver will."""
    return {*state.progress[task].changed, *state.conflicts[task].files}


def _waiting(state: State, task: TaskId) -> list[Task]:
    """The tasks that wait for this one, but for its own resolvers of before."""
    followers = state.dependants.get(task, ())
    return [state.tasks[other] for other in followers if brings(state, other) != task]
