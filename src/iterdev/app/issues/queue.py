"""Changes queues: adds solutions, hands out items, records how they ended."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from iterdev.core.errors import NeedsConfirmation, UserError
from iterdev.engine.issue_tracker import edit_tracker
from iterdev.engine.repository import Repository
from iterdev.tracker import documents, queue_rules, queues
from iterdev.tracker.documents import Document
from iterdev.tracker.events import ItemAdded, ItemRetried, TrackerEvent
from iterdev.tracker.queue_rules import Selection
from iterdev.tracker.queues import OPEN, Failure
from iterdev.tracker.reading import as_object
from iterdev.tracker.state import Tracker, active_queues, known_queue

RESULT_EXAMPLE = '{"commit": "1a2b3c4"}'
UNKNOWN_FAILURE = "no reason was given"

QueueRule = Callable[[Tracker], Sequence[TrackerEvent]]


class Added(Struct, frozen=True, kw_only=True):
    queue_id: str
    items: tuple[str, ...]
    skipped: tuple[str, ...]
    """Issues whose bound solution is in the queue already."""


def add(repository: Repository, names: Sequence[str], *, to_new: bool = False) -> Added:
    with edit_tracker(repository) as log:
        events = log.transact(lambda tracker, at: queue_rules.added(tracker, names, at, to_new=to_new))
        added = [event for event in events if isinstance(event, ItemAdded)]
        queue = added[0].queue_id if added else active_queues(log.tracker)[0].id
        new = {event.item.issue_id: event.item.item_id for event in added}
        skipped = tuple(name for name in dict.fromkeys(names) if name not in new)
        return Added(queue_id=queue, items=tuple(new.values()), skipped=skipped)


def take_next(repository: Repository, item: str = "", queue: str = "") -> Document:
    """The next item, which is executing from now on; one that was started before is handed out again."""
    chosen: list[Selection | None] = []

    def rule(tracker: Tracker, _: float) -> Sequence[TrackerEvent]:
        found = queue_rules.find_item(tracker, item, queue) if item else queue_rules.selected(tracker, queue)
        chosen.append(found)
        return queue_rules.started(tracker, found) if found else ()

    with edit_tracker(repository) as log:
        log.transact(rule)
        if not (found := chosen[-1]):
            return _nothing(log.tracker, queue)
        current = Selection(found.queue_id, log.tracker.items[found.queue_id][found.item.item_id])
        return documents.selection_document(log.tracker, current, resumed=found.is_resumed)


def finish(
    repository: Repository, item: str, queue: str = "", *, result: object = None, failure: object = None
) -> Document:
    """Completes an item, or fails it for a reason, which is a text or a JSON object."""
    redacted = repository.redact.everywhere
    taken = as_object(redacted(result), RESULT_EXAMPLE) if result is not None else {}
    why = _failure(redacted(failure)) if failure is not None else None
    chosen: list[Selection] = []

    def rule(tracker: Tracker, at: float) -> Sequence[TrackerEvent]:
        chosen.append(found := queue_rules.find_item(tracker, item, queue))
        return queue_rules.failed(tracker, found, why, at) if why else queue_rules.completed(tracker, found, taken)

    with edit_tracker(repository) as log:
        log.transact(rule)
        name = chosen[-1].queue_id
        ended = log.tracker.items[name][chosen[-1].item.item_id]
        return {"queue_id": name, "queue_status": log.tracker.queues[name].status, **documents.item_document(ended)}


def retry(repository: Repository, issue: str = "", queue: str = "") -> list[str]:
    """The items that are pending again."""
    with edit_tracker(repository) as log:
        events = log.transact(lambda tracker, at: queue_rules.retried(tracker, at, issue, queue))
        return [f"{event.queue_id}:{event.item_id}" for event in events if isinstance(event, ItemRetried)]


def switch(repository: Repository, name: str) -> None:
    _change(repository, lambda tracker: queue_rules.activated(tracker, [name]))


def activate(repository: Repository, names: Sequence[str]) -> None:
    _change(repository, lambda tracker: queue_rules.activated(tracker, names))


def prioritize(repository: Repository, name: str, priority: int) -> None:
    _change(repository, lambda tracker: queue_rules.prioritized(tracker, name, priority))


def archive(repository: Repository, name: str = "") -> str:
    """The id of the queue that is archived: the one that is named, or the active one."""
    with edit_tracker(repository) as log:
        found = name or next((one.id for one in active_queues(log.tracker)), "")
        if not found:
            raise UserError("No queue is active", hint="iterdev issue queue list")
        log.transact(lambda tracker, _: queue_rules.archived(tracker, found))
        return found


def delete(repository: Repository, name: str, *, force: bool) -> None:
    def rule(tracker: Tracker) -> Sequence[TrackerEvent]:
        known_queue(tracker, name)
        left = [item for item in tracker.items[name].values() if item.status in OPEN]
        if left and not force:
            raise NeedsConfirmation(
                f'"{name}" has items that are not done: {", ".join(item.item_id for item in left)}',
                hint=f"iterdev issue queue delete {name} --force",
            )
        return queue_rules.deleted(tracker, name)

    _change(repository, rule)


def merge(repository: Repository, source: str, target: str) -> None:
    _change(repository, lambda tracker: queue_rules.merged(tracker, source, target))


def _change(repository: Repository, rule: QueueRule) -> None:
    with edit_tracker(repository) as log:
        log.transact(lambda tracker, _: rule(tracker))


def _nothing(tracker: Tracker, queue: str) -> Document:
    """Why there is no item to hand out."""
    active = [known_queue(tracker, queue)] if queue else list(active_queues(tracker))
    if not active:
        return {"status": "empty", "message": "No queue is active"}
    for one in active:
        items = tracker.items[one.id]
        waiting = [item for item in items.values() if item.status in OPEN]
        if waiting:
            blocking = ", ".join(queues.blocked_by(items, waiting[0]))
            reason = f"Every item of {one.id} waits; {waiting[0].item_id} waits for {blocking}"
            return {"status": "empty", "message": reason, "queue_id": one.id}
    return {"status": "empty", "message": "Every item is completed or has failed", "queue_id": active[0].id}


def _failure(reason: object) -> Failure:
    match reason:
        case {"message": str(message), **details} if message.strip():
            return Failure(
                message=message,
                error_type=str(details.get("error_type") or "unknown"),
                task_id=str(details.get("task_id") or ""),
                stack_trace=str(details.get("stack_trace") or ""),
            )
        case str(text) if text.strip():
            return Failure(message=text.strip())
        case _:
            return Failure(message=UNKNOWN_FAILURE)
