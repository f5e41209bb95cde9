"""What a change of queues means, for their items and for the issues in them: functions to events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.errors import UserError
from iterdev.tracker import queues
from iterdev.tracker.events import (
    FeedbackAdded,
    ItemAdded,
    ItemCompleted,
    ItemFailed,
    ItemPlaced,
    ItemRemoved,
    ItemRetried,
    ItemStarted,
    QueueDeleted,
    QueueFormed,
    QueueMoved,
    QueuePrioritized,
    QueuesActivated,
    StatusChanged,
    TrackerEvent,
)
from iterdev.tracker.issues import DEFAULT_PRIORITY, Feedback, FeedbackType, IssueStatus, Stage
from iterdev.tracker.ordering import (
    Candidate,
    Order,
    candidate,
    check_no_circle,
    declared_dependencies,
    ordered,
    semantic_priority,
)
from iterdev.tracker.queues import OPEN, Failure, Group, ItemStatus, Placement, Queue, QueueItem, QueueStatus
from iterdev.tracker.state import Tracker, active_queues, known_issue, known_queue


class Selection(Struct, frozen=True):
    queue_id: str
    item: QueueItem

    @property
    def is_resumed(self) -> bool:
        return self.item.status is ItemStatus.executing


def candidates(tracker: Tracker, names: Sequence[str]) -> list[Candidate]:
    """The bound solutions of issues; raises `UserError` if one has none."""
    found = [(issue := known_issue(tracker, name), tracker.bound_solution(issue)) for name in dict.fromkeys(names)]
    if unbound := [issue.id for issue, solution in found if solution is None]:
        hint = f"iterdev issue bind {unbound[0]} SOLUTION"
        raise UserError(f'No solution is bound to "{", ".join(unbound)}"', hint=hint)
    return [candidate(issue, solution) for issue, solution in found if solution]


def formed(tracker: Tracker, order: Order, at: float) -> Sequence[TrackerEvent]:
    """A queue with the groups of an order; it becomes the active one, and its issues are queued."""
    names = {entry.candidate.issue_id: f"S-{entry.order}" for entry in order.entries}
    items = tuple(
        QueueItem(
            item_id=names[entry.candidate.issue_id],
            issue_id=entry.candidate.issue_id,
            solution_id=entry.candidate.solution_id,
            place=Placement(
                order=entry.order,
                group=f"P{entry.group}",
                depends_on=tuple(names[name] for name in entry.depends_on),
                semantic_priority=entry.semantic_priority,
                task_count=entry.candidate.task_count,
                files_touched=entry.candidate.files,
            ),
            queued_at=at,
        )
        for entry in order.entries
    )
    groups = tuple(
        Group(id=f"P{number}", items=tuple(names[name] for name in members))
        for number, members in enumerate(order.groups, 1)
    )
    queue = Queue(id=queues.new_id(at, tracker.queues), groups=groups, conflicts=order.conflicts, created_at=at)
    return (QueueFormed(queue, items), *(StatusChanged(item.issue_id, IssueStatus.queued) for item in items))


def formed_from(tracker: Tracker, names: Sequence[str], at: float) -> Sequence[TrackerEvent]:
    return formed(tracker, ordered(candidates(tracker, names)), at)


def added(tracker: Tracker, names: Sequence[str], at: float, *, to_new: bool = False) -> Sequence[TrackerEvent]:
    """The bound solutions of issues go to the end of the active queue, or into a new one that becomes active.

    A solution that is in the queue already is left out. A pending item of the same issue with another solution is
    removed, because its solution is not the bound one any more.
    """
    new = candidates(tracker, names)
    active = None if to_new else next(iter(active_queues(tracker)), None)
    queue = active or Queue(id=queues.new_id(at, tracker.queues), created_at=at)
    items = dict(tracker.items.get(queue.id, {}))
    known = {(item.issue_id, item.solution_id) for item in items.values()}
    new = [one for one in new if (one.issue_id, one.solution_id) not in known]
    if not new:
        return ()
    issues = {one.issue_id for one in new}
    stale = [item for item in items.values() if item.issue_id in issues and item.status is ItemStatus.pending]
    for item in stale:
        del items[item.item_id]
    last = max((item.place.order for item in items.values()), default=0)
    number = queues.next_number(tracker.items.get(queue.id, {}))
    for place, one in enumerate(new, last + 1):
        name = f"S-{number + place - last - 1}"
        items[name] = _item(name, one, Placement(order=place, task_count=one.task_count, files_touched=one.files), at)
    fresh = {name for name in items if name not in tracker.items.get(queue.id, {})}
    placed = _with_dependencies(tracker, items)
    return (
        *(() if active else (QueueFormed(queue),)),
        *(ItemRemoved(queue.id, item.item_id) for item in stale),
        *(ItemAdded(queue.id, replace(items[name], place=placed[name])) for name in items if name in fresh),
        *(
            ItemPlaced(queue.id, name, placed[name])
            for name, item in items.items()
            if name not in fresh and placed[name] != item.place
        ),
        *(StatusChanged(one.issue_id, IssueStatus.queued) for one in new),
    )


def _item(name: str, one: Candidate, place: Placement, at: float) -> QueueItem:
    return QueueItem(item_id=name, issue_id=one.issue_id, solution_id=one.solution_id, place=place, queued_at=at)


def _with_dependencies(tracker: Tracker, items: Mapping[str, QueueItem]) -> dict[str, Placement]:
    """The places of items with what their solutions depend on; raises `UserError` if that is a circle."""
    known = {item.issue_id: _candidate_of(tracker, item) for item in items.values()}
    own = {item.issue_id: item.item_id for item in items.values()}
    declared = declared_dependencies(list(known.values()))
    needed = {name for names in declared.values() for name in names}
    places = {item.item_id: item.place for item in items.values()}
    for item in items.values():
        if item.status is not ItemStatus.pending:
            continue
        names, is_needed = declared[item.issue_id], item.issue_id in needed
        kept = (name for name in item.place.depends_on if name in items)
        places[item.item_id] = replace(
            item.place,
            depends_on=tuple(dict.fromkeys([*kept, *(own[name] for name in names)])),
            semantic_priority=semantic_priority(known[item.issue_id], is_needed=is_needed, dependencies=len(names)),
        )
    issues = {item.item_id: item.issue_id for item in items.values()}
    check_no_circle({issues[name]: [issues[one] for one in place.depends_on] for name, place in places.items()})
    return places


def _candidate_of(tracker: Tracker, item: QueueItem) -> Candidate:
    """The solution of an item; of one that another tool wrote, it may not be known."""
    issue = tracker.issues.get(item.issue_id)
    solution = tracker.solutions.get(item.issue_id, {}).get(item.solution_id)
    if issue and solution:
        return candidate(issue, solution)
    place = item.place
    return Candidate(
        issue_id=item.issue_id,
        solution_id=item.solution_id,
        priority=issue.description.priority if issue else DEFAULT_PRIORITY,
        task_count=place.task_count,
        files=place.files_touched,
    )


def find_item(tracker: Tracker, name: str, queue: str = "") -> Selection:
    """An item by `S-1`, or `QUEUE:S-1`; without a queue, the active ones are searched first."""
    given, separator, item = name.rpartition(":")
    wanted = queue or given
    if wanted:
        places = [known_queue(tracker, wanted).id]
    else:
        places = [*tracker.active, *reversed([one for one in tracker.queues if one not in tracker.active])]
    for place in places:
        if found := tracker.items.get(place, {}).get(item if separator else name):
            return Selection(place, found)
    where = f'the queue "{wanted}"' if wanted else "any queue"
    raise UserError(f'There is no item "{name}" in {where}', hint="iterdev issue queue")


def selected(tracker: Tracker, queue: str = "") -> Selection | None:
    """The item to work on: one that was started, or else the first that is ready; None if there is none.

    Queues are worked off strictly by priority: one with open items keeps the next ones waiting.
    """
    chosen = [known_queue(tracker, queue)] if queue else active_queues(tracker)
    for one in chosen:
        items = tracker.items[one.id]
        if any(item.status in OPEN for item in items.values()):
            return next(iter(_startable(one.id, items)), None)
    return None


def _startable(queue: str, items: Mapping[str, QueueItem]) -> Iterator[Selection]:
    ready = [item for item in items.values() if item.status is ItemStatus.executing or queues.is_ready(items, item)]
    for item in sorted(ready, key=lambda one: (one.status is not ItemStatus.executing, one.place.order)):
        yield Selection(queue, item)


def started(tracker: Tracker, selection: Selection) -> Sequence[TrackerEvent]:
    """The item is executing, and so is its issue; nothing if it was started before."""
    item = selection.item
    match item.status:
        case ItemStatus.executing:
            return ()
        case ItemStatus.pending:
            return (ItemStarted(selection.queue_id, item.item_id), *_moved(tracker, item, IssueStatus.executing))
        case ItemStatus.completed:
            raise UserError(f'"{item.item_id}" is completed already', hint="iterdev issue queue")
        case ItemStatus.failed:
            raise UserError(f'"{item.item_id}" has failed', hint=f"iterdev issue retry {item.issue_id}")


def completed(tracker: Tracker, selection: Selection, result: Mapping[str, object]) -> Sequence[TrackerEvent]:
    """The item and its issue are completed; nothing if they were before."""
    item = selection.item
    if item.status is ItemStatus.completed:
        return ()
    done = ItemCompleted(selection.queue_id, item.item_id, result)
    return (done, *_moved(tracker, item, IssueStatus.completed), *_closed(tracker, selection, ItemStatus.completed))


def failed(tracker: Tracker, selection: Selection, failure: Failure, at: float) -> Sequence[TrackerEvent]:
    """The item and its issue have failed."""
    item = selection.item
    if item.status is ItemStatus.completed:
        raise UserError(f'"{item.item_id}" is completed already', hint="iterdev issue queue")
    event = ItemFailed(selection.queue_id, item.item_id, replace(failure, timestamp=at))
    return (event, *_moved(tracker, item, IssueStatus.failed), *_closed(tracker, selection, ItemStatus.failed))


def _moved(tracker: Tracker, item: QueueItem, status: IssueStatus) -> Iterator[StatusChanged]:
    issue = tracker.issues.get(item.issue_id)
    if issue and issue.status is not status:
        yield StatusChanged(issue.id, status)


def _closed(tracker: Tracker, selection: Selection, status: ItemStatus) -> Iterator[QueueMoved]:
    """The queue is over if this was its last item."""
    name = selection.queue_id
    items = {**tracker.items[name], selection.item.item_id: replace(selection.item, status=status)}
    over = queues.ended(items)
    if over and tracker.queues[name].status is QueueStatus.active:
        yield QueueMoved(name, over)


def retried(tracker: Tracker, at: float, issue: str = "", queue: str = "") -> Sequence[TrackerEvent]:
    """The failed items, of one issue or one queue if they are named, are pending again; their failures are kept."""
    if issue:
        known_issue(tracker, issue)
    chosen = [known_queue(tracker, queue)] if queue else [one for one in tracker.queues.values() if _is_open(one)]
    found: list[TrackerEvent] = []
    active = dict.fromkeys(tracker.active)
    for one in chosen:
        items = [item for item in tracker.items[one.id].values() if item.status is ItemStatus.failed]
        again = [item for item in items if issue in {"", item.issue_id}]
        for item in again:
            found += _retried(tracker, one.id, item, at)
        if again and one.status is not QueueStatus.active:
            found.append(QueueMoved(one.id, QueueStatus.active))
        if again:
            active.setdefault(one.id)
    return found if len(active) == len(tracker.active) else [*found, QueuesActivated(tuple(active))]


def _is_open(queue: Queue) -> bool:
    return queue.status in {QueueStatus.active, QueueStatus.failed}


def _retried(tracker: Tracker, queue: str, item: QueueItem, at: float) -> Iterator[TrackerEvent]:
    yield ItemRetried(queue, item.item_id)
    if item.failure and item.issue_id in tracker.issues:
        feedback = Feedback(type=FeedbackType.failure, stage=Stage.execute, content=item.failure.message, created_at=at)
        yield FeedbackAdded(item.issue_id, feedback)
    yield from _moved(tracker, item, IssueStatus.queued)


def activated(tracker: Tracker, names: Sequence[str]) -> Sequence[TrackerEvent]:
    """These queues are the active ones; one that was put aside is worked on again if there is work in it."""
    chosen = [known_queue(tracker, name) for name in dict.fromkeys(names)]
    opened = (event for one in chosen for event in _opened(one, tracker.items[one.id].values()))
    return (*opened, QueuesActivated(tuple(one.id for one in chosen)))


def _opened(queue: Queue, items: Iterable[QueueItem]) -> Iterator[QueueMoved]:
    """A queue that was put aside or over, and has such items, is neither any more."""
    if queue.status is not QueueStatus.active and any(item.status in OPEN for item in items):
        yield QueueMoved(queue.id, QueueStatus.active)


def prioritized(tracker: Tracker, name: str, priority: int) -> tuple[QueuePrioritized]:
    return (QueuePrioritized(known_queue(tracker, name).id, priority),)


def archived(tracker: Tracker, name: str) -> Sequence[TrackerEvent]:
    """The queue is put aside with all that is in it; `next` does not take items of it any more."""
    queue = known_queue(tracker, name)
    if queue.status is QueueStatus.archived:
        return ()
    left = tuple(one for one in tracker.active if one != name)
    return (QueueMoved(name, QueueStatus.archived), *([QueuesActivated(left)] if name in tracker.active else []))


def deleted(tracker: Tracker, name: str) -> tuple[QueueDeleted]:
    return (QueueDeleted(known_queue(tracker, name).id),)


def merged(tracker: Tracker, source: str, target: str) -> Sequence[TrackerEvent]:
    """The items of one queue go to the end of another one, which skips what it has; the first is archived."""
    known_queue(tracker, source), known_queue(tracker, target)
    if source == target:
        raise UserError(f'"{source}" cannot be merged into itself', hint="name another queue with --queue")
    there = tracker.items[target]
    known = {(item.issue_id, item.solution_id): item.item_id for item in there.values()}
    items = tracker.items[source].values()
    moving = [item for item in items if (item.issue_id, item.solution_id) not in known]
    last = max((item.place.order for item in there.values()), default=0)
    # What waits for an item that is skipped waits for the one that is there already.
    names = {item.item_id: known.get((item.issue_id, item.solution_id), "") for item in items}
    names |= {item.item_id: f"S-{number}" for number, item in enumerate(moving, queues.next_number(there))}
    placed = (
        replace(
            item,
            item_id=names[item.item_id],
            place=replace(
                item.place,
                order=last + place,
                depends_on=tuple(names[name] for name in item.place.depends_on if name in names),
            ),
        )
        for place, item in enumerate(moving, 1)
    )
    opened = _opened(tracker.queues[target], moving)
    return (*(ItemAdded(target, item) for item in placed), *opened, *archived(tracker, source))
