"""What the user says about the work: kept, linked to tasks, and put before whoever plans and works next."""

from collections.abc import Collection
from enum import StrEnum

import msgspec
from msgspec import Struct

from iterdev.core import ids
from iterdev.core.types import Severity, TaskId

KEPT = 50
"""Items of a session; older ones are dropped."""

URGENT = (Severity.critical, Severity.high)


class FeedbackCategory(StrEnum):
    general = "general"
    ux = "ux"
    performance = "performance"
    bug = "bug"
    feature = "feature"


class FeedbackStatus(StrEnum):
    new = "new"
    reviewed = "reviewed"
    addressed = "addressed"
    closed = "closed"


class Feedback(Struct, frozen=True, kw_only=True):
    feedback_id: str = ""
    description: str
    severity: Severity = Severity.medium
    category: FeedbackCategory = FeedbackCategory.general
    status: FeedbackStatus = FeedbackStatus.new
    source_task_id: TaskId | None = None
    timestamp: float
    taken_up_by: tuple[TaskId, ...] = ()
    """The tasks that were planned because of it; when they are completed, it is addressed."""

    @property
    def is_open(self) -> bool:
        return self.status in {FeedbackStatus.new, FeedbackStatus.reviewed}


Items = tuple[Feedback, ...]
"""The newest first."""


class FeedbackGiven(Struct, frozen=True, tag=True):
    item: Feedback


class FeedbackLinked(Struct, frozen=True, kw_only=True, tag=True):
    feedback_id: str
    task: TaskId


class FeedbackTakenUp(Struct, frozen=True, kw_only=True, tag=True):
    """Planning made it a part of these tasks."""

    feedback_id: str
    tasks: tuple[TaskId, ...]


class FeedbackMoved(Struct, frozen=True, kw_only=True, tag=True):
    feedback_id: str
    status: FeedbackStatus


FeedbackEvent = FeedbackGiven | FeedbackLinked | FeedbackTakenUp | FeedbackMoved


def given(items: Items, item: Feedback) -> FeedbackGiven:
    """The item with an id of its own, made from its time."""
    taken = {other.feedback_id for other in items}
    return FeedbackGiven(msgspec.structs.replace(item, feedback_id=ids.timed_id("FB", item.timestamp, taken)))


def named(items: Items, feedback_id: str) -> Feedback | None:
    return next((item for item in items if item.feedback_id == feedback_id), None)


def urgent(items: Items) -> Items:
    """Open feedback of high and critical severity, in the order in which it should be taken up."""
    wanted = [item for item in items if item.is_open and item.severity in URGENT]
    return tuple(sorted(wanted, key=lambda item: (URGENT.index(item.severity), item.timestamp)))


def evolve(items: Items, event: FeedbackEvent) -> Items:
    match event:
        case FeedbackGiven(item):
            return (item, *items)[:KEPT]
        case FeedbackLinked(feedback_id=name, task=task):
            return _changed(items, name, source_task_id=task, status=FeedbackStatus.reviewed)
        case FeedbackTakenUp(feedback_id=name, tasks=tasks):
            known = named(items, name)
            about = known.source_task_id if known and known.source_task_id else tasks[0]
            return _changed(items, name, source_task_id=about, taken_up_by=tasks, status=FeedbackStatus.reviewed)
        case FeedbackMoved(feedback_id=name, status=FeedbackStatus.addressed):
            return _changed(items, name, status=FeedbackStatus.addressed)
        case FeedbackMoved(feedback_id=name, status=status):
            return _changed(items, name, status=status, taken_up_by=())


def let_go(items: Items, tasks: Collection[TaskId]) -> Items:
    """Feedback that undone tasks had taken up is as new."""
    return tuple(_as_new(item, tasks) if not set(tasks).isdisjoint(item.taken_up_by) else item for item in items)


def _as_new(item: Feedback, tasks: Collection[TaskId]) -> Feedback:
    about = None if item.source_task_id in tasks else item.source_task_id
    return msgspec.structs.replace(item, source_task_id=about, taken_up_by=(), status=FeedbackStatus.new)


def _changed(items: Items, name: str, **fields: object) -> Items:
    return tuple(msgspec.structs.replace(item, **fields) if item.feedback_id == name else item for item in items)
