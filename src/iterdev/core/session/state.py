"""Where a session stands: plain values, made by folding the journal (see `fold`), and questions about them."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from iterdev.core.collaboration.checkpoints import Checkpoints
from iterdev.core.collaboration.external_packages import Dependencies
from iterdev.core.collaboration.feedback import Feedback
from iterdev.core.collaboration.locks import Locks
from iterdev.core.collaboration.tech_debt import Debt
from iterdev.core.collaboration.wisdom import Heritage, Note
from iterdev.core.results import Design, Review, Usage
from iterdev.core.session.archive import Completion
from iterdev.core.session.conflicts import Change, Conflict
from iterdev.core.session.events import AttemptStarted, Entry, Gate, Policy, Session, SprintRecord
from iterdev.core.session.tasks import Task
from iterdev.core.task_description import Scope
from iterdev.core.types import Phase, Pipeline, Role, Signal, Status, TaskId
from iterdev.core.verification import SuiteReport, Verification


class Progress(Struct, frozen=True, kw_only=True, gc=False):
    """What became of a task so far."""

    status: Status = Status.pending
    findings: str = ""
    score: float | None = None
    signal: Signal | None = None
    error: str = ""
    requests: int = 0
    """How often an agent was asked to do it."""
    number: int = 0
    """The last number that an attempt or a repeated request had; the next attempt has this number plus one."""
    attempt: int = 0
    """The number of the last attempt."""
    agent: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    base: str = ""
    """The commit that the last attempt worked on."""
    commit: str | None = None
    unlanded: tuple[str, ...] = ()
    """Commits of earlier attempts that did not succeed; kept, and shown to the next one."""
    changed: tuple[str, ...] = ()
    usage: Usage = Usage()
    resolved_debt: tuple[str, ...] = ()
    """Ids of debt that is paid back when the task is completed."""
    given_up: tuple[str, ...] = ()
    """Agents that cannot do this task; another one was there to take over."""
    denied: tuple[str, ...] = ()
    """What agents wanted to do for this task, and were not allowed to."""


class Pause(Struct, frozen=True, kw_only=True):
    """A provider that answers nobody for a while."""

    until: float
    why: str
    guesses: int = 0
    """How often in a row nobody knew when it would answer again."""


class Message(Struct, frozen=True, kw_only=True, gc=False):
    """One line of the bus."""

    ts: float
    sender: str
    to: str
    type: str
    summary: str
    data: Mapping[str, object] = {}
    number: int = 0
    """Its place on the bus, which makes its id; given when it is put there."""

    @property
    def id(self) -> str:
        return f"MSG-{self.number:03d}"


class Shared(Struct, frozen=True, kw_only=True):
    """What somebody shares with the team: the data of all their messages of type `state_update`, merged."""

    at: float
    data: Mapping[str, object]


class State(Struct, frozen=True, kw_only=True):
    """Nothing here is ever changed in place; `fold.evolve` makes the next one."""

    session: Session
    policy: Policy
    seq: int
    updated_at: float
    created_at: float
    last: Entry
    """What happened last to the work; that an engine came or rested did not."""
    phase: Phase = Phase.active
    why: str = ""
    """Why the session is paused or ended early."""
    pipeline: Pipeline | None = None
    order: Mapping[TaskId, int] = {}
    """Every task and its place in the table."""
    tasks: Mapping[TaskId, Task] = {}
    progress: Mapping[TaskId, Progress] = {}
    removed: Mapping[TaskId, Progress] = {}
    """What had become of tasks that a rollback took out of the table."""
    blockers: Mapping[TaskId, int] = {}
    """How many of a pending task's dependencies are not completed."""
    dependants: Mapping[TaskId, tuple[TaskId, ...]] = {}
    ready: Mapping[TaskId, None] = {}
    doomed: Mapping[TaskId, None] = {}
    """Pending tasks with a dependency that failed or was skipped."""
    running: Mapping[TaskId, AttemptStarted] = {}
    landing: Mapping[TaskId, None] = {}
    work: Mapping[TaskId, int] = {}
    """Where in the journal the developers' work began that is still under way."""
    touched: Mapping[str, tuple[Change, ...]] = {}
    """What landed on a file since the oldest of that work began, in the order of landing."""
    conflicts: Mapping[TaskId, Conflict] = {}
    colliding: Mapping[TaskId, None] = {}
    """Conflicts about which nothing has been done yet."""
    open_in_wave: Mapping[int, int] = {}
    """How many tasks of each wave are not final."""
    wave: int = 0
    """The wave that is under way, or 0 between waves."""
    wave_started_at: float = 0
    gates: Mapping[str, Gate] = {}
    """Open questions."""
    answers: Mapping[str, str] = {}
    sprint: int = 1
    sprints: Mapping[int, SprintRecord] = {}
    """How the sprints went that are over."""
    rounds: Mapping[int, int] = {}
    """Fix rounds used, by sprint."""
    judged: Mapping[TaskId, None] = {}
    """Reviews and verifications whose consequences have been drawn."""
    unjudged: Mapping[TaskId, None] = {}
    """Those that are completed and whose consequences have not."""
    decisions: Mapping[TaskId, str] = {}
    designs: Mapping[TaskId, Design] = {}
    revised: Mapping[TaskId, None] = {}
    """Designs that took the place of an earlier one of their sprint."""
    reviews: Mapping[TaskId, Review] = {}
    verifications: Mapping[TaskId, Verification] = {}
    iterations: Mapping[TaskId, int] = {}
    baseline: SuiteReport | None = None
    tip: str = ""
    """The last commit that landed; the base at first."""
    rewind: str = ""
    """A rollback that the session's branch has not followed yet."""
    warnings: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    shared: Mapping[str, Shared] = {}
    """By sender."""
    last_words: Mapping[TaskId, str] = {}
    """The last message of each running task's agent."""
    notes: tuple[Note, ...] = ()
    heritage: Heritage = Heritage()
    forced: tuple[int, ...] = ()
    """Sprints whose convergence was forced."""
    disputes: Mapping[str, str] = {}
    """What the team does not agree on and nobody has answered, by the gate that asks about it."""
    accepted: str = ""
    """The commit of the user's branch that has all of the session's work."""
    worker: Role | None = None
    """The role that the engine works for, if it is one worker."""
    aborted: Mapping[TaskId, str] = {}
    """Running tasks whose attempt is to be ended, and why; they fail when it has ended."""
    locks: Locks = Locks()
    checkpoints: Checkpoints = {}
    feedback: tuple[Feedback, ...] = ()
    """The newest first."""
    debt: tuple[Debt, ...] = ()
    """The newest first."""
    pauses: Mapping[str, Pause] = {}
    """By provider; one that is over stays until the provider has answered."""
    unusable: Mapping[str, str] = {}
    """Agents that cannot be used until somebody changes something on this machine, and why."""
    spent: Usage = Usage()
    spent_by: Mapping[str, Usage] = {}
    """By agent."""
    undone: Usage = Usage()
    """What was spent on tasks that a rollback took out of the table."""
    today: Usage = Usage()
    """What all sessions of the repository have spent today, as far as the journal was told."""
    completion: Completion = Completion()
    dependencies: Dependencies = Dependencies()

    @property
    def round(self) -> int:
        return self.rounds.get(self.sprint, 0)

    @property
    def scope(self) -> Scope:
        return Scope(requirement=self.session.requirement, folder=self.session.folder)

    @property
    def is_over(self) -> bool:
        return self.phase in {Phase.completed, Phase.archived}

    @property
    def is_finished(self) -> bool:
        """Whether the work is done, also if the session is kept at hand."""
        return self.is_over or self.completion.kept

    def rows(self) -> Iterator[tuple[Task, Progress]]:
        """The table, in its order."""
        return ((self.tasks[task], self.progress[task]) for task in self.order)

    def count(self, status: Status) -> int:
        return sum(progress.status is status for progress in self.progress.values())

    def of_role(self, role: Role, sprint: int) -> list[Task]:
        return [task for task, _ in self.rows() if task.role is role and task.sprint == sprint]

    def unmet(self, task: TaskId) -> list[TaskId]:
        """The dependencies that a task still waits for."""
        return [dep for dep in self.tasks[task].deps if self.progress[dep].status is not Status.completed]

    def ancestors(self, task: TaskId) -> list[TaskId]:
        """All tasks that a task builds on, directly or not, in the order of the table."""
        seen: set[TaskId] = set()
        queue = list(self.tasks[task].deps)
        while queue:
            if (link := queue.pop()) not in seen:
                seen.add(link)
                queue += self.tasks[link].deps
        return sorted(seen, key=self.order.__getitem__)
