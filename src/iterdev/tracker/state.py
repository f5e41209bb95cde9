"""The state of the tracker, and the fold that makes it from the events."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import Draft, OwnMap
from iterdev.core.errors import UserError, did_you_mean
from iterdev.tracker import events
from iterdev.tracker.events import IssueEvent, ItemEvent, QueueEvent, SolutionEvent, TrackerEntry, TrackerEvent
from iterdev.tracker.issues import Issue, IssueStatus
from iterdev.tracker.queues import Items, ItemStatus, Queue, QueueItem, QueueStatus
from iterdev.tracker.solutions import Solution


class Tracker(Struct, frozen=True, kw_only=True):
    seq: int = 0
    """The number of the last entry."""
    issues: Mapping[str, Issue] = {}
    solutions: Mapping[str, Mapping[str, Solution]] = {}
    """By issue, and then by their own ids."""
    queues: Mapping[str, Queue] = {}
    items: Mapping[str, Items] = {}
    """By queue, and then by their own ids."""
    active: tuple[str, ...] = ()
    """The queues that `next` takes items of; a queue that is over stays here until another one is chosen."""

    def bound_solution(self, issue: Issue) -> Solution | None:
        return self.solutions.get(issue.id, {}).get(issue.bound_solution_id or "")


TrackerRule = Callable[[Tracker, float], Sequence[TrackerEvent]]
"""Returns the events that follow from the tracker and the time. It may be called several times."""


def known_issue(tracker: Tracker, name: str) -> Issue:
    if issue := tracker.issues.get(name):
        return issue
    raise UserError(f'There is no issue "{name}"{did_you_mean(name, tracker.issues)}', hint="iterdev issue list")


def known_solution(tracker: Tracker, issue: Issue, name: str) -> Solution:
    solutions = tracker.solutions.get(issue.id, {})
    if solution := solutions.get(name):
        return solution
    listed = f"solutions: {', '.join(solutions)}" if solutions else f"iterdev issue solution {issue.id} --data JSON"
    raise UserError(f'"{issue.id}" has no solution "{name}"{did_you_mean(name, solutions)}', hint=listed)


def known_queue(tracker: Tracker, name: str) -> Queue:
    if queue := tracker.queues.get(name):
        return queue
    near = did_you_mean(name, tracker.queues)
    raise UserError(f'There is no queue "{name}"{near}', hint="iterdev issue queue list")


def active_queues(tracker: Tracker) -> tuple[Queue, ...]:
    """The queues that are worked on: by their priorities, then by age."""
    queues = [queue for name in tracker.active if (queue := tracker.queues.get(name))]
    unfinished = [queue for queue in queues if queue.status is QueueStatus.active]
    return tuple(sorted(unfinished, key=lambda one: (one.priority is None, one.priority or 0, one.id)))


def replay(entries: Iterable[TrackerEntry]) -> Tracker:
    return evolve(Tracker(), entries)


def evolve(tracker: Tracker, entries: Iterable[TrackerEntry]) -> Tracker:
    """The state after further entries."""
    draft = TrackerDraft(tracker)
    for entry in entries:
        draft.apply(entry.event, entry.at)
        draft.set(seq=entry.seq)
    return draft.part


class TrackerDraft(Draft[Tracker]):
    _issues: OwnMap[str, Issue] = OwnMap()
    _solutions: OwnMap[str, dict[str, Solution]] = OwnMap()
    _queues: OwnMap[str, Queue] = OwnMap()
    _items: OwnMap[str, dict[str, QueueItem]] = OwnMap()

    def __init__(self, part: Tracker) -> None:
        super().__init__(part)
        self._own_solutions: set[str] = set()
        """Issues whose solutions are this draft's own copies."""
        self._own_items: set[str] = set()
        """Queues whose items are."""

    def apply(self, event: TrackerEvent, at: float) -> None:
        if isinstance(event, IssueEvent):
            self._apply_to_issue(event, at)
        elif isinstance(event, SolutionEvent):
            self._apply_to_solution(event, at)
        elif isinstance(event, ItemEvent):
            self._apply_to_item(event, at)
        else:
            self._apply_to_queue(event, at)

    def _apply_to_issue(self, event: IssueEvent, at: float) -> None:
        match event:
            case events.IssueCreated(issue):
                self._issues[issue.id] = issue
            case events.IssueDescribed(name, description):
                self._change_issue(name, at, description=description)
            case events.StatusChanged(name, status):
                times = {f"{status}_at": at} if status in TIMED else {}
                self._change_issue(name, at, status=status, **times)
            case events.FeedbackAdded(name, feedback):
                known = self.part.issues[name].feedback
                self._change_issue(name, at, feedback=(*known, feedback))

    def _apply_to_solution(self, event: SolutionEvent, at: float) -> None:
        match event:
            case events.SolutionAdded(issue, solution):
                self._solutions_of(issue)[solution.id] = solution
            case events.SolutionBound(issue, name):
                solutions = self._solutions_of(issue)
                solutions[name] = replace(solutions[name], bound_at=at)
                self._change_issue(issue, at, bound_solution_id=name)

    def _apply_to_item(self, event: ItemEvent, at: float) -> None:
        match event:
            case events.ItemAdded(queue, item):
                self._items_of(queue)[item.item_id] = item
            case events.ItemPlaced(queue, name, place):
                self._change_item(queue, name, place=place)
            case events.ItemRemoved(queue, name):
                del self._items_of(queue)[name]
            case events.ItemStarted(queue, name):
                self._change_item(queue, name, status=ItemStatus.executing, started_at=at)
            case events.ItemCompleted(queue, name, result):
                self._change_item(queue, name, status=ItemStatus.completed, completed_at=at, result=result)
            case events.ItemFailed(queue, name, failure):
                self._change_item(queue, name, status=ItemStatus.failed, completed_at=at, failure=failure)
            case events.ItemRetried(queue, name):
                item = self.part.items[queue][name]
                history = (*item.failure_history, *([item.failure] if item.failure else []))
                fresh = {"started_at": None, "completed_at": None, "failure": None, "failure_history": history}
                self._change_item(queue, name, status=ItemStatus.pending, **fresh)

    def _apply_to_queue(self, event: QueueEvent, at: float) -> None:
        match event:
            case events.QueueFormed(queue, items):
                self._add_queue(queue, items)
                self.set(active=(queue.id,))
            case events.QueueImported(queue, items):
                self._add_queue(queue, items)
            case events.QueueMoved(name, status):
                over = at if status in {QueueStatus.completed, QueueStatus.failed} else None
                self._queues[name] = replace(self.part.queues[name], status=status, completed_at=over)
            case events.QueuePrioritized(name, priority):
                self._queues[name] = replace(self.part.queues[name], priority=priority)
            case events.QueuesActivated(names):
                self.set(active=names)
            case events.QueueDeleted(name):
                del self._queues[name]
                self._items.pop(name, None)
                self.set(active=tuple(one for one in self.part.active if one != name))

    def _add_queue(self, queue: Queue, items: tuple[QueueItem, ...]) -> None:
        self._queues[queue.id] = queue
        self._items[queue.id] = {item.item_id: item for item in items}
        self._own_items.add(queue.id)

    def _change_issue(self, name: str, at: float, **fields: object) -> None:
        self._issues[name] = replace(self.part.issues[name], updated_at=at, **fields)

    def _change_item(self, queue: str, name: str, **fields: object) -> None:
        items = self._items_of(queue)
        items[name] = replace(items[name], **fields)

    def _solutions_of(self, issue: str) -> dict[str, Solution]:
        if issue not in self._own_solutions:
            self._own_solutions.add(issue)
            self._solutions[issue] = dict(self.part.solutions.get(issue, {}))
        return self._solutions[issue]

    def _items_of(self, queue: str) -> dict[str, QueueItem]:
        if queue not in self._own_items:
            self._own_items.add(queue)
            self._items[queue] = dict(self.part.items.get(queue, {}))
        return self._items[queue]


TIMED = frozenset({IssueStatus.planned, IssueStatus.queued, IssueStatus.completed})
"""The statuses whose time an issue keeps."""
