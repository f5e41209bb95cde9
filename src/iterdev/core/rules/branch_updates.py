"""Updates: the newest commit of the user's branch is brought into the session, as the work of a task.

It lands like all other work: once, by compare and swap, and what git cannot merge becomes a conflict task.
"""

from msgspec.structs import replace

from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session import tasks
from iterdev.core.session.conflicts import merged_by
from iterdev.core.session.events import Event, TasksAdded, TasksReplanned, UpdateRequested, UpdateStarted
from iterdev.core.session.state import State
from iterdev.core.types import TaskId


def due(state: State, team: TeamRules) -> tuple[Event, ...]:
    """The tasks of an update that was asked for, or the start of one that is to be tried again."""
    if asked := state.branch.requested:
        return _planned(state, team, asked)
    again = next((task for task in state.branch.updates if task in state.tasks.ready), None)
    return (UpdateStarted(again, state.branch.updates[again]),) if again else ()


def _planned(state: State, team: TeamRules, asked: UpdateRequested) -> tuple[Event, ...]:
    """Whatever could start now waits for the update."""
    update, *others = tasks.joining(team.update_tasks(state, asked), state.tasks.plan)
    ready = map(state.tasks.plan.__getitem__, state.tasks.ready)
    waiting = tuple(replace(task, deps=(*task.deps, update.id)) for task in ready)
    replanned = (TasksReplanned(waiting),) if waiting else ()
    return TasksAdded((update, *others)), *replanned, UpdateStarted(update.id, asked.commit)


def brought_in(state: State, task: TaskId) -> str:
    """The commit of the user's branch that is on the session's branch when the work of a task has landed.

    It is that of an update, or of the update whose conflict the task resolves; empty for all other work.
    """
    while other := merged_by(state.conflicts, task):
        task = other
    return state.branch.updates.get(task, "")
