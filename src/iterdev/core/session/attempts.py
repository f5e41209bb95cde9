"""Attempts: which tasks are being worked on, and what an executor reports when an attempt has ended.

What follows from a report is in `outcomes`.
"""

from collections.abc import Mapping
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.collaboration.external_packages import PackageCheck
from iterdev.core.collaboration.locks import DeadlockBroken
from iterdev.core.collaboration.messages import MessageSent
from iterdev.core.draft import without
from iterdev.core.results import Result, Usage
from iterdev.core.session import events
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.types import Status, TaskId
from iterdev.core.verification import Measurement, Verification

EVENTS = (
    *get_args(events.AttemptEvent),
    *(events.AttemptPlaced, events.EngineStarted, events.UpdateStarted, events.TaskReported, events.RollbackStarted),
    *(LandingTakenOut, DeadlockBroken, MessageSent),
)


class Attempts(Struct, frozen=True, kw_only=True):
    running: Mapping[TaskId, events.AttemptStarted] = {}
    landing: Mapping[TaskId, None] = {}
    """Tasks whose commit waits to land, in the order in which their attempts ended."""
    aborted: Mapping[TaskId, str] = {}
    """Running tasks whose attempt is to be ended, and why; they fail when it has ended."""
    last_message: Mapping[TaskId, str] = {}
    """The last message of each task's agent, until the next attempt at the task starts."""
    hosts: Mapping[TaskId, str] = {}
    """The hosts of running attempts that continue without the engine; an attempt that is not here waits for a host."""
    host_problems: Mapping[TaskId, int] = {}
    """How many attempts at a task, the last ones in a row, their hosts could not carry out since the engine began."""
    host_deaths: Mapping[TaskId, int] = {}
    """During how many attempts at a task, one after another, their host died; others that were interrupted aside."""

    def outlives_engine(self, task: TaskId) -> bool:
        """Whether an attempt at the task continues, on this machine or another, when its engine has ended."""
        started = self.running.get(task)
        return bool(started and started.where)

    @property
    def of_engine(self) -> tuple[TaskId, ...]:
        """Running tasks whose attempts end with the engine."""
        return tuple(task for task, started in self.running.items() if not started.where)


def evolve(part: Attempts, event: object, _: float = 0) -> Attempts:
    match event:
        case events.AttemptStarted(task):
            last = without(part.last_message, task) if task in part.last_message else part.last_message
            return replace(part, running={**part.running, task: event}, last_message=last)
        case events.AttemptEnded(task=task, status=status):
            landing = {**part.landing, task: None} if status is Status.landing else part.landing
            return replace(
                part,
                running=without(part.running, task),
                landing=landing,
                aborted=without(part.aborted, task),
                hosts=without(part.hosts, task) if part.hosts else part.hosts,
                host_problems=_host_problems(part, event),
                host_deaths=_host_deaths(part, event),
            )
        case events.AttemptPlaced(task, host=host):
            return replace(part, hosts={**part.hosts, task: host})
        case events.EngineStarted():
            return replace(part, host_problems={}) if part.host_problems else part
        case events.UpdateStarted(task):
            return replace(part, landing={**part.landing, task: None})
        case events.Landed(task=task) | events.LandingRefused(task=task) | LandingTakenOut(task=task):
            return replace(part, landing=without(part.landing, task))
        case events.TaskReported(task=task):
            return _without_attempts(part, task)
        case events.RollbackStarted():
            return replace(_without_attempts(part, *event.undone), landing=without(part.landing, *event.undone))
        case DeadlockBroken(task=task, others=others) if task in part.running:
            why = f"aborted: it and {', '.join(others)} waited for each other's locks"
            return replace(part, aborted={**part.aborted, task: why})
        case MessageSent(task=str(task), summary=summary):
            return replace(part, last_message={**part.last_message, task: summary})
        case _:
            return part


def _without_attempts(part: Attempts, *tasks: TaskId) -> Attempts:
    """Nothing more is heard of the attempts at these tasks."""
    return replace(
        part,
        running=without(part.running, *tasks),
        aborted=without(part.aborted, *tasks),
        hosts=without(part.hosts, *tasks),
    )


def _host_problems(part: Attempts, event: events.AttemptEnded) -> Mapping[TaskId, int]:
    match event.outcome:
        case events.Interrupted(problem=str(problem)) if problem:
            return {**part.host_problems, event.task: part.host_problems.get(event.task, 0) + 1}
        case _:
            return without(part.host_problems, event.task) if event.task in part.host_problems else part.host_problems


def _host_deaths(part: Attempts, event: events.AttemptEnded) -> Mapping[TaskId, int]:
    match event.outcome:
        case events.Interrupted(host_died=died) if event.status is Status.pending:
            task, known = event.task, part.host_deaths
            return {**known, task: known.get(task, 0) + 1} if died else known
        case _:
            return without(part.host_deaths, event.task) if event.task in part.host_deaths else part.host_deaths


class Success(Struct, frozen=True, kw_only=True, tag=True):
    """The agent reported a result, and what could be checked was checked."""

    result: Result
    commit: str | None = None
    changed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the user should know about the attempt, such as changes that were set aside."""
    syntax_clean: bool = True
    """Whether every changed file could be read by its kind."""
    measured: Measurement | None = None
    """The test runs that iterdev made."""
    usage: Usage = Usage()


class AttemptReport(Struct, frozen=True, kw_only=True):
    task: TaskId
    number: int
    fence: int
    """That of the attempt's start; a report of another one than the open attempt is not used."""
    requests: int
    outcome: Success | events.Failed | events.Limited | events.Interrupted | events.Unmet
    checked: tuple[PackageCheck, ...] = ()
    denied: tuple[str, ...] = ()


class LandingTestReport(Struct, frozen=True, kw_only=True):
    tasks: tuple[TaskId, ...]
    """Whose work was tested as one tree."""
    verification: Verification | None = None
    """None if the run was interrupted."""
    host_died: bool = False
    """Whether it was interrupted because its host died."""
    notes: tuple[str, ...] = ()
    """What the user should know about the run."""

    @property
    def task(self) -> TaskId:
        """The first of them, by which an executor knows the run."""
        return self.tasks[0]


class Placement(Struct, frozen=True, kw_only=True):
    """A host has taken an attempt that was submitted."""

    task: TaskId
    number: int
    fence: int
    host: str


Report = AttemptReport | LandingTestReport | Placement
"""What an executor says of a job that has ended, or found its host."""
