"""The state of a session: frozen parts, each with its own events, made by folding the journal (see `fold`)."""

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.append_only import AppendOnly, NewestFirst
from iterdev.core.collaboration.checkpoints import Checkpoints
from iterdev.core.collaboration.external_packages import Packages
from iterdev.core.collaboration.feedback import Feedback
from iterdev.core.collaboration.locks import Locks
from iterdev.core.collaboration.messages import Messages
from iterdev.core.collaboration.tech_debt import Debt
from iterdev.core.collaboration.wisdom import Wisdom
from iterdev.core.draft import without
from iterdev.core.limits.budget import Spending
from iterdev.core.limits.providers import Agents, Providers
from iterdev.core.policy import Policy
from iterdev.core.session import events
from iterdev.core.session.attempts import Attempts
from iterdev.core.session.conflicts import Conflicts
from iterdev.core.session.delivery import Delivery
from iterdev.core.session.events import Entry, Session
from iterdev.core.session.gates import Gates
from iterdev.core.session.landing_queue import LandingQueue
from iterdev.core.session.lifecycle import Lifecycle
from iterdev.core.session.task_table import TaskTable
from iterdev.core.task_description import Scope
from iterdev.core.types import Ending, TaskId, TeamState


class Branch(Struct, frozen=True, kw_only=True):
    """The session's branch, as far as the journal knows."""

    tip: str
    """The last commit that landed; the base at first."""
    base: str
    """What the session's change is compared with: the commit that it began with, or the last one brought in."""
    rewind: str = ""
    """The snapshot of a rollback that the branch has not followed yet."""
    opened: bool = False
    """Whether an engine has worked on it."""
    requested: events.UpdateRequested | None = None
    """What the user wants to be brought in, until there is a task for it."""
    updates: Mapping[TaskId, str] = {}
    """Tasks that bring in a commit of the user's branch."""


BRANCH_EVENTS = (
    *(events.Landed, events.LandingRefused, events.EngineStarted, events.TaskReported),
    *(events.UpdateRequested, events.UpdateStarted),
    *(events.RollbackStarted, events.RollbackCompleted),
)


def evolve_branch(part: Branch, event: object, _: float = 0) -> Branch:
    match event:
        case events.Landed(tip=tip, base=base):
            return replace(part, tip=tip, base=base or part.base, opened=True)
        case events.LandingRefused(tip=tip) | events.EngineStarted(_, tip):
            return replace(part, tip=tip, opened=True)
        case events.TaskReported(tip=tip):
            return replace(part, tip=tip, opened=True) if tip else part
        case events.UpdateRequested():
            return replace(part, requested=event)
        case events.UpdateStarted(task, commit):
            return replace(part, requested=None, updates={**part.updates, task: commit})
        case events.RollbackStarted(tip=tip, snapshot=snapshot, base=base, removed=removed):
            return replace(
                part,
                tip=tip,
                base=base or part.base,
                rewind=snapshot,
                requested=None,
                updates=without(part.updates, *removed),
            )
        case events.RollbackCompleted():
            return replace(part, rewind="")
        case _:
            raise TypeError(event)


class State(Struct, frozen=True, kw_only=True, dict=True):
    """Nothing here is ever changed in place; `fold.evolve` makes the next one."""

    session: Session
    policy: Policy
    seq: int
    created_at: float
    updated_at: float
    last: Entry
    """The last event of the work; that an engine started or paused does not count."""
    team: TeamState
    branch: Branch
    lifecycle: Lifecycle = Lifecycle()
    delivery: Delivery = Delivery()
    tasks: TaskTable = TaskTable()
    attempts: Attempts = Attempts()
    landing_queue: LandingQueue = LandingQueue()
    conflicts: Conflicts = Conflicts()
    gates: Gates = Gates()
    warnings: AppendOnly[str] = AppendOnly[str]()
    environments: AppendOnly[str] = AppendOnly[str]()
    """What was installed for the programs in workspaces."""
    messages: Messages = Messages()
    locks: Locks = Locks()
    checkpoints: Checkpoints = {}
    feedback: tuple[Feedback, ...] = ()
    """The newest first."""
    debt: NewestFirst[Debt] = NewestFirst[Debt]()
    wisdom: Wisdom = Wisdom()
    packages: Packages = Packages()
    providers: Providers = Providers()
    spending: Spending = Spending()

    @property
    def why(self) -> str:
        """Why the session is paused or ended early; what it waits for are the gates that are open now."""
        if self.lifecycle.why != Ending.waiting:
            return self.lifecycle.why
        return f"{Ending.waiting}: {', '.join(self.gates.open)}" if self.gates.open else ""

    @cached_property
    def agents(self) -> Agents:
        by_role = {**self.policy.agents, **self.session.agents}
        return Agents(by_role=by_role, fallbacks=self.policy.fallbacks, providers=self.policy.providers)

    @property
    def scope(self) -> Scope:
        return Scope(requirement=self.session.requirement, folder=self.session.folder)

    @property
    def started(self) -> Mapping[TaskId, float]:
        """Since when the running tasks run."""
        return {task: self.tasks.progress[task].started_at or 0 for task in self.attempts.running}
