"""The files of `.workflow/issues/`: made from the tracker, and read back where somebody else has written them.

The form is that of Claude-Code-Workflow, so that its tools can read these files, and an existing folder can be taken
over. What another tool or a person changed in a file wins; what cannot be read is reported, and left out.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.errors import UserError
from iterdev.tracker import documents, events, reading, views
from iterdev.tracker.events import TrackerEntry, TrackerEvent
from iterdev.tracker.issues import (
    DEFAULT_PRIORITY,
    HIGHEST,
    LOWEST,
    Feedback,
    FeedbackType,
    Issue,
    IssueStatus,
    Stage,
    checked_id,
    read_status,
)
from iterdev.tracker.queues import Failure, Group, GroupType, ItemStatus, Placement, Queue, QueueItem, QueueStatus
from iterdev.tracker.reading import Document, as_object, read_time
from iterdev.tracker.solutions import Solution, files_touched
from iterdev.tracker.state import Tracker, evolve

ISSUES, HISTORY, INDEX = "issues.jsonl", "issue-history.jsonl", "queues/index.json"
SOLUTIONS, QUEUES = "solutions/", "queues/"
Word = TypeVar("Word", bound=StrEnum)
Meaning = Callable[[Tracker, Document, float], Iterable[TrackerEvent]]
"""What a document means that somebody else has written."""


class FolderNews(Struct, frozen=True):
    """What files say that the tracker does not know."""

    events: tuple[TrackerEvent, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be taken over, one sentence each."""
    incomplete: tuple[str, ...] = ()
    """The files that this is about."""


class Touched(Struct, frozen=True):
    """The issues whose solutions have changed, and the queues that have."""

    issues: frozenset[str]
    queues: frozenset[str]


def touched(happened: Iterable[TrackerEvent], stale: Iterable[str] = ()) -> Touched:
    """What has to be written again after these events, together with stale files."""
    files = list(stale)
    issues = {name.removeprefix(SOLUTIONS).removesuffix(".jsonl") for name in files if name.startswith(SOLUTIONS)}
    queues = {name.removeprefix(QUEUES).removesuffix(".json") for name in files if name.startswith(QUEUES)}
    for event in happened:
        match event:
            case events.SolutionAdded(name) | events.SolutionBound(name):
                issues.add(name)
            case events.IssueCreated(issue):
                issues.add(issue.id)
            case events.QueueFormed(queue) | events.QueueImported(queue):
                queues.add(queue.id)
            case events.QueuesActivated(names):
                queues.update(names)
            case events.IssueDescribed() | events.StatusChanged() | events.FeedbackAdded():
                pass
            case _:
                queues.add(event.queue_id)
    return Touched(frozenset(issues), frozenset(queues))


def texts(tracker: Tracker, only: Touched | None = None) -> Iterator[tuple[str, str]]:
    """The files with their contents: all, or those that have to be written again."""
    yield ISSUES, _lines(documents.issue_document(issue) for issue in tracker.issues.values() if not issue.is_over)
    yield HISTORY, _lines(map(documents.issue_document, views.history(tracker)))
    for name in tracker.solutions if only is None else only.issues & tracker.solutions.keys():
        yield (
            f"{SOLUTIONS}{name}.jsonl",
            _lines(documents.solution_documents(views.issue_view(tracker, tracker.issues[name]))),
        )
    if tracker.queues:
        yield INDEX, _text(documents.queue_index(tracker))
    for name in tracker.queues if only is None else only.queues & tracker.queues.keys():
        yield f"{QUEUES}{name}.json", _text(documents.queue_document(views.queue_view(tracker, tracker.queues[name])))


def is_gone(name: str, tracker: Tracker) -> bool:
    """Whether a file is that of a queue which was deleted."""
    queue = name.removeprefix(QUEUES).removesuffix(".json")
    return name.startswith(QUEUES) and name != INDEX and queue not in tracker.queues


def _lines(found: Iterable[object]) -> str:
    return "".join(f"{json.dumps(document, ensure_ascii=False)}\n" for document in found)


def _text(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def read_back(files: Mapping[str, str], tracker: Tracker, at: float) -> FolderNews:
    """What the files, by their names, say that the tracker does not know."""
    reader = _Reader(tracker, at)
    for name in (ISSUES, HISTORY):
        for line, document in reader.lines(name, files.get(name, "")):
            reader.attempt(name, line, _issue_news, document)
    for name in sorted(name for name in files if name.startswith(SOLUTIONS)):
        issue = name.removeprefix(SOLUTIONS).removesuffix(".jsonl")
        for line, document in reader.lines(name, files[name]):
            reader.attempt(name, line, _solution_news, document, issue_id=issue)
    for name in sorted(name for name in files if name.startswith(QUEUES) and name != INDEX):
        reader.document(name, files[name], _queue_news)
    if INDEX in files:
        reader.document(INDEX, files[INDEX], _index_news)
    return reader.news()


class _Reader:
    """Reads documents one by one; each sees what the ones before it meant."""

    def __init__(self, tracker: Tracker, at: float) -> None:
        self.tracker, self.at = tracker, at
        self._events: list[TrackerEvent] = []
        self._notes: dict[str, str] = {}

    def news(self) -> FolderNews:
        names = dict.fromkeys(name for name in self._notes.values())
        return FolderNews(tuple(self._events), tuple(self._notes), tuple(names))

    def lines(self, name: str, text: str) -> Iterator[tuple[int, object]]:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    document = json.loads(line)
                except (ValueError, RecursionError):
                    self._note(name, number, "it is not JSON")
                else:
                    yield number, document

    def document(self, name: str, text: str, meaning: Meaning) -> None:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            self._note(name, 1, "it is not JSON")
        else:
            self.attempt(name, 1, meaning, document)

    def attempt(self, name: str, line: int, meaning: Meaning, document: object, **fields: object) -> None:
        try:
            found = list(meaning(self.tracker, {**as_object(document, "{}"), **fields}, self.at))
        except UserError as error:
            self._note(name, line, error.message)
            return
        entries = [TrackerEntry(seq, self.at, event) for seq, event in enumerate(found, self.tracker.seq + 1)]
        self.tracker = evolve(self.tracker, entries)
        self._events += found

    def _note(self, name: str, line: int, why: str) -> None:
        self._notes[f"{name}, line {line} is left out: {why}"] = name


def _issue_news(tracker: Tracker, fields: Document, at: float) -> Iterator[TrackerEvent]:
    name = checked_id(str(fields.get("id") or ""))
    # A field that another tool calls priority may be on another scale.
    priority = fields.get("priority")
    rank = priority if isinstance(priority, int) else DEFAULT_PRIORITY
    described = reading.description({**fields, "priority": min(max(rank, LOWEST), HIGHEST)})
    status = read_status(str(fields.get("status") or IssueStatus.registered))
    feedback = [_feedback(one, at) for one in _objects(fields.get("feedback"))]
    named = fields.get("bound_solution_id")
    bound = named if isinstance(named, str) and named else None
    known = tracker.issues.get(name)
    if known is None:
        yield events.IssueCreated(
            Issue(
                id=name,
                description=described,
                status=status,
                bound_solution_id=bound,
                feedback=tuple(feedback),
                created_at=read_time(fields.get("created_at")) or at,
                updated_at=read_time(fields.get("updated_at")) or at,
                planned_at=read_time(fields.get("planned_at")),
                queued_at=read_time(fields.get("queued_at")),
                completed_at=read_time(fields.get("completed_at")) or (at if status is IssueStatus.completed else None),
            )
        )
        return
    if known.description != described:
        yield events.IssueDescribed(name, described)
    said = {(one.type, one.stage, one.content) for one in known.feedback}
    yield from (events.FeedbackAdded(name, one) for one in feedback if (one.type, one.stage, one.content) not in said)
    if bound and bound != known.bound_solution_id and bound in tracker.solutions.get(name, {}):
        yield events.SolutionBound(name, bound)
    if known.status is not status:
        yield events.StatusChanged(name, status)


def _solution_news(tracker: Tracker, fields: Document, at: float) -> Iterator[TrackerEvent]:
    name = str(fields["issue_id"])
    if name not in tracker.issues:
        raise UserError(f'There is no issue "{name}"')
    found = reading.new_solution(fields)
    checked_id(found.id)
    known = tracker.solutions.get(name, {}).get(found.id)
    times = {"created_at": read_time(fields.get("created_at")) or at, "bound_at": read_time(fields.get("bound_at"))}
    if known is None or replace(known, created_at=0, bound_at=None) != found:
        yield events.SolutionAdded(name, replace(found, **times))
    issue = tracker.issues[name]
    if fields.get("is_bound") and issue.bound_solution_id is None:
        yield events.SolutionBound(name, found.id)


def _queue_news(tracker: Tracker, fields: Document, at: float) -> Iterator[TrackerEvent]:
    name = checked_id(str(fields.get("id") or ""))
    listed = fields.get("solutions") or fields.get("tasks")
    items = tuple(_item(tracker, one, place, at) for place, one in enumerate(_objects(listed), 1))
    groups = tuple(
        Group(
            id=str(one.get("id") or f"P{number}"),
            type=_word(one.get("type"), GroupType, GroupType.parallel),
            items=_strings(one.get("solutions") or one.get("tasks")),
        )
        for number, one in enumerate(_objects(fields.get("execution_groups")), 1)
    )
    known = tracker.queues.get(name)
    queue = Queue(
        id=name,
        status=_word(fields.get("status"), QueueStatus, QueueStatus.active),
        priority=known.priority if known else None,
        groups=groups,
        conflicts=known.conflicts if known else (),
        created_at=read_time(fields.get("created_at")) or _time_of(name) or at,
        completed_at=read_time(fields.get("completed_at")),
    )
    if known is None or _standing(queue, items) != _standing(known, tracker.items[name].values()):
        yield events.QueueImported(queue, items)


def _index_news(tracker: Tracker, fields: Document, _: float) -> Iterator[TrackerEvent]:
    single = fields.get("active_queue_id")
    named = _strings(fields.get("active_queue_ids")) or ((str(single),) if single else ())
    active = tuple(name for name in named if name in tracker.queues)
    for one in _objects(fields.get("queues")):
        queue, priority = tracker.queues.get(str(one.get("id"))), one.get("priority")
        if queue and isinstance(priority, int) and queue.priority != priority:
            yield events.QueuePrioritized(queue.id, priority)
    if active and active != tuple(name for name in tracker.active if tracker.queues[name].status is QueueStatus.active):
        yield events.QueuesActivated(active)


def _item(tracker: Tracker, fields: Document, place: int, at: float) -> QueueItem:
    issue, solution = str(fields.get("issue_id") or ""), str(fields.get("solution_id") or "")
    known: Solution | None = tracker.solutions.get(issue, {}).get(solution)
    status = _word(fields.get("status"), ItemStatus, ItemStatus.pending)
    details = fields.get("failure_details")
    reason = str(fields.get("failure_reason") or "it failed before")
    failure = _failure(as_object(details, "{}"), at) if details else Failure(message=reason, timestamp=at)
    order, group = fields.get("execution_order"), fields.get("execution_group")
    priority, result = fields.get("semantic_priority"), fields.get("result")
    return QueueItem(
        item_id=checked_id(str(fields.get("item_id") or f"S-{place}")),
        issue_id=issue,
        solution_id=solution,
        status=status,
        place=Placement(
            order=order if isinstance(order, int) else place,
            group=str(group or "P1"),
            depends_on=_strings(fields.get("depends_on")),
            semantic_priority=float(priority) if isinstance(priority, int | float) else 0.5,
            task_count=len(known.tasks) if known else 0,
            files_touched=_strings(fields.get("files_touched")) or (files_touched(known) if known else ()),
        ),
        queued_at=read_time(fields.get("queued_at")) or at,
        started_at=read_time(fields.get("started_at")),
        completed_at=read_time(fields.get("completed_at")),
        result=as_object(result, "{}") if isinstance(result, dict) else {},
        failure=failure if status is ItemStatus.failed else None,
        failure_history=tuple(_failure(one, at) for one in _objects(fields.get("failure_history"))),
    )


def _standing(queue: Queue, items: Iterable[QueueItem]) -> tuple[object, ...]:
    """What of a queue somebody else can have changed."""
    return queue.status, [(one.item_id, one.issue_id, one.solution_id, one.status, one.place.order) for one in items]


def _feedback(fields: Document, at: float) -> Feedback:
    return Feedback(
        type=_word(fields.get("type"), FeedbackType, FeedbackType.clarification),
        stage=_word(fields.get("stage"), Stage, Stage.new),
        content=str(fields.get("content") or ""),
        created_at=read_time(fields.get("created_at")) or at,
    )


def _failure(fields: Document, at: float) -> Failure:
    return Failure(
        message=str(fields.get("message") or "it failed before"),
        error_type=str(fields.get("error_type") or "unknown"),
        task_id=str(fields.get("task_id") or ""),
        stack_trace=str(fields.get("stack_trace") or ""),
        timestamp=read_time(fields.get("timestamp")) or at,
    )


def _word(value: object, words: type[Word], otherwise: Word) -> Word:
    """One of the words of an enum."""
    return next((word for word in words if word == value), otherwise)


def _objects(value: object) -> list[Document]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list | tuple) else []


def _strings(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list | tuple) else ()


def _time_of(queue: str) -> float | None:
    digits = "".join(letter for letter in queue if letter.isdecimal())
    return read_time(f"{digits[:8]}T{digits[8:14]}+00:00") if len(digits) == 14 else None
