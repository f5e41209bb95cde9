"""What the kernel asks of a session's team. The kernel names no role, pipeline or verdict.

A team's own events are recorded and folded like all others. Everything else that a team says (its table, prompts,
documents) is in `teams/contract.py`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.collaboration.messages import Announced
from iterdev.core.results import Dependency, Result
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import Event, Finished, TasksReset, UpdateRequested
from iterdev.core.session.fold import TeamFold
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Queue
from iterdev.core.session.tasks import Task
from iterdev.core.task_description import Brief
from iterdev.core.types import Role, TaskId


class Procedure(StrEnum):
    change = "change"
    """The agent changes files; the change is checked and lands."""
    verify = "verify"
    """iterdev runs the tests; the agent is asked to fix what fails."""
    read = "read"
    """The agent reads and reports; what it writes is set aside."""
    decide = "decide"
    """No attempt: the team's rules decide."""


class RoleSpec(Struct, frozen=True, kw_only=True):
    name: Role
    prefix: str
    """Of the ids of its tasks."""
    procedure: Procedure
    result: type[Result]
    output: str = "output"
    """The word for what an attempt leaves."""
    loops: bool = False
    """A worker of this role does further tasks of its prefix in the same process."""
    tested: bool = False
    """Its change lands only if the tests pass with it: alone, and together with what landed since it was begun."""
    at_most: int | None = None
    """Its tasks that may run at once, besides the concurrency of the session."""

    @property
    def writes(self) -> bool:
        """Whether its changes land."""
        return self.procedure in {Procedure.change, Procedure.verify}


class Interpretation(Struct, frozen=True, kw_only=True):
    events: tuple[Event, ...] = ()
    error: str = ""
    """Why the task fails although the attempt succeeded."""
    dependencies: tuple[Dependency, ...] = ()
    """External packages that the work needs."""
    resolved_debt: tuple[str, ...] = ()
    """Ids of debt that the work resolves."""


CONFLICT_BRIEF = Brief(
    purpose="Bring two changes of the same files together",
    success="both changes are present and work together",
    steps=(
        "Read both changes and understand what each of them is for",
        "Go to the places that git could not merge, and bring them together so that both changes keep their effect",
        "Leave no conflict marker, and validate the syntax",
    ),
    expected="modified source files | both changes present",
    constraints="Drop nothing of either change | Change nothing else",
)


UPDATE_BRIEF = Brief(
    purpose="Bring the session up to date with the branch that it came from",
    success="the commit is on the session's branch",
    steps=("Merge the commit into the session's branch",),
    expected="a merge commit",
    constraints="Drop nothing of either side",
)


class TeamRules(TeamFold, Protocol):
    """Base class of a team's rules; every method that is not required has a neutral default."""

    name: str
    roles: Mapping[Role, RoleSpec]
    decided: tuple[type, ...] = ()
    """Those of its own events that only deciding makes; the others say what an attempt's result means."""
    conflict_brief: Brief = CONFLICT_BRIEF
    """What a task that resolves a conflict is told."""

    def role_of(self, task: str) -> Role | None:
        """The role whose prefix a task id has."""
        prefix = ids.prefix_of(task)
        return next((role.name for role in self.roles.values() if role.prefix == prefix), None)

    def plan(self, state: State) -> tuple[Event, ...]:
        """The first tasks, or what has to happen before they can be made, such as a question."""

    def plan_note(self, state: State) -> str:
        """What the question about the plan says besides the tasks."""
        return ""

    def before_work(self, state: State) -> tuple[Event, ...]:
        """What has to be recorded before further tasks start; nothing most of the time."""
        return ()

    def update_tasks(self, state: State, asked: UpdateRequested) -> tuple[Task, ...]:
        """The task that brings the user's branch into the session, then those that look at the result."""
        return ()

    def nothing_to_do(self, state: State, task: Task) -> str:
        """Why a task that is ready needs no attempt; empty if it needs one."""
        return ""

    def may_have_nothing_to_do(self, queue: Queue) -> bool:
        """Whether to ask that of the tasks of a queue at all; thousands may be ready at once."""
        return True

    def decision(self, state: State, task: Task) -> tuple[Event, ...]:
        """What a task of the procedure `decide` decides; its completion included."""
        return ()

    def follow_up(self, state: State) -> tuple[Event, ...]:
        """What follows from tasks that ended; nothing if that was recorded before."""
        return ()

    def finish(self, state: State) -> tuple[Event, ...]:
        """What follows when every task is final: more work, a question, or the end of the session."""
        return (Finished(),)

    def interpret(self, state: State, task: Task, success: Success) -> Interpretation:
        return Interpretation()

    def completion_error(self, state: State, task: TaskId) -> str:
        """Why a task whose work has landed fails; empty if it is completed."""
        return ""

    def pass_rate(self, state: State) -> float:
        """The part of the tests that must pass."""
        return 1

    def retried(self, state: State, failed: tuple[TaskId, ...]) -> tuple[Event, ...]:
        """What follows when the user wants failed and skipped tasks retried; nothing if there is nothing to retry."""
        return (TasksReset(failed),) if failed else ()

    def rolled_back(self, before: State, now: State) -> tuple[Event, ...]:
        """What a rollback means for the team's part: `before` is the state that the session goes back to."""
        return ()

    def has_output(self, state: State, task: Task) -> bool:
        """Whether what an attempt at the task should leave is there and still counts."""
        return state.tasks.progress[task.id].commit is not None

    def role_for(self, text: str) -> Role:
        """The role that covers what the text asks for; by default the first one that changes files."""
        return next(role.name for role in self.roles.values() if role.procedure is Procedure.change)

    def sprint(self, state: State, task: TaskId | None = None) -> int:
        """The number of a task's sprint, or of the current one; 1 for a team without sprints."""
        return 1

    def announce(self, event: Event, state: State) -> Announced | None:
        """The announcement of the event, if there is one; the state is the one after it."""
        return None
