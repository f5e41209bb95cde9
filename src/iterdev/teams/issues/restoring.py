"""What the folder of a session tells of its issues, when a lost journal is made again. Unreadable parts are skipped."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct

from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session.events import Event
from iterdev.core.types import Status, TaskId
from iterdev.teams.issues import audit, events
from iterdev.teams.issues.documents import AUDIT_REPORT, QUEUE, file_of
from iterdev.teams.issues.pipelines import IssueRequest
from iterdev.teams.issues.results import Audit, IssueAudit, IssueContext
from iterdev.teams.issues.roles import Role, fields
from iterdev.tracker.issues import DEFAULT_PRIORITY, Description, is_id
from iterdev.tracker.solutions import Solution, SolutionTask

Documents = Mapping[str, object]


class KeptSession(Struct, frozen=True, kw_only=True):
    """What is read of session.json."""

    issue_ids: tuple[str, ...] = ()
    execution_method: str = ""


class KeptIssue(Struct, frozen=True, kw_only=True):
    """The issue in a context report."""

    title: str = ""
    priority: int = DEFAULT_PRIORITY
    status: str = "registered"
    labels: tuple[str, ...] = ()
    context: str = ""
    feedback: tuple[str, ...] = ()


class KeptSolution(Struct, frozen=True, kw_only=True):
    issue_id: str
    solution_id: str
    approach: str = ""
    tasks: tuple[SolutionTask, ...] = ()
    estimated_files: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    bound: bool = True


class KeptAudit(Struct, frozen=True, kw_only=True):
    issues_reviewed: tuple[IssueAudit, ...]
    rejection_reasons: tuple[str, ...] = ()
    actionable_feedback: tuple[str, ...] = ()


class QueueEntry(Struct, frozen=True, kw_only=True):
    issue_id: str


class KeptQueue(Struct, frozen=True, kw_only=True):
    queue: tuple[QueueEntry, ...]


def prepared(documents: Documents, rows: Sequence[TableRow]) -> IssueRequest:
    """The issues of the session and of its table; what they say is in the context reports."""
    kept = KeptSession()
    with suppress(msgspec.ValidationError):
        kept = msgspec.convert(documents.get("session.json"), KeptSession)
    named = dict.fromkeys((*kept.issue_ids, *(name for row in rows for name in fields(row.edit.task).issues)))
    issues = tuple(_facts(documents, name) for name in named if is_id(name))
    return IssueRequest(issues=issues, method=kept.execution_method)


def _facts(documents: Documents, name: str) -> events.IssueFacts:
    report, kept = documents.get(file_of(Role.explorer, name)), KeptIssue()
    with suppress(msgspec.ValidationError):
        kept = msgspec.convert(report.get("issue") if isinstance(report, dict) else None, KeptIssue)
    described = Description(title=kept.title or name, context=kept.context, priority=kept.priority, tags=kept.labels)
    return events.IssueFacts(id=name, description=described, status=kept.status, feedback=kept.feedback)


def restored(documents: Documents, rows: Sequence[TableRow]) -> tuple[Event, ...]:
    return *_work(documents, rows), *_audits(documents, rows), *_queue(documents, rows)


def _work(documents: Documents, rows: Sequence[TableRow]) -> Iterator[Event]:
    done = [row.edit.task for row in rows if row.edit.status is Status.completed]
    for task in done:
        names = fields(task).issues
        if task.role == Role.explorer:
            yield events.IssuesExplored(task.id, tuple(_contexts(documents, names)))
    planner = {name: task for task in done if task.role == Role.planner for name in fields(task).issues}
    for task in dict.fromkeys(planner.values()):
        kept = list(_solutions(documents, [name for name, last in planner.items() if last is task]))
        found = {one.issue_id: (_solution(one),) for one in kept}
        yield events.SolutionsPlanned(task=task.id, solutions=found, revision=bool(fields(task).cycle))
        yield from (events.SolutionChosen(one.issue_id, one.solution_id) for one in kept if one.bound)


def _contexts(documents: Documents, names: Sequence[str]) -> Iterator[IssueContext]:
    for name in names:
        with suppress(msgspec.ValidationError):
            yield msgspec.convert(documents.get(file_of(Role.explorer, name)), IssueContext)


def _solutions(documents: Documents, names: Sequence[str]) -> Iterator[KeptSolution]:
    for name in names:
        with suppress(msgspec.ValidationError):
            yield msgspec.convert(documents.get(file_of(Role.planner, name)), KeptSolution)


def _solution(kept: KeptSolution) -> Solution:
    return Solution(
        id=kept.solution_id,
        description=kept.approach,
        approach=kept.approach,
        tasks=kept.tasks,
        estimated_files=kept.estimated_files,
        dependencies=kept.dependencies,
    )


def _audits(documents: Documents, rows: Sequence[TableRow]) -> Iterator[Event]:
    """The newest audit, whose consequences are drawn again unless the queue was formed, and the cycles before it."""
    audits = [row.edit.task for row in rows if row.edit.task.role == Role.reviewer]
    done = [row.edit.task for row in rows if row.edit.task.role == Role.reviewer and row.edit.status.is_final]
    if done:
        with suppress(msgspec.ValidationError):
            kept = msgspec.convert(documents.get(AUDIT_REPORT), KeptAudit)
            yield audit.scored(done[-1].id, _report(done[-1].id, kept), events.Thresholds())
    for number, task in enumerate(audits[:-1], 1):
        yield events.CycleStarted(number=number, raised_by=task.id, rejected=())
    marshal = _marshal(rows)
    if done and marshal and marshal.edit.status is not Status.pending:
        yield events.AuditPassed(done[-1].id)


def _report(task: TaskId, kept: KeptAudit) -> Audit:
    return Audit(
        id=task,
        status="completed",
        audits=kept.issues_reviewed,
        rejection_reasons=kept.rejection_reasons,
        actionable_feedback=kept.actionable_feedback,
    )


def _queue(documents: Documents, rows: Sequence[TableRow]) -> Iterator[Event]:
    """The order of the queue; without it, one task builds everything."""
    marshal = _marshal(rows)
    if marshal is None or marshal.edit.status is not Status.completed:
        return
    task = marshal.edit.task.id
    try:
        kept = msgspec.convert(documents.get(QUEUE), KeptQueue)
        yield events.ConflictsOrdered(task=task, order=tuple(entry.issue_id for entry in kept.queue))
    except msgspec.ValidationError:
        yield events.QueueLost(task)
    if any(row.edit.task.role == Role.implementer for row in rows):
        yield events.BuildsPlanned(task)


def _marshal(rows: Sequence[TableRow]) -> TableRow | None:
    return next((row for row in rows if row.edit.task.role == Role.integrator), None)
