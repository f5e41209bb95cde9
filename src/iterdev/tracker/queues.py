"""A queue: bound solutions in the order in which they are carried out, with what each waits for."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from itertools import count

from msgspec import Struct


class QueueStatus(StrEnum):
    active = "active"
    completed = "completed"
    archived = "archived"
    failed = "failed"


class ItemStatus(StrEnum):
    pending = "pending"
    executing = "executing"
    completed = "completed"
    failed = "failed"


OPEN = frozenset({ItemStatus.pending, ItemStatus.executing})


class GroupType(StrEnum):
    parallel = "parallel"
    sequential = "sequential"


class Resolution(StrEnum):
    sequential = "sequential"
    merge = "merge"
    manual = "manual"


class Failure(Struct, frozen=True, kw_only=True):
    message: str
    error_type: str = "execution_error"
    task_id: str = ""
    stack_trace: str = ""
    timestamp: float = 0


class Placement(Struct, frozen=True, kw_only=True):
    """Where an item stands in its queue, and why."""

    order: int
    group: str = "P1"
    depends_on: tuple[str, ...] = ()
    """Items of the same queue."""
    semantic_priority: float = 0.5
    task_count: int = 0
    files_touched: tuple[str, ...] = ()


class QueueItem(Struct, frozen=True, kw_only=True):
    item_id: str
    issue_id: str
    solution_id: str
    place: Placement
    status: ItemStatus = ItemStatus.pending
    queued_at: float = 0
    started_at: float | None = None
    completed_at: float | None = None
    result: Mapping[str, object] = {}
    failure: Failure | None = None
    failure_history: tuple[Failure, ...] = ()


class Conflict(Struct, frozen=True, kw_only=True):
    """Solutions that touch the same files."""

    issues: tuple[str, ...]
    """In the order in which they are carried out."""
    files: tuple[str, ...]
    resolution: Resolution = Resolution.sequential
    rationale: str = ""
    resolved: bool = True


class Group(Struct, frozen=True, kw_only=True):
    id: str
    type: GroupType = GroupType.parallel
    items: tuple[str, ...] = ()


class Queue(Struct, frozen=True, kw_only=True):
    id: str
    status: QueueStatus = QueueStatus.active
    priority: int | None = None
    """The queue with the lower number comes first."""
    groups: tuple[Group, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    created_at: float = 0
    completed_at: float | None = None


Items = Mapping[str, QueueItem]


def new_id(at: float, taken: Collection[str]) -> str:
    """`QUE-` and 14 digits of the time in UTC; if it is taken, that of the next free second."""
    return next(name for second in count() if (name := _id_at(at + second)) not in taken)


def _id_at(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("QUE-%Y%m%d%H%M%S")


def next_number(taken: Iterable[str]) -> int:
    """The number of the next item, such as 3 for `S-3`."""
    numbers = (name.removeprefix("S-") for name in taken)
    return max((int(number) for number in numbers if number.isdecimal()), default=0) + 1


def blocked_by(items: Items, item: QueueItem) -> tuple[str, ...]:
    """The items that it waits for; one that failed blocks it until it is retried."""
    known = (name for name in item.place.depends_on if name in items)
    return tuple(name for name in known if items[name].status is not ItemStatus.completed)


def is_ready(items: Items, item: QueueItem) -> bool:
    return item.status is ItemStatus.pending and not blocked_by(items, item)


def ended(items: Items) -> QueueStatus | None:
    """How a queue ended, all of whose items have; None as long as there is work in it."""
    statuses = {item.status for item in items.values()}
    if not items or statuses & OPEN:
        return None
    return QueueStatus.failed if ItemStatus.failed in statuses else QueueStatus.completed
