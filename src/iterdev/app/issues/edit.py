"""Changes issues and their solutions."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core.errors import UserError
from iterdev.engine.issue_tracker import edit_tracker, take_over_files  # noqa: F401 - for the surfaces
from iterdev.engine.repository import Repository
from iterdev.host import text_files
from iterdev.tracker import reading, rules
from iterdev.tracker.events import IssueCreated, SolutionAdded, StatusChanged, TrackerEvent
from iterdev.tracker.issues import Issue, read_status
from iterdev.tracker.reading import ISSUE_EXAMPLE, SOLUTION_EXAMPLE
from iterdev.tracker.solutions import Solution
from iterdev.tracker.state import Tracker, active_queues, known_issue, known_solution


class IssueFields(Struct, frozen=True, kw_only=True):
    """What is said of an issue; what is None stays as it is."""

    title: str | None = None
    description: str | None = None
    priority: int | None = None
    status: str | None = None


class QueueSync(Struct, frozen=True, kw_only=True):
    queue_id: str
    queued: tuple[str, ...]
    unplanned: tuple[str, ...]
    """Issues with a bound solution that are not in the queue."""


def create(repository: Repository, document: object, fields: IssueFields | None = None) -> Issue:
    """A new issue from a JSON document, in which the fields replace what it says."""
    given = {**_object(document), **_named(fields or IssueFields())}
    new = reading.new_issue(repository.redact.everywhere(given))

    def rule(tracker: Tracker, at: float) -> Sequence[TrackerEvent]:
        return rules.created(tracker, new.description, at, name=new.id, status=new.status)

    with edit_tracker(repository) as log:
        return _created(log.transact(rule))


def init(repository: Repository, name: str, fields: IssueFields, *, force: bool) -> Issue:
    """A new issue with a given id; with `force`, it may replace one."""
    new = reading.new_issue(repository.redact.everywhere({"id": name, **_named(fields)}))

    def rule(tracker: Tracker, at: float) -> Sequence[TrackerEvent]:
        return rules.created(tracker, new.description, at, name=name, status=new.status, replaces=force)

    with edit_tracker(repository) as log:
        return _created(log.transact(rule))


def update(repository: Repository, name: str, fields: IssueFields) -> Issue:
    """Changes what is given."""
    status = read_status(fields.status) if fields.status else None
    named = {key: value for key, value in _named(fields).items() if key != "status"}
    if not named and status is None:
        raise UserError(f'No change is given for "{name}"', hint=f"iterdev issue update {name} --priority 4")
    wanted = repository.redact.everywhere(
        {"context" if key == "description" else key: value for key, value in named.items()}
    )

    def rule(tracker: Tracker, _: float) -> Sequence[TrackerEvent]:
        known = known_issue(tracker, name).description
        described = msgspec.convert({**msgspec.to_builtins(known), **_object(wanted)}, type(known))
        moved = rules.moved(tracker, name, status) if status else ()
        return (*rules.described(tracker, name, described), *moved)

    with edit_tracker(repository) as log:
        log.transact(rule)
        return known_issue(log.tracker, name)


def synchronize(repository: Repository, queue: str = "") -> QueueSync:
    """Marks the issues of a queue as queued, and names those that have a solution but are not in it."""
    with edit_tracker(repository) as log:
        name = queue or next((one.id for one in active_queues(log.tracker)), "")
        if not name:
            raise UserError("No queue is active", hint="iterdev issue queue add ISSUE")
        changed = log.transact(lambda tracker, _: rules.synchronized(tracker, name))
        queued = tuple(event.issue_id for event in changed if isinstance(event, StatusChanged))
        return QueueSync(queue_id=name, queued=queued, unplanned=rules.planned_outside(log.tracker, name))


def add_solution(repository: Repository, name: str, document: object) -> tuple[Issue, Solution]:
    solution = _solution(repository, document)
    with edit_tracker(repository) as log:
        events = log.transact(lambda tracker, at: rules.solved(tracker, name, solution, at))
        (added,) = (event.solution for event in events if isinstance(event, SolutionAdded))
        return known_issue(log.tracker, name), added


def bind(repository: Repository, name: str, solution: str = "", file: Path | None = None) -> tuple[Issue, Solution]:
    """Binds a solution of the issue; one that is in a file is added first."""
    new = _solution(repository, _read(file), solution) if file else None

    def rule(tracker: Tracker, at: float) -> Sequence[TrackerEvent]:
        return rules.solved_and_bound(tracker, name, new, at) if new else rules.bound(tracker, name, solution)

    with edit_tracker(repository) as log:
        log.transact(rule)
        issue = known_issue(log.tracker, name)
        return issue, known_solution(log.tracker, issue, issue.bound_solution_id or "")


def _created(events: Sequence[TrackerEvent]) -> Issue:
    (event,) = (event for event in events if isinstance(event, IssueCreated))
    return event.issue


def _solution(repository: Repository, document: object, name: str = "") -> Solution:
    return reading.new_solution(repository.redact.everywhere(document), name)


def _read(path: Path) -> object:
    try:
        return msgspec.json.decode(text_files.read(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f'Cannot read "{path}": {reason}', hint="--solution FILE.json") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(f'"{path}" is not JSON: {error}', hint=f"for example: {SOLUTION_EXAMPLE}") from error


def _named(fields: IssueFields) -> dict[str, object]:
    return {key: value for key, value in msgspec.structs.asdict(fields).items() if value is not None}


def _object(document: object) -> dict[str, object]:
    return dict(reading.as_object(document, ISSUE_EXAMPLE))
