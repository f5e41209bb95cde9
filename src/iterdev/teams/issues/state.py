"""The issue team's part of the state, and how it is folded."""

from collections.abc import Iterable, Mapping
from typing import cast

from msgspec import Struct

from iterdev.core.draft import Draft, OwnMap
from iterdev.core.session.events import RollbackStarted, TableEdited, TasksReset
from iterdev.core.session.landing_events import LandingTakenOut, LandingTestEnded
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Status, TaskId, TaskKind, TeamState
from iterdev.core.verification import Verification
from iterdev.teams.issues import events
from iterdev.teams.issues.events import (
    EVENTS,
    AuditScored,
    BaselineMeasured,
    ConflictsOrdered,
    IssueFacts,
    QueueFormed,
    Thresholds,
)
from iterdev.teams.issues.results import IssueContext
from iterdev.teams.issues.roles import Pipeline, Role, fields
from iterdev.tracker.solutions import Solution

FOLDED = frozenset({*EVENTS, LandingTestEnded, LandingTakenOut, TableEdited, TasksReset, RollbackStarted})


class Issues(TeamState, Struct, frozen=True, kw_only=True):
    pipeline: Pipeline = Pipeline.quick
    method: str = ""
    separately: bool = False
    """Whether each issue of a batch is built by a task of its own."""
    issues: Mapping[str, IssueFacts] = {}
    thresholds: Thresholds = Thresholds()
    contexts: Mapping[str, IssueContext] = {}
    """The explorer's newest report of each issue."""
    explored: Mapping[TaskId, tuple[str, ...]] = {}
    """The issues that each EXPLORE task reported on."""
    solutions: Mapping[str, tuple[Solution, ...]] = {}
    """The solutions of each issue, of its newest plan."""
    planned: Mapping[TaskId, tuple[str, ...]] = {}
    """The issues that each SOLVE task planned solutions for."""
    chosen: Mapping[str, str] = {}
    """The solution of each issue that is carried out."""
    audits: Mapping[TaskId, AuditScored] = {}
    judged: Mapping[TaskId, None] = {}
    """Audits whose consequences have been recorded."""
    cycles: int = 0
    forced: bool = False
    """Whether the work went on in spite of a rejection."""
    preference: ConflictsOrdered | None = None
    first: tuple[str, ...] = ()
    """The issues that the user wants built before those that touch the same files."""
    queue: QueueFormed | None = None
    queue_lost: bool = False
    """Whether it was formed, and cannot be read any more."""
    tests: Mapping[TaskId, Verification] = {}
    """What the tests said of the work of BUILD tasks."""
    baseline: BaselineMeasured | None = None
    """The test runs on the session's base, if they have been made."""
    has_builds: bool = False
    """Whether the BUILD tasks of all groups are in the table."""

    def solution(self, issue: str) -> Solution | None:
        """The solution of an issue that is carried out."""
        return next((one for one in self.solutions.get(issue, ()) if one.id == self.chosen.get(issue)), None)


def issue_part(state: State) -> Issues:
    return cast("Issues", state.team)


def last_audit(state: State) -> AuditScored | None:
    """The newest audit that counts, by the order of the table."""
    found = issue_part(state).audits
    return found[max(found, key=state.tasks.order.__getitem__)] if found else None


def issues_of(state: State, task: Task) -> tuple[str, ...]:
    """The issues of a task; an edited table may name others, of which the session knows nothing."""
    return tuple(name for name in fields(task).issues if name in issue_part(state).issues)


def issues_of_build(state: State, task: TaskId) -> tuple[str, ...]:
    """The issues that a task builds; empty for all others, and for one that only brings in the user's branch."""
    row = state.tasks.plan.get(task)
    builds = row is not None and row.role == Role.implementer and row.kind is not TaskKind.update
    return issues_of(state, row) if row and builds else ()


def resolved(state: State) -> tuple[str, ...]:
    """The issues whose work has landed: every task that builds them is completed, that of a conflict too."""
    builds = [task.id for task in state.tasks.of_role(Role.implementer)]
    statuses: dict[str, set[Status]] = {name: set() for name in issue_part(state).issues}
    for task in builds:
        for name in issues_of_build(state, task):
            statuses.setdefault(name, set()).add(state.tasks.status(task))
    return tuple(name for name, found in statuses.items() if found == {Status.completed})


class IssuesDraft(Draft[Issues]):
    _contexts = OwnMap[str, IssueContext]()
    _explored = OwnMap[TaskId, tuple[str, ...]]()
    _solutions = OwnMap[str, tuple[Solution, ...]]()
    _planned = OwnMap[TaskId, tuple[str, ...]]()
    _chosen = OwnMap[str, str]()
    _audits = OwnMap[TaskId, AuditScored]()
    _judged = OwnMap[TaskId, None]()
    _tests = OwnMap[TaskId, Verification]()

    def apply(self, event: object, _: float, __: int) -> None:
        match event:
            case events.IssuesExplored(task, contexts):
                self._contexts.update({context.issue_id: context for context in contexts})
                self._explored[task] = tuple(context.issue_id for context in contexts)
            case events.SolutionsPlanned(task=task, solutions=solutions):
                self._solutions.update(solutions)
                self._planned[task] = tuple(solutions)
                for issue in solutions:
                    self._chosen.pop(issue, None)
            case events.SolutionChosen(issue, solution):
                self._chosen[issue] = solution
            case AuditScored(task=task):
                self._audits[task] = event
                self._judged.pop(task, None)
            case events.BuildTested(task=task, verification=verification):
                self._tests[task] = verification
            case events.AuditMissing(task):
                self._judged[task] = None
            case events.AuditPassed(task, forced):
                self._judged[task] = None
                self.set(forced=forced)
            case events.CycleStarted(number=number, raised_by=task):
                self._judged[task] = None
                self.set(cycles=number)
            case TableEdited(rows):
                self._forget(row.task.id for row in rows if row.status is Status.pending)
            case TasksReset(tasks):
                self._forget(tasks)
            case RollbackStarted(undone=undone):
                self._forget(undone)
            case _:
                self._set(event)

    def _set(self, event: object) -> None:
        match event:
            case events.TeamStarted():
                known = {issue.id: issue for issue in event.issues}
                self.set(pipeline=event.pipeline, method=event.method, issues=known, thresholds=event.thresholds)
                self.set(separately=event.separately)
            case events.ThresholdsChanged(thresholds):
                self.set(thresholds=thresholds)
            case ConflictsOrdered():
                self.set(preference=event)
            case events.OrderChosen(issue):
                self.set(first=(*self.part.first, issue))
            case BaselineMeasured():
                self.set(baseline=event)
            case QueueFormed():
                self.set(queue=event, queue_lost=False)
            case LandingTakenOut(task=task):
                # What its tests said alone must not be read as if they had passed.
                self._tests.pop(task, None)
            case LandingTestEnded(tasks=tasks, passed=passed, verification=verification):
                self._tests.update(dict.fromkeys(tasks, verification) if passed and verification else {})
            case events.QueueLost():
                self.set(queue_lost=True)
            case events.BuildsPlanned():
                self.set(has_builds=True)
            case events.CyclesRestored(
                cycles=cycles, forced=forced, has_builds=has_builds, chosen=chosen, unjudged=unjudged
            ):
                self.set(cycles=cycles, forced=forced, has_builds=has_builds)
                self._chosen.clear()
                self._chosen.update({issue: name for issue, name in chosen.items() if issue in self.part.solutions})
                for task in unjudged:
                    self._judged.pop(task, None)
            case _:
                raise TypeError(event)

    def _forget(self, tasks: Iterable[TaskId]) -> None:
        """What a task that is done again said does not count any longer."""
        part = self.part
        for task in tasks:
            for issue in part.explored.get(task, ()):
                self._contexts.pop(issue, None)
            for issue in part.planned.get(task, ()):
                self._solutions.pop(issue, None)
                self._chosen.pop(issue, None)
            for owned in (self._explored, self._planned, self._audits, self._judged, self._tests):
                owned.pop(task, None)
            if part.preference and part.preference.task == task:
                self.set(preference=None, first=())
            if part.queue and part.queue.task == task:
                self.set(queue=None)
