"""The interface between engine and attempts: the job, the executor, and what an attempt may ask of its session.

A job is complete in itself and names nothing of the machine that made it; what only the executing host knows is a
placeholder. What comes back is a value, and commits under `refs/iterdev/...`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from iterdev.agents.contract import AgentEvent, ToolServer
from iterdev.core.collaboration.tool_schemas import ToolArguments
from iterdev.core.limits.budget import Allowance
from iterdev.core.results import Dependency, Result, Usage
from iterdev.core.rules.team_rules import RoleSpec
from iterdev.core.session.attempts import Report
from iterdev.core.session.conflicts import MergeInProgress
from iterdev.core.session.tasks import Task
from iterdev.core.settings import Settings, TimeLimits
from iterdev.core.types import TaskId
from iterdev.core.verification import SuiteReport


class Job(Struct, frozen=True, kw_only=True):
    session: str
    shared_name: str
    """The session's name where several engines may have sessions with the same id: on hosts, and on the way to them."""
    task: Task
    role: RoleSpec
    number: int
    fence: int = 0
    """Of the attempt's start, for its report."""
    agent: str
    settings: Settings
    base: str
    """The commit to work on."""
    session_base: str
    """What the session's change is compared with."""
    prompt: str
    issues: tuple[str, ...] = ()
    """The ids of the issues that the task is about."""
    schema: Mapping[str, object]
    """Of the result."""
    limit: float
    """Seconds for the whole attempt."""
    allowance: Allowance = Allowance()
    """What may be spent while the session cannot be asked."""
    time_limits: TimeLimits = TimeLimits()
    """For an interactive agent."""
    changed: tuple[str, ...] = ()
    """Files that the session changed between its base and `base`."""
    merge: MergeInProgress | None = None
    """Work that is to be merged; the merge is begun before the agent is asked."""
    earlier: tuple[str, ...] = ()
    """The commits of earlier attempts that the prompt names."""
    together: tuple[TaskId, ...] = ()
    """Tasks whose work, all of it merged in `base`, is to be tested; no agent is asked."""
    planned: tuple[str, ...] = ()
    """Files that have to be there when the work is done."""
    commit_body: tuple[str, ...] = ()
    """The lines of the commit's message below the title of the task."""
    baseline: tuple[SuiteReport, ...] = ()
    """The test runs on the session's base, if they have been made."""
    pass_rate: float = 1.0
    """The part of the tests that must pass; below it the agent is asked to fix what fails."""
    replaceable: bool = False
    """Another agent is there to take over if this one cannot do it."""
    needs: tuple[Dependency, ...] = ()
    """External packages that have to be there before the agent is asked."""
    news_of: tuple[Dependency, ...] = ()
    """Those of them for which a newer release was not looked up yet in this session."""
    overridden: tuple[str, ...] = ()
    """The keys of those that may be missing."""


class ToolAccess(Protocol):
    @property
    def server(self) -> ToolServer: ...

    def started(self, pid: int) -> None:
        """Notes a program of the attempt on this machine: the token is for it and its descendants."""

    async def take_result(self) -> Result | None:
        """The result that the agent handed in through a tool since the last call."""


class SessionLink(Protocol):
    def tools(self, job: Job) -> AbstractAsyncContextManager[ToolAccess]:
        """Opens the team's tools for the attempt; its token is invalid afterwards."""

    async def use_tool(self, job: Job, asked: ToolArguments) -> Mapping[str, object]:
        """Carries out a call of the attempt's agent, or raises CallRejected."""

    def documents(self, job: Job) -> AbstractAsyncContextManager[Path]:
        """A folder with the documents of the session, for the agent to read; lines added to its board are shared."""

    async def objection(self, task: TaskId, spent: Usage) -> str:
        """Why an attempt at the task, which has spent this much, may not ask its agent again; empty if it may."""

    def environment_made(self, made: Sequence[str], problems: Sequence[str]) -> None:
        """Passes on what was installed for the programs in a workspace, and what could not be."""

    def said(self, task: TaskId, number: int, event: AgentEvent) -> None:
        """Passes on what the agent says or does, without secrets."""


class Effect(Protocol):
    """Wraps every side effect, such as `with effect("land", task=...)`."""

    def __call__(self, name: str, **fields: str | int) -> AbstractContextManager[None]: ...


class Executor(Protocol):
    @property
    def where(self) -> str:
        """What the journal calls the place in which attempts go on without their engine; empty if they end with it."""

    async def lacking(self, agents: Collection[str]) -> Mapping[str, str]:
        """Those of the agents that cannot be used where attempts run, and why."""

    async def submit(self, job: Job, *, again: bool = False) -> None:
        """Begins a job, unless an attempt with its session, task and fence goes on or has ended.

        That can be so only if it was begun for an earlier engine (`again`).
        """

    async def report(self) -> Report:
        """Waits for the next job to end, or to find its host."""

    async def cancel(self, task: TaskId) -> None:
        """Ends a job: an attempt is `Interrupted`, and its work is kept; a test of work that waits says nothing."""
