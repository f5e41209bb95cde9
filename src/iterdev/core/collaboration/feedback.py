"""Feedback of the user on the work: kept, linked to tasks, and part of the prompts of later tasks."""

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core import ids
from iterdev.core.types import Severity, TaskId

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
    planned_in: tuple[TaskId, ...] = ()
    """The tasks that were planned because of it; when they are completed, it is addressed."""

    @property
    def is_open(self) -> bool:
        return self.status in {FeedbackStatus.new, FeedbackStatus.reviewed}


Items = tuple[Feedback, ...]
"""The newest first."""


class FeedbackGiven(Struct, frozen=True, tag=True):
    item: Feedback
    dropped: tuple[str, ...] = ()
    """Ids of older items that are not kept any longer."""


class FeedbackLinked(Struct, frozen=True, kw_only=True, tag=True):
    feedback_id: str
    task: TaskId


class FeedbackPlanned(Struct, frozen=True, kw_only=True, tag=True):
    feedback_id: str
    tasks: tuple[TaskId, ...]


class FeedbackMoved(Struct, frozen=True, kw_only=True, tag=True):
    feedback_id: str
    status: FeedbackStatus


FeedbackEvent = FeedbackGiven | FeedbackLinked | FeedbackPlanned | FeedbackMoved


def give(items: Items, item: Feedback, *, kept: int) -> FeedbackGiven:
    """The item with an id of its own, made from its time; only the newest items are kept."""
    taken = {other.feedback_id for other in items}
    named = replace(item, feedback_id=ids.timed_id("FB", item.timestamp, taken))
    return FeedbackGiven(named, tuple(other.feedback_id for other in items[kept - 1 :]))


def by_id(items: Items, feedback_id: str) -> Feedback | None:
    return next((item for item in items if item.feedback_id == feedback_id), None)


def urgent(items: Items) -> Items:
    """Open feedback of high and critical severity, the most urgent first."""
    wanted = [item for item in items if item.is_open and item.severity in URGENT]
    return tuple(sorted(wanted, key=lambda item: (URGENT.index(item.severity), item.timestamp)))


def evolve(items: Items, event: FeedbackEvent, _: float = 0) -> Items:
    match event:
        case FeedbackGiven(item, dropped):
            return (item, *(other for other in items if other.feedback_id not in dropped))
        case FeedbackLinked(feedback_id=name, task=task):
            return _changed(items, name, source_task_id=task, status=FeedbackStatus.reviewed)
        case FeedbackPlanned(feedback_id=name, tasks=tasks):
            known = by_id(items, name)
            about = known.source_task_id if known and known.source_task_id else tasks[0]
            return _changed(items, name, source_task_id=about, planned_in=tasks, status=FeedbackStatus.reviewed)
        case FeedbackMoved(feedback_id=name, status=status):
            planned = {} if status is FeedbackStatus.addressed else {"planned_in": ()}
            return _changed(items, name, status=status, **planned)


def without_tasks(items: Items, tasks: Collection[TaskId]) -> Items:
    """Feedback that was planned in tasks which a rollback undid is new again."""
    return tuple(_as_new(item, tasks) if not set(tasks).isdisjoint(item.planned_in) else item for item in items)


def _as_new(item: Feedback, tasks: Collection[TaskId]) -> Feedback:
    about = None if item.source_task_id in tasks else item.source_task_id
    return replace(item, source_task_id=about, planned_in=(), status=FeedbackStatus.new)


def _changed(items: Items, name: str, **fields: object) -> Items:
    return tuple(replace(item, **fields) if item.feedback_id == name else item for item in items)
