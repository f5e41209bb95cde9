"""What can have happened in a session. The journal holds nothing else, and the state is made of nothing else."""

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from iterdev.core.collaboration.checkpoints import CheckpointEvent
from iterdev.core.collaboration.external_packages import Checked, DependencyEvent
from iterdev.core.collaboration.feedback import FeedbackEvent
from iterdev.core.collaboration.locks import LockEvent
from iterdev.core.collaboration.tech_debt import DebtEvent, DebtRule
from iterdev.core.collaboration.wisdom import WisdomEvent
from iterdev.core.limits.agent_failures import TroubleKind
from iterdev.core.results import Dependency, Design, Discovery, Review, TechDebt, Usage, Wisdom
from iterdev.core.session.archive import CompletionEvent
from iterdev.core.session.tasks import Task
from iterdev.core.types import Engine, Pipeline, Role, SessionId, Severity, Signal, Status, Strategy, TaskId, Team
from iterdev.core.verification import SuiteReport, Verification
from iterdev.teams.development.requirement_analysis import Analysis


class Policy(Struct, frozen=True, kw_only=True):
    """The rules that deciding follows; journalled, so that every decision can be made again."""

    auto: bool = False
    concurrency: int = 3
    rounds: int = 3
    wave_limit: float = 900
    attempt_limit: float = 900
    budget_usd: float | None = None
    budget_tokens: int | None = None
    debt: DebtRule | None = None
    task_budget_usd: float | None = None
    task_budget_tokens: int | None = None
    day_budget_usd: float | None = None
    day_budget_tokens: int | None = None
    agents: Mapping[Role, str] = {}
    """Agents of the configuration, by role."""
    fallbacks: Mapping[str, str] = {}
    """Which agent takes over from which."""
    providers: Mapping[str, str] = {}
    """Who answers an agent, where its name does not tell."""
    conflicts: Strategy = Strategy.auto_merge


class Session(Struct, frozen=True, kw_only=True):
    """The facts of a session that never change."""

    id: SessionId
    team: Team
    engine: Engine
    requirement: str
    folder: str
    base: str
    """The commit that the work starts from."""
    branch: str
    """The user's branch at the start, to which `accept` brings the work."""
    analysis: Analysis
    pipeline: Pipeline | None = None
    """The pipeline that the user named; without it the analysis recommends one."""
    agents: Mapping[Role, str] = {}
    """Agents named on the command line, by role."""
    team_name: str = "iterdev"
    by_hand: bool = False
    """The table was made by a person, not by a pipeline."""


class Gate(Struct, frozen=True, kw_only=True):
    """A question to the user, open until somebody answers it."""

    id: str
    question: str
    choices: tuple[str, ...]
    """The first one is taken when nobody may be asked."""


class Done(Struct, frozen=True, kw_only=True, tag=True, gc=False):
    """The agent did its work, and what could be checked was checked."""

    findings: str
    commit: str | None = None
    """The attempt's changes, kept under a ref of its own; None when nothing changed."""
    changed: tuple[str, ...] = ()
    usage: Usage = Usage()
    wisdom: Wisdom = Wisdom()
    discoveries: tuple[Discovery, ...] = ()
    notes: tuple[str, ...] = ()
    """What the user should know about the attempt, such as changes that were set aside."""
    design: Design | None = None
    review: Review | None = None
    verification: Verification | None = None
    baseline: SuiteReport | None = None
    """The test run on the base commit, when this attempt made it."""
    iterations: int = 0
    dependencies: tuple[Dependency, ...] = ()
    tech_debt: tuple[TechDebt | str, ...] = ()
    resolved_debt: tuple[str, ...] = ()
    """Ids of debt that the work pays back, as the agent says; it counts when the task is completed."""


class Failed(Struct, frozen=True, kw_only=True, tag=True):
    error: str
    kind: TroubleKind | None = None
    """None when the agent worked, but its work did not pass."""
    commit: str | None = None
    usage: Usage = Usage()


class Limited(Struct, frozen=True, kw_only=True, tag=True):
    """The provider asked for patience; the attempt does not count."""

    error: str
    reset_at: float | None = None
    """When the provider answers again, if it said so."""
    commit: str | None = None
    usage: Usage = Usage()


class Interrupted(Struct, frozen=True, kw_only=True, tag=True):
    """iterdev itself stopped; the work so far is kept, and the task is pending again."""

    commit: str | None = None
    usage: Usage = Usage()


class Unmet(Struct, frozen=True, kw_only=True, tag=True):
    """A package that the task needs is not there as declared; no agent was asked, and the task is pending again."""

    commit: str | None = None
    usage: Usage = Usage()


Outcome = Done | Failed | Limited | Interrupted | Unmet


class RowEdit(Struct, frozen=True, kw_only=True, gc=False):
    """A row of the table as a person left it."""

    task: Task
    status: Status
    findings: str = ""
    score: float | None = None
    signal: Signal | None = None
    error: str = ""


class SessionStarted(Struct, frozen=True, tag=True):
    session: Session
    policy: Policy


class PolicyChanged(Struct, frozen=True, tag=True):
    policy: Policy


class PipelineChosen(Struct, frozen=True, tag=True):
    pipeline: Pipeline


class GateOpened(Struct, frozen=True, tag=True):
    gate: Gate


class GateAnswered(Struct, frozen=True, tag=True):
    gate: str
    choice: str


class TasksAdded(Struct, frozen=True, tag=True):
    tasks: tuple[Task, ...]


class TableEdited(Struct, frozen=True, tag=True):
    rows: tuple[RowEdit, ...]


class WaveStarted(Struct, frozen=True, tag=True):
    wave: int


class WaveMerged(Struct, frozen=True, tag=True):
    wave: int


class AttemptStarted(Struct, frozen=True, tag=True, gc=False):
    task: TaskId
    number: int
    agent: str
    base: str


class AttemptEnded(Struct, frozen=True, tag=True, gc=False):
    task: TaskId
    number: int
    requests: int
    """How often the agent was asked; each request has its own number, the first one that of the attempt."""
    outcome: Outcome
    checked: tuple[Checked, ...] = ()
    """What was found of the packages that the task needs, before it began."""
    denied: tuple[str, ...] = ()
    """What the agent wanted to do, and was not allowed to."""


class Landed(Struct, frozen=True, tag=True, gc=False):
    task: TaskId
    tip: str


class LandingRefused(Struct, frozen=True, tag=True):
    """The work does not merge with what landed before it; it is kept."""

    task: TaskId
    files: tuple[str, ...]
    tip: str = ""
    """Where the branch was."""


class ConflictResolved(Struct, frozen=True, kw_only=True, tag=True):
    """What is done about work that collides with what landed before it."""

    task: TaskId
    strategy: Strategy
    fix: TaskId | None = None
    """The task that brings both changes together."""


class RollbackStarted(Struct, frozen=True, kw_only=True, tag=True):
    """The session goes back; what is said here no longer holds from now on, and the branch has to follow."""

    target: str
    snapshot: str
    tip: str
    """Where the session's branch has to be."""
    rows: tuple[Task, ...]
    """Tasks that are to be done again, as they were planned then."""
    removed: tuple[TaskId, ...]
    """Tasks that did not exist then."""
    sprint: int
    rounds: Mapping[int, int]
    answers: Mapping[str, str]
    forced: tuple[int, ...] = ()
    """Sprints whose convergence had been forced by then."""
    unjudged: tuple[TaskId, ...] = ()
    """Reviews and verifications that stand, and whose consequences had not been drawn yet."""
    reason: str = ""


class RollbackCompleted(Struct, frozen=True, tag=True):
    snapshot: str


class RollbackFailed(Struct, frozen=True, tag=True):
    snapshot: str
    error: str


class DesignRestored(Struct, frozen=True, tag=True):
    """A design that the journal had lost was read back from the session folder."""

    task: TaskId
    design: Design


class TaskFailed(Struct, frozen=True, tag=True):
    task: TaskId
    error: str


class NothingLeft(Struct, frozen=True, tag=True):
    """The rows before it took the whole breakdown: a row for the rest of it is completed, and nobody is asked."""

    task: TaskId


class TaskSkipped(Struct, frozen=True, tag=True):
    task: TaskId
    error: str


class TaskReported(Struct, frozen=True, kw_only=True, tag=True):
    """A worker says that its task is done, without an attempt: what the task should leave is there already."""

    task: TaskId
    findings: str


class TasksReset(Struct, frozen=True, tag=True):
    """Failed and skipped tasks are to be run again."""

    tasks: tuple[TaskId, ...]


class TasksReplanned(Struct, frozen=True, tag=True):
    """Rows that have not begun get other dependencies, and with them other waves."""

    tasks: tuple[Task, ...]


class SprintRecord(Struct, frozen=True, kw_only=True):
    """How a sprint went."""

    pipeline: Pipeline
    expected: int
    """The tasks that were planned for it, without those of fix rounds."""
    velocity: int
    """The tasks that were completed in it."""
    mean_score: float | None
    rounds: int
    lost: tuple[TaskId, ...] = ()
    """Tasks that failed or were skipped."""
    worked: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    debt: str = ""
    """What the team owed at its end, in one line."""


class SprintEnded(Struct, frozen=True, tag=True):
    sprint: int
    record: SprintRecord


class SprintStarted(Struct, frozen=True, tag=True):
    sprint: int
    goal: str


class RoundStarted(Struct, frozen=True, kw_only=True, tag=True):
    sprint: int
    number: int
    raised_by: tuple[TaskId, ...]
    why: str


class Reverified(Struct, frozen=True, tag=True):
    """A failed verification of work that has changed since; another one looks at the newer work."""

    task: TaskId


class ReviewPassed(Struct, frozen=True, tag=True):
    task: TaskId
    grade: Severity


class ConvergenceForced(Struct, frozen=True, kw_only=True, tag=True):
    sprint: int
    raised_by: tuple[TaskId, ...]
    problems: tuple[str, ...]
    why: str = ""


class RoundDecided(Struct, frozen=True, kw_only=True, tag=True):
    """The controller row's decision."""

    task: TaskId
    decision: str
    number: int


class MessageSent(Struct, frozen=True, kw_only=True, tag=True):
    """An agent or a person put a message on the bus."""

    sender: str
    to: str
    kind: str
    summary: str
    data: Mapping[str, object] = {}
    task: TaskId | None = None
    """The task whose agent it was."""
    sent_at: float | None = None
    """When it was sent, if that was before this journal."""
    number: int = 0
    """The number that it had then."""


class MessageDeleted(Struct, frozen=True, tag=True):
    number: int


class MessagesCleared(Struct, frozen=True, tag=True):
    """The bus is empty again, and so is what was shared on it."""


class Warned(Struct, frozen=True, tag=True):
    text: str


class EngineStarted(Struct, frozen=True, tag=True):
    """An engine took the session up; whatever the one before left running is not running any more."""

    pid: int
    tip: str
    """Where the session's branch really is."""


class WorkerStarted(Struct, frozen=True, tag=True):
    """The engine is one worker, and not the whole team."""

    role: Role


class WorkerEnded(Struct, frozen=True, tag=True):
    """The worker is done, with these tasks."""

    role: Role
    tasks: tuple[TaskId, ...]


class ProviderPaused(Struct, frozen=True, tag=True):
    """Another run on this machine learned that a provider answers nobody for a while."""

    provider: str
    until: float
    why: str


class DaySpent(Struct, frozen=True, tag=True):
    """What all sessions of the repository have spent on the day that began then."""

    began: float
    usage: Usage


class Paused(Struct, frozen=True, tag=True):
    why: str


class Finished(Struct, frozen=True, tag=True):
    WHY_REJECTED: ClassVar[str] = "the plan was rejected"
    why: str = ""


class Accepted(Struct, frozen=True, tag=True):
    branch: str
    commit: str


TableEvent = TasksAdded | TasksReplanned | TableEdited | TasksReset | DesignRestored
SprintEvent = SprintEnded | SprintStarted
RollbackEvent = RollbackStarted | RollbackCompleted | RollbackFailed
SettlingEvent = LandingRefused | ConflictResolved | TaskFailed | TaskSkipped | TaskReported | NothingLeft
AttemptEvent = AttemptStarted | AttemptEnded | Landed | SettlingEvent
RoundEvent = RoundStarted | Reverified | ReviewPassed | ConvergenceForced | RoundDecided
GateEvent = PipelineChosen | GateOpened | GateAnswered
WaveEvent = WaveStarted | WaveMerged
BusEvent = MessageSent | MessageDeleted | MessagesCleared
WorkerEvent = WorkerStarted | WorkerEnded
SessionEvent = SessionStarted | PolicyChanged | Warned | EngineStarted | Paused | Finished | Accepted | WorkerEvent
ProtocolEvent = (
    LockEvent | CheckpointEvent | FeedbackEvent | DebtEvent | CompletionEvent | WisdomEvent | DependencyEvent
)
OutsideEvent = ProviderPaused | DaySpent
WorkEvent = TableEvent | AttemptEvent | SprintEvent | RollbackEvent | RoundEvent | WaveEvent
Event = WorkEvent | GateEvent | SessionEvent | BusEvent | ProtocolEvent | OutsideEvent


class Entry(Struct, frozen=True, gc=False):
    """An event with its place in the journal and its time."""

    seq: int
    at: float
    event: Event
