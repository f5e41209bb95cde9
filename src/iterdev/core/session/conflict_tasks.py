"""Resolvers: tasks that bring work together with what landed before it, where the two collide.

Two of them that touch the same files would collide again side by side, so each waits for those before it.
"""

from collections.abc import Iterator

import msgspec

from iterdev.core import ids
from iterdev.core.session import events, tasks
from iterdev.core.session.conflicts import Merging
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import LOST, Status, Strategy, TaskId
from iterdev.teams.development import pipelines

LONGEST_CHAIN = 2
"""How often the resolving of a conflict may itself collide with what landed meanwhile."""


def brings(state: State, task: TaskId) -> TaskId | None:
    """The task whose work a resolver brings in; None if it is no resolver."""
    return next((other for other, conflict in state.conflicts.items() if conflict.resolved_by == task), None)


def merging(state: State, task: TaskId) -> Merging | None:
    """The work that has to be merged for a resolver; none if git could merge it, or its commit is not known."""
    other = brings(state, task)
    commit = state.progress[other].commit if other else None
    if other is None or commit is None or state.conflicts[other].merged:
        return None
    return Merging(task=other, commit=commit)


def resolver(state: State, task: TaskId) -> TaskId | None:
    """Who brings in a task's work that could not land: the last resolver, if resolvers collided too."""
    conflict = state.conflicts.get(task)
    if conflict is None or conflict.merged or conflict.resolved_by is None:
        return None
    if state.progress[task].status is not Status.completed:
        return None  # It is to be done again.
    return _last(state, conflict.resolved_by)


def _last(state: State, fix: TaskId) -> TaskId:
    return resolver(state, fix) or fix


def is_resolved(state: State, task: TaskId) -> bool:
    """Whether nothing is left to do about a conflict; making a resolver is not enough, it has to succeed."""
    conflict = state.conflicts[task]
    if conflict.resolved_by is None:
        return conflict.strategy is not None
    return state.progress[_last(state, conflict.resolved_by)].status is Status.completed


def collision(state: State, task: TaskId) -> str:
    """What became of work that could not land, in a few words; nothing for all other work."""
    fix = resolver(state, task)
    if fix is None:
        return ""
    where, status = f"conflict in {', '.join(state.conflicts[task].files)}", state.progress[fix].status
    if status in LOST:
        kept = ids.kept_ref(state.session.id, task, state.progress[task].attempt)
        return f"{where}; {fix} {status}: this work is not on the branch, it is kept as {kept}"
    return f"{where}; {'resolved' if status is Status.completed else 'being resolved'} by {fix}"


def commit(state: State, task: TaskId) -> str:
    """The commit of a task's work, and who landed it if the task itself did not."""
    fix, made = resolver(state, task), state.progress[task].commit or ""
    if fix is None:
        return made
    landed = state.progress[fix].status is Status.completed
    return f"{made} ({f'landed with {fix}' if landed else f'not landed, see {fix}'})"


def lost(state: State) -> list[TaskId]:
    """The tasks whose work is not on the branch, because whoever was to bring it in did not succeed."""
    return [task for task in state.conflicts if (fix := resolver(state, task)) and state.progress[fix].status in LOST]


def resolution(state: State, task: TaskId) -> tuple[events.Event, ...]:
    """What follows from a conflict: nothing more, a resolver before those that wait, or the end of the task."""
    conflict, wanted = state.conflicts[task], state.policy.conflicts
    if wanted is Strategy.abort and not conflict.merged:
        return (events.ConflictResolved(task=task, strategy=Strategy.abort),)
    if conflict.merged and wanted is not Strategy.manual:
        return (events.ConflictResolved(task=task, strategy=Strategy.auto_merge),)
    if task.count(ids.CONFLICT_FIX) >= LONGEST_CHAIN:
        return (events.ConflictResolved(task=task, strategy=Strategy.abort),)
    row = pipelines.conflict_fix(state.tasks[task], conflict.others, _before(state, task), state.scope, state.tasks)
    (fix,) = pipelines.with_waves([row], state.tasks)
    waiting = tuple(tasks.redirected(other, task, fix.id) for other in _waiting(state, task))
    replanned = (events.TasksReplanned(waiting),) if waiting else ()
    return (
        events.TasksAdded((fix,)),
        *replanned,
        events.ConflictResolved(task=task, strategy=Strategy.manual, fix=fix.id),
    )


def freed(state: State) -> tuple[events.Event, ...]:
    """Resolvers that need not wait any more: they wait for others to come after them, whatever becomes of those."""
    rows = tuple(row for task in state.doomed if (row := _without_lost(state, task)) != state.tasks[task])
    return (events.TasksReplanned(rows),) if rows else ()


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
