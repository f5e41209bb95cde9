"""What can have happened to the issue team, besides what happens in every session."""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core.session.events import TeamEvent
from iterdev.core.types import TaskId
from iterdev.core.verification import SuiteReport, Verification
from iterdev.teams.issues.results import Audit, IssueContext, OrderedConflict
from iterdev.teams.issues.roles import Pipeline, Verdict
from iterdev.tracker.issues import Description
from iterdev.tracker.ordering import Order
from iterdev.tracker.solutions import Solution


class Thresholds(Struct, frozen=True, kw_only=True):
    """The limits and thresholds of the team's rules; journalled, so that every decision can be made again."""

    cycles: int = 2
    """Fix cycles before the work goes on in spite of a rejection."""
    approved: int = 80
    """An audit from this score on is approved."""
    concerns: int = 60
    """One from this score on has concerns, and one below it is a rejection."""
    auto_tasks: int = 3
    """With the method `auto`, the most tasks of the solutions of a BUILD that the first agent gets."""
    asks: bool = False
    """Whether the user is asked after the last rejection."""


class IssueFacts(Struct, frozen=True, kw_only=True):
    """An issue as it was when the session began."""

    id: str
    description: Description
    status: str = "registered"
    feedback: tuple[str, ...] = ()
    """What was said of earlier solutions and attempts, one sentence each."""
    solutions: tuple[str, ...] = ()
    """The ids of the solutions that it has in the tracker."""


class IssueTeamEvent(TeamEvent, frozen=True, tag=lambda name: f"issues.{name}"):
    """Every team has its own tags: one decoder reads the events of all."""


class TeamStarted(IssueTeamEvent, frozen=True, kw_only=True):
    pipeline: Pipeline
    method: str
    """The execution method of BUILD tasks."""
    issues: tuple[IssueFacts, ...]
    thresholds: Thresholds = Thresholds()
    separately: bool = False
    """Each issue of a batch is built by a task of its own."""


class ThresholdsChanged(IssueTeamEvent, frozen=True):
    thresholds: Thresholds


class IssuesExplored(IssueTeamEvent, frozen=True):
    task: TaskId
    contexts: tuple[IssueContext, ...]


class SolutionsPlanned(IssueTeamEvent, frozen=True, kw_only=True):
    task: TaskId
    solutions: Mapping[str, tuple[Solution, ...]]
    """By issue; each has an id."""
    revision: bool = False


class SolutionChosen(IssueTeamEvent, frozen=True):
    """The solution of an issue that is carried out."""

    issue_id: str
    solution_id: str


class IssueVerdict(Struct, frozen=True, kw_only=True):
    issue_id: str
    solution_id: str
    score: int
    """From 0 to 100."""
    verdict: Verdict


class AuditScored(IssueTeamEvent, frozen=True, kw_only=True):
    task: TaskId
    audit: Audit
    verdicts: tuple[IssueVerdict, ...]
    score: int
    """The mean of the issues."""
    verdict: Verdict


class AuditMissing(IssueTeamEvent, frozen=True):
    """There is no report of an audit; it counts as approved."""

    task: TaskId


class AuditPassed(IssueTeamEvent, frozen=True):
    """The work goes on after an audit."""

    task: TaskId
    forced: bool = False
    """In spite of a rejection, because there were as many fix cycles as allowed."""


class CycleStarted(IssueTeamEvent, frozen=True, kw_only=True):
    number: int
    raised_by: TaskId
    rejected: tuple[str, ...]
    """The issues whose solutions were rejected."""


class ConflictsOrdered(IssueTeamEvent, frozen=True, kw_only=True):
    """What the integrator says about solutions that touch the same files."""

    task: TaskId
    order: tuple[str, ...]
    conflicts: tuple[OrderedConflict, ...] = ()


class OrderChosen(IssueTeamEvent, frozen=True):
    """The issue of a conflict that is built first; the others follow by priority."""

    issue_id: str


class QueueFormed(IssueTeamEvent, frozen=True, kw_only=True):
    """The order and the groups in which the solutions are built."""

    task: TaskId
    order: Order


class QueueLost(IssueTeamEvent, frozen=True):
    """The queue was formed, and cannot be read any more; one task builds everything."""

    task: TaskId


class BuildsPlanned(IssueTeamEvent, frozen=True):
    """The BUILD tasks of all groups are in the table; that happens once."""

    task: TaskId


class BuildTested(IssueTeamEvent, frozen=True, kw_only=True):
    """What the tests said of the work of a BUILD task, before it landed."""

    task: TaskId
    verification: Verification


class BaselineMeasured(IssueTeamEvent, frozen=True):
    reports: tuple[SuiteReport, ...]
    base: str
    """The commit that they are about."""


class CyclesRestored(IssueTeamEvent, frozen=True, kw_only=True):
    """A rollback took the session back to this."""

    cycles: int
    forced: bool
    has_builds: bool
    chosen: Mapping[str, str]
    unjudged: tuple[TaskId, ...]
    """Audits that stand, and whose consequences had not been drawn yet."""


DECIDED = (
    SolutionChosen, AuditMissing, AuditPassed, CycleStarted, OrderChosen, QueueFormed, BuildsPlanned
)  # fmt: skip
EVENTS: tuple[type, ...] = (
    *DECIDED, TeamStarted, ThresholdsChanged, IssuesExplored, SolutionsPlanned, AuditScored, ConflictsOrdered,
    QueueLost, BuildTested, BaselineMeasured, CyclesRestored
)  # fmt: skip
