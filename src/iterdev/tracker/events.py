"""What can have happened in the tracker. An event is complete in itself; folding only adds up."""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.tracker.issues import Description, Feedback, Issue, IssueStatus
from iterdev.tracker.queues import Failure, Placement, Queue, QueueItem, QueueStatus
from iterdev.tracker.solutions import Solution


class IssueCreated(Struct, frozen=True, tag=True):
    """A new issue, or one of another tool with all that is known of it; an issue of the same id is replaced."""

    issue: Issue


class IssueDescribed(Struct, frozen=True, tag=True):
    """What is said of the issue now."""

    issue_id: str
    description: Description


class StatusChanged(Struct, frozen=True, tag=True):
    issue_id: str
    status: IssueStatus


class FeedbackAdded(Struct, frozen=True, tag=True):
    issue_id: str
    feedback: Feedback


class SolutionAdded(Struct, frozen=True, tag=True):
    issue_id: str
    solution: Solution


class SolutionBound(Struct, frozen=True, tag=True):
    """The solution is the one to be carried out, and no other one of the issue."""

    issue_id: str
    solution_id: str


class QueueFormed(Struct, frozen=True, tag=True):
    """A queue with its first items; it becomes the only active one."""

    queue: Queue
    items: tuple[QueueItem, ...] = ()


class QueueImported(Struct, frozen=True, tag=True):
    """A queue of another tool; which queues are active, another event says."""

    queue: Queue
    items: tuple[QueueItem, ...] = ()


class ItemAdded(Struct, frozen=True, tag=True):
    queue_id: str
    item: QueueItem


class ItemPlaced(Struct, frozen=True, tag=True):
    """An item that has not been started stands elsewhere now."""

    queue_id: str
    item_id: str
    place: Placement


class ItemRemoved(Struct, frozen=True, tag=True):
    queue_id: str
    item_id: str


class ItemStarted(Struct, frozen=True, tag=True):
    queue_id: str
    item_id: str


class ItemCompleted(Struct, frozen=True, tag=True):
    queue_id: str
    item_id: str
    result: Mapping[str, object] = {}


class ItemFailed(Struct, frozen=True, tag=True):
    queue_id: str
    item_id: str
    failure: Failure


class ItemRetried(Struct, frozen=True, tag=True):
    """A failed item is pending again; its failure is kept in its history."""

    queue_id: str
    item_id: str


class QueueMoved(Struct, frozen=True, tag=True):
    queue_id: str
    status: QueueStatus


class QueuePrioritized(Struct, frozen=True, tag=True):
    queue_id: str
    priority: int


class QueuesActivated(Struct, frozen=True, tag=True):
    """These are the active queues now, and no others."""

    queue_ids: tuple[str, ...]


class QueueDeleted(Struct, frozen=True, tag=True):
    queue_id: str


IssueEvent = IssueCreated | IssueDescribed | StatusChanged | FeedbackAdded
SolutionEvent = SolutionAdded | SolutionBound
ItemEvent = ItemAdded | ItemPlaced | ItemRemoved | ItemStarted | ItemCompleted | ItemFailed | ItemRetried
QueueEvent = QueueFormed | QueueImported | QueueMoved | QueuePrioritized | QueuesActivated | QueueDeleted
TrackerEvent = IssueEvent | SolutionEvent | ItemEvent | QueueEvent


class TrackerEntry(Struct, frozen=True):
    seq: int
    at: float
    event: TrackerEvent
