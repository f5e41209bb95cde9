"""Which tasks take up what the user said, as the design has it, and when that is addressed."""

from collections.abc import Iterator

from iterdev.core.collaboration import feedback
from iterdev.core.collaboration.feedback import FeedbackEvent, FeedbackMoved, FeedbackStatus, FeedbackTakenUp
from iterdev.core.session.state import State
from iterdev.core.types import Role, Status, TaskId
from iterdev.teams.development import sprints


def uptake(state: State) -> tuple[FeedbackEvent, ...]:
    """What has to be recorded because something was planned or completed."""
    if not any(item.is_open for item in state.feedback):
        return ()
    return (*_taken_up(state), *_addressed(state))


def _taken_up(state: State) -> Iterator[FeedbackTakenUp]:
    """A task that is over takes nothing up: somebody who says again what it was told is not answered by it."""
    for name, tasks in _plans(state).items():
        item = feedback.named(state.feedback, name)
        open_ = any(not state.progress[task].status.is_final for task in tasks)
        if item and item.is_open and open_ and item.taken_up_by != tasks:
            yield FeedbackTakenUp(feedback_id=name, tasks=tasks)


def _plans(state: State) -> dict[str, tuple[TaskId, ...]]:
    """The developers' rows of the sprint by the feedback that their items name."""
    design = sprints.design_of(state, state.sprint)
    if design is None or not any(item.feedback for item in design.tasks):
        return {}
    plans: dict[str, tuple[TaskId, ...]] = {}
    for task in state.of_role(Role.developer, state.sprint):
        for name in dict.fromkeys(name for item in sprints.items_of(state, task) for name in item.feedback):
            plans[name] = (*plans.get(name, ()), task.id)
    return plans


def _addressed(state: State) -> Iterator[FeedbackMoved]:
    for item in state.feedback:
        done = [state.progress[task].status is Status.completed for task in item.taken_up_by]
        if item.is_open and done and all(done):
            yield FeedbackMoved(feedback_id=item.feedback_id, status=FeedbackStatus.addressed)
