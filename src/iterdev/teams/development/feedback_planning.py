"""Which tasks take up what the user said, as the design has it, and when that is addressed."""

from collections.abc import Iterator

from iterdev.core.collaboration import feedback
from iterdev.core.collaboration.feedback import FeedbackEvent, FeedbackMoved, FeedbackPlanned, FeedbackStatus
from iterdev.core.session.state import State
from iterdev.core.types import Status, TaskId
from iterdev.teams.development import sprints
from iterdev.teams.development.fields import Role
from iterdev.teams.development.state import development, rows_of


def uptake(state: State) -> tuple[FeedbackEvent, ...]:
    """What has to be recorded because something was planned or completed."""
    if not any(item.is_open for item in state.feedback):
        return ()
    return (*_taken_up(state), *_addressed(state))


def _taken_up(state: State) -> Iterator[FeedbackPlanned]:
    """A task that is over takes nothing up: somebody who says again what it was told is not answered by it."""
    for name, tasks in _plans(state).items():
        item = feedback.by_id(state.feedback, name)
        open_ = any(not state.tasks.status(task).is_final for task in tasks)
        if item and item.is_open and open_ and item.planned_in != tasks:
            yield FeedbackPlanned(feedback_id=name, tasks=tasks)


def _plans(state: State) -> dict[str, tuple[TaskId, ...]]:
    """The developers' rows of the sprint by the feedback that their items name."""
    sprint = development(state).sprint
    design = sprints.design_of(state, sprint)
    if design is None or not any(item.feedback for item in design.tasks):
        return {}
    plans: dict[str, tuple[TaskId, ...]] = {}
    for task in rows_of(state, Role.developer, sprint):
        for name in dict.fromkeys(name for item in sprints.items_of(state, task) for name in item.feedback):
            plans[name] = (*plans.get(name, ()), task.id)
    return plans


def _addressed(state: State) -> Iterator[FeedbackMoved]:
    for item in state.feedback:
        done = [state.tasks.status(task) is Status.completed for task in item.planned_in]
        if item.is_open and done and all(done):
            yield FeedbackMoved(feedback_id=item.feedback_id, status=FeedbackStatus.addressed)
