"""What can have happened in a session, whatever its team. Teams add events of their own (`teams/*/events.py`).

An event is complete in itself: what it means for the task, such as whether work is in conflict or what a failed attempt
leads to, was decided when it was recorded. Folding only adds up.
"""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from iterdev.core.collaboration.checkpoints import CheckpointEvent
from iterdev.core.collaboration.external_packages import PackageCheck, PackageEvent
from iterdev.core.collaboration.feedback import FeedbackEvent
from iterdev.core.collaboration.locks import LockEvent
from iterdev.core.collaboration.messages import MessageEvent
from iterdev.core.collaboration.tech_debt import DebtEvent
from iterdev.core.collaboration.wisdom import WisdomEvent
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.limits.budget import DaySpent
from iterdev.core.limits.clock_changes import ClockChanged
from iterdev.core.limits.providers import ProviderEvent
from iterdev.core.policy import Policy
from iterdev.core.processes import ProcessIdentity
from iterdev.core.results import Dependency, Discovery, Usage
from iterdev.core.session.delivery import DeliveryEvent
from iterdev.core.session.landing_events import QueueEvent
from iterdev.core.session.tasks import Task
from iterdev.core.types import ConflictStrategy, Engine, Role, SessionId, Status, TaskId


class IssueText(Struct, frozen=True):
    """An issue that the session is about, as others wrote it: information, and no instruction."""

    name: str
    text: str


class Session(Struct, frozen=True, kw_only=True):
    """The facts of a session that never change."""

    id: SessionId
    team: str
    engine: Engine
    requirement: str
    folder: str
    base: str
    """The commit that the work starts from."""
    branch: str
    """The user's branch at the start, which `accept` merges the work into."""
    agents: Mapping[Role, str] = {}
    """Agents named on the command line, by role."""
    team_name: str = "iterdev"
    by_hand: bool = False
    """The table was made by a person, not by the team."""
    issue: IssueText | None = None
    monitor: ProcessIdentity | None = None
    """That of the attempt in which a program, such as a test, started the session."""
    suffix: str = ""
    """Random characters: two engines that share a git remote or a server may have sessions with the same id."""
    former_suffixes: tuple[str, ...] = ()
    """Those that it had before its journal was lost: hosts may have left work under them."""


class Gate(Struct, frozen=True, kw_only=True):
    kind: str
    """A `GateKind` of the kernel, or one of the team's own."""
    subject: str = ""
    """What the question is about, such as a task."""
    question: str
    choices: tuple[str, ...]
    """The first one is the default in auto mode."""

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.subject}" if self.subject else self.kind


class Conflict(Struct, frozen=True, kw_only=True):
    """Two tasks changed the same file, and neither had seen the work of the other."""

    files: tuple[str, ...]
    others: tuple[TaskId, ...]
    merged: bool
    """Git could merge it; otherwise nothing of the task has landed."""


class _Work(Struct, frozen=True, kw_only=True, gc=False):
    commit: str | None = None
    """The attempt's changes, kept under a ref of its own; None when nothing changed."""
    usage: Usage = Usage()


class Done(_Work, frozen=True, kw_only=True, tag=True, gc=False):
    """The agent did its work, and what could be checked was checked."""

    findings: str
    changed: tuple[str, ...] = ()
    discoveries: tuple[Discovery, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    """External packages that the work needs."""
    resolved_debt: tuple[str, ...] = ()
    """Ids of debt that the work resolves; it counts when the task is completed."""
    syntax_clean: bool = True


class Failed(_Work, frozen=True, kw_only=True, tag=True):
    error: str
    kind: FailureKind | None = None
    """None when the agent worked, but its work did not pass."""


class Limited(_Work, frozen=True, kw_only=True, tag=True):
    """The provider refused for now; the attempt does not count."""

    error: str
    reset_at: float | None = None
    """When the provider answers again, if it said so."""


class Interrupted(_Work, frozen=True, kw_only=True, tag=True):
    """iterdev itself stopped, or the host; the work so far is kept."""

    problem: str = ""
    """What kept the host from carrying out the attempt, if it was the host."""
    host_died: bool = False
    """The host was killed at work, or not heard of any more."""


class Unmet(_Work, frozen=True, kw_only=True, tag=True):
    """A package that the task needs is not there as declared; no agent was asked."""


Outcome = Done | Failed | Limited | Interrupted | Unmet


class RowEdit(Struct, frozen=True, kw_only=True, gc=False):
    task: Task
    status: Status
    findings: str = ""
    error: str = ""
    left_out: bool = False
    """A person skips the task; tasks that depend on it run without it."""


class SessionStarted(Struct, frozen=True, tag=True):
    session: Session
    policy: Policy


class PolicyChanged(Struct, frozen=True, tag=True):
    policy: Policy


class GateOpened(Struct, frozen=True, tag=True):
    gate: Gate


class GateAnswered(Struct, frozen=True, tag=True):
    gate: str
    choice: str


class AnswerApplied(Struct, frozen=True, tag=True):
    """What was answered has been done; the same question may come up again."""

    gate: str


class TasksAdded(Struct, frozen=True, tag=True):
    tasks: tuple[Task, ...]


class TasksReplanned(Struct, frozen=True, tag=True):
    """Rows that have not begun get other titles, or other dependencies and with them other waves."""

    tasks: tuple[Task, ...]


class TableEdited(Struct, frozen=True, tag=True):
    rows: tuple[RowEdit, ...]


class TasksRemoved(Struct, frozen=True, tag=True):
    """A person deleted their rows before the plan was approved."""

    tasks: tuple[TaskId, ...]


class TasksReset(Struct, frozen=True, tag=True):
    tasks: tuple[TaskId, ...]


class TaskCompleted(Struct, frozen=True, tag=True):
    """A task is completed without an attempt, because of a rule of the team."""

    task: TaskId
    findings: str


class TaskReported(Struct, frozen=True, kw_only=True, tag=True):
    """A worker reports a task as completed without an attempt: its output is there already."""

    task: TaskId
    findings: str
    tip: str = ""
    """Where the session's branch is with the commits of a worker that worked elsewhere."""


class TaskFailed(Struct, frozen=True, tag=True):
    task: TaskId
    error: str


class TaskSkipped(Struct, frozen=True, tag=True):
    task: TaskId
    error: str


class WaveStarted(Struct, frozen=True, tag=True):
    wave: int


class WaveMerged(Struct, frozen=True, tag=True):
    wave: int


class AttemptStarted(Struct, frozen=True, tag=True, gc=False):
    task: TaskId
    number: int
    agent: str
    base: str
    fence: int = 0
    """The number of its journal entry: `number` is given again to a task that could not begin."""
    where: str = ""
    """Where it continues when the engine has ended; empty if it ends with the engine."""


class AttemptPlaced(Struct, frozen=True, tag=True):
    """A host has taken the attempt, which continues without the engine; until then it waits in a queue."""

    task: TaskId
    number: int
    host: str


class AttemptEnded(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    task: TaskId
    number: int
    agent: str
    requests: int
    """How often the agent was asked; each request has its own number, the first one that of the attempt."""
    outcome: Outcome
    status: Status
    """The status of the task from now on."""
    error: str = ""
    """Why the task failed."""
    checked: tuple[PackageCheck, ...] = ()
    """What was found of the packages that the task needs, before it began."""
    blocked_by: tuple[PackageCheck, ...] = ()
    """Those of them that kept it from starting."""
    denied: tuple[str, ...] = ()
    """What the agent asked permission for and did not get."""


class Landed(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    task: TaskId
    tip: str
    changed: tuple[str, ...] = ()
    """The files whose change other work may be in conflict with."""
    status: Status | None = None
    """The status of the task from now on; None while a conflict has to be resolved first."""
    error: str = ""
    conflict: Conflict | None = None
    base: str = ""
    """The commit of the user's branch that came with it, and that the session's change is compared with from now on."""


class LandingRefused(Struct, frozen=True, kw_only=True, tag=True):
    """The work does not merge with what landed before it; it is kept."""

    task: TaskId
    files: tuple[str, ...]
    tip: str
    """Where the branch was."""
    status: Status | None = None
    error: str = ""
    conflict: Conflict | None = None


class ConflictResolved(Struct, frozen=True, kw_only=True, tag=True):
    """It is decided what becomes of work that is in conflict."""

    task: TaskId
    strategy: ConflictStrategy
    fix: TaskId | None = None
    """The conflict task; None if there have been too many of them, and the work is given up."""
    status: Status
    error: str = ""


class Answer(Struct, frozen=True):
    gate: Gate
    choice: str


class RollbackStarted(Struct, frozen=True, kw_only=True, tag=True):
    """The session goes back: what is said here no longer holds, and the branch has to follow."""

    target: str
    snapshot: str
    tip: str
    """Where the session's branch has to be."""
    base: str = ""
    """What the session's change was compared with then."""
    rows: tuple[Task, ...]
    """Tasks that are to be done again, as they were planned then."""
    removed: tuple[TaskId, ...]
    """Tasks that did not exist then."""
    answers: Mapping[str, Answer]
    reason: str = ""

    @property
    def undone(self) -> tuple[TaskId, ...]:
        return (*(row.id for row in self.rows), *self.removed)


class RollbackCompleted(Struct, frozen=True, tag=True):
    snapshot: str


class RollbackFailed(Struct, frozen=True, tag=True):
    snapshot: str
    error: str


class RetryRequested(Struct, frozen=True, tag=True):
    """The user wants what failed to be tried again; the events behind it say what."""


class UpdateRequested(Struct, frozen=True, kw_only=True, tag=True):
    """The user wants the newest commit of the branch that the session came from in the session."""

    branch: str
    commit: str


class UpdateStarted(Struct, frozen=True, tag=True):
    """That commit is the work of a task, which lands next."""

    task: TaskId
    commit: str


class Warned(Struct, frozen=True, tag=True):
    text: str
    announced: bool = True
    """False beside an event that is announced itself: one fact is one message on the bus."""


class EnvironmentMade(Struct, frozen=True, tag=True):
    """What programs in workspaces use was installed: from what, how long it took, and what was downloaded."""

    text: str


class EngineStarted(Struct, frozen=True, tag=True):
    """An engine took the session up; what the one before left running is not running any more."""

    pid: int
    tip: str
    """Where the session's branch is."""
    detached: bool = False
    """It runs in the background, and waits at questions."""


class WorkerStarted(Struct, frozen=True, tag=True):
    """The engine is one worker, and not the whole team."""

    role: Role


class WorkerEnded(Struct, frozen=True, tag=True):
    role: Role
    tasks: tuple[TaskId, ...]


class Paused(Struct, frozen=True, tag=True):
    why: str


class Finished(Struct, frozen=True, tag=True):
    WHY_REJECTED: ClassVar[str] = "the plan was rejected"
    why: str = ""


class Archived(Struct, frozen=True, tag=True):
    """Branch, refs and folder of the session stay."""

    exported: str = ""
    """The folder that its deliverables were copied to, if they were."""


class Kept(Struct, frozen=True, tag=True):
    """The session stays active after its work is done."""


class Reopened(Struct, frozen=True, tag=True):
    """An archived session is active again."""


PlanEvent = TasksAdded | TasksReplanned | TableEdited | TasksRemoved | TasksReset
TaskEvent = TaskCompleted | TaskReported | TaskFailed | TaskSkipped
WaveEvent = WaveStarted | WaveMerged
AttemptEvent = AttemptStarted | AttemptEnded | Landed | LandingRefused | ConflictResolved
GateEvent = GateOpened | GateAnswered | AnswerApplied
RollbackEvent = RollbackStarted | RollbackCompleted | RollbackFailed
UpdateEvent = UpdateRequested | UpdateStarted
BranchEvent = UpdateEvent | QueueEvent
EngineEvent = EngineStarted | WorkerStarted | WorkerEnded | Paused
EndEvent = Finished | Archived | Kept | Reopened | RetryRequested
WorkEvent = PlanEvent | TaskEvent | WaveEvent | AttemptPlaced | AttemptEvent | GateEvent | RollbackEvent | BranchEvent
SessionEvent = SessionStarted | PolicyChanged | EngineEvent | EndEvent | DeliveryEvent | Warned | EnvironmentMade
LimitEvent = ProviderEvent | DaySpent | ClockChanged
CollaborationEvent = MessageEvent | LockEvent | CheckpointEvent | FeedbackEvent | DebtEvent | WisdomEvent | PackageEvent
KernelEvent = WorkEvent | SessionEvent | LimitEvent | CollaborationEvent


class TeamEvent(Struct, frozen=True):
    """Base class of the events of a team."""


Event = KernelEvent | TeamEvent


class Entry(Struct, frozen=True, gc=False):
    seq: int
    at: float
    event: Event
