"""Conflict tasks: they bring work together with what landed before it, where the two are in conflict.

Two of them that touch the same files would be in conflict again side by side, so each waits for those before it.
"""

from functools import partial

from msgspec.structs import replace

from iterdev.core import ids, task_description
from iterdev.core.rules.outcomes import completion, not_merged
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session import conflicts, tasks
from iterdev.core.session.conflicts import MergeInProgress
from iterdev.core.session.events import ConflictResolved, Event, TaskCompleted, TasksAdded, TasksReplanned
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import UNSUCCESSFUL, ConflictStrategy, Status, TaskId, TaskKind


def merged_by(state: State, task: TaskId) -> TaskId | None:
    """The task whose work a conflict task merges; None if it is no conflict task."""
    return conflicts.merged_by(state.conflicts, task)


def merge_of(state: State, task: TaskId) -> MergeInProgress | None:
    """The merge that a conflict task finishes; None if git merged the work, or it is to be done again."""
    other = merged_by(state, task)
    commit = state.tasks.progress[other].commit if other else None
    if other is None or commit is None:
        return None
    conflict = state.conflicts.by_task[other]
    if conflict.found.merged or conflict.strategy is ConflictStrategy.abort:
        return None
    return MergeInProgress(task=other, commit=commit)


def conflict_task_of(state: State, task: TaskId) -> TaskId | None:
    """The conflict task that merges work which could not land: the last one, if conflict tasks were in conflict too."""
    conflict = state.conflicts.by_task.get(task)
    if conflict is None or conflict.found.merged or conflict.resolved_by is None:
        return None
    if state.tasks.status(task) is not Status.completed:
        return None  # It is to be done again.
    return conflict_task_of(state, conflict.resolved_by) or conflict.resolved_by


def is_resolved(state: State, task: TaskId) -> bool:
    """Whether nothing is left to do about a conflict; its conflict task has to be completed."""
    conflict = state.conflicts.by_task[task]
    if conflict.resolved_by is None:
        return False
    return state.tasks.status(conflict_task_of(state, conflict.resolved_by) or conflict.resolved_by) is Status.completed


def conflict_note(state: State, task: TaskId) -> str:
    """What became of work that could not land, in a few words; empty for all other work."""
    fix = conflict_task_of(state, task)
    if fix is None:
        return ""
    status = state.tasks.status(fix)
    where = f"conflict in {', '.join(state.conflicts.by_task[task].found.files)}"
    if status in UNSUCCESSFUL:
        kept = ids.kept_ref(state.session.id, task, state.tasks.progress[task].attempt)
        return f"{where}; {fix} {status}: this work is not on the branch, it is kept as {kept}"
    return f"{where}; {'resolved' if status is Status.completed else 'being resolved'} by {fix}"


def commit_note(state: State, task: TaskId) -> str:
    """The commit of a task's work, and the conflict task that landed it if the task itself did not."""
    fix, made = conflict_task_of(state, task), state.tasks.progress[task].commit or ""
    if fix is None:
        return made
    landed = state.tasks.status(fix) is Status.completed
    return f"{made} ({f'landed with {fix}' if landed else f'not landed, see {fix}'})"


def not_landed(state: State) -> list[TaskId]:
    """The tasks whose work is not on the branch, because the conflict task that was to merge it did not succeed."""
    fixes = ((task, conflict_task_of(state, task)) for task in state.conflicts.by_task)
    return [task for task, fix in fixes if fix and state.tasks.status(fix) in UNSUCCESSFUL]


def resolution(state: State, team: TeamRules, task: TaskId) -> tuple[Event, ...]:
    """What follows from a conflict: a conflict task before the dependants, or the end of the task at the limit.

    Where git has merged both changes and nobody is to look at it, the conflict task is completed with its creation.
    """
    conflict, wanted = state.conflicts.by_task[task].found, state.policy.conflicts
    strategy = ConflictStrategy.abort if wanted is ConflictStrategy.abort else ConflictStrategy.manual
    at_limit = _chain(state, task) >= state.policy.conflict_fixes
    if at_limit and not conflict.merged:
        error = not_merged(state, task, conflict.files)
        return (ConflictResolved(task=task, strategy=strategy, status=Status.failed, error=error),)
    by_git = conflict.merged and (at_limit or wanted is not ConflictStrategy.manual)
    (fix,) = tasks.joining([_conflict_task(state, team, task)], state.tasks.plan)
    status, error, follow = completion(state, team, task)
    resolved = partial(ConflictResolved, task=task, fix=fix.id, status=status, error=error)
    if by_git:
        merged = TaskCompleted(fix.id, f"git merged both changes of {', '.join(conflict.files)}")
        return TasksAdded((fix,)), resolved(strategy=ConflictStrategy.auto_merge), merged, *follow
    # The conflict tasks that it had before stay as they are.
    others = (other for other in state.tasks.dependants.get(task, ()) if merged_by(state, other) != task)
    waiting = tuple(tasks.redirected(state.tasks.plan[other], task, fix.id) for other in others)
    first = (TasksAdded((fix,)), *((TasksReplanned(waiting),) if waiting else ()))
    # Where the conflict task does the work again, nothing follows from the work as it was.
    return *first, resolved(strategy=strategy), *(follow if strategy is ConflictStrategy.manual else ())


def _chain(state: State, task: TaskId) -> int:
    """How many conflict tasks led to this one, itself included."""
    length, row = 0, state.tasks.plan[task]
    while row.kind is TaskKind.conflict_fix and (other := merged_by(state, row.id)):
        length, row = length + 1, state.tasks.plan[other]
    return length


def _conflict_task(state: State, team: TeamRules, task: TaskId) -> Task:
    work, others = state.tasks.plan[task], state.conflicts.by_task[task].found.others
    name = TaskId(f"{task}{ids.CONFLICT_FIX}")
    loops = team.roles[work.role].loops
    return Task(
        id=name if name not in state.tasks.plan else ids.next_id(name, state.tasks.plan),
        title=f"Resolve the conflict of {task}",
        description=task_description.describe(team.conflict_brief, state.scope, inner_loop=loops),
        role=work.role,
        fields=work.fields,
        kind=TaskKind.conflict_fix,
        deps=(task, *_before(state, task)),
        context_from=(task, *others),
    )


def freed(state: State) -> tuple[Event, ...]:
    """Conflict tasks come after others, whatever becomes of those: they do not wait for tasks that failed."""
    blocked = state.tasks.blocked_by_failure
    rows = tuple(row for task in blocked if (row := _without_failed(state, task)) != state.tasks.plan[task])
    return (TasksReplanned(rows),) if rows else ()


def _without_failed(state: State, task: TaskId) -> Task:
    row, own = state.tasks.plan[task], merged_by(state, task)
    if own is None:
        return row
    deps = (dep for dep in row.deps if dep == own or state.tasks.status(dep) not in UNSUCCESSFUL)
    return replace(row, deps=tuple(deps))


def _before(state: State, task: TaskId) -> list[TaskId]:
    """The conflict tasks that a new one comes after; of those that wait for each other, the last."""
    mine = _files(state, task)
    fixes = {other: conflict.resolved_by for other, conflict in state.conflicts.by_task.items() if conflict.resolved_by}
    unfinished = {other: fix for other, fix in fixes.items() if not state.tasks.status(fix).is_final}
    found = [fix for other, fix in unfinished.items() if not mine.isdisjoint(_files(state, other))]
    first = [fix for fix in found if task not in state.tasks.ancestors(fix)]
    awaited = {dep for fix in first for dep in state.tasks.plan[fix].deps}
    return [fix for fix in first if fix not in awaited]


def _files(state: State, task: TaskId) -> set[str]:
    """What a task changed, and so what its conflict task will."""
    return {*state.tasks.progress[task].changed, *state.conflicts.by_task[task].found.files}
