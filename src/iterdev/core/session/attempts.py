"""Attempts: which tasks are being worked on, and what an executor reports when an attempt has ended.

What follows from a report is in `outcomes`.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from iterdev.core.collaboration.external_packages import PackageCheck
from iterdev.core.collaboration.locks import DeadlockBroken
from iterdev.core.results import Result, Usage
from iterdev.core.session.events import (
    AttemptEnded,
    AttemptStarted,
    Failed,
    Interrupted,
    Landed,
    LandingRefused,
    Limited,
    RollbackStarted,
    TaskReported,
    Unmet,
)
from iterdev.core.types import Status, TaskId
from iterdev.core.verification import Measurement

Value = TypeVar("Value")

EVENTS = (AttemptStarted, AttemptEnded, Landed, LandingRefused, TaskReported, RollbackStarted, DeadlockBroken)


class Attempts(Struct, frozen=True, kw_only=True):
    running: Mapping[TaskId, AttemptStarted] = {}
    landing: Mapping[TaskId, None] = {}
    """Tasks whose commit is to land next, in this order."""
    aborted: Mapping[TaskId, str] = {}
    """Running tasks whose attempt is to be ended, and why; they fail when it has ended."""


def evolve(part: Attempts, event: object) -> Attempts:
    match event:
        case AttemptStarted(task):
            return msgspec.structs.replace(part, running={**part.running, task: event})
        case AttemptEnded(task=task, status=status):
            landing = {**part.landing, task: None} if status is Status.landing else part.landing
            return Attempts(running=_without(part.running, task), landing=landing, aborted=_without(part.aborted, task))
        case Landed(task=task) | LandingRefused(task=task):
            return msgspec.structs.replace(part, landing=_without(part.landing, task))
        case TaskReported(task=task):
            return msgspec.structs.replace(part, running=_without(part.running, task))
        case RollbackStarted():
            return Attempts(
                running=_without(part.running, *event.undone),
                landing=_without(part.landing, *event.undone),
                aborted=part.aborted,
            )
        case DeadlockBroken(task=task, others=others) if task in part.running:
            why = f"aborted: it and {', '.join(others)} waited for each other's locks"
            return msgspec.structs.replace(part, aborted={**part.aborted, task: why})
        case _:
            return part


def _without(mapping: Mapping[TaskId, Value], *tasks: TaskId) -> Mapping[TaskId, Value]:
    return {task: value for task, value in mapping.items() if task not in tasks}


class Success(Struct, frozen=True, kw_only=True, tag=True):
    """The agent handed in a result, and what could be checked was checked."""

    result: Result
    commit: str | None = None
    changed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the user should know about the attempt, such as changes that were set aside."""
    measured: Measurement | None = None
    """The test runs that iterdev made."""
    usage: Usage = Usage()


class AttemptReport(Struct, frozen=True, kw_only=True):
    """What an executor reports when an attempt has ended."""

    task: TaskId
    number: int
    requests: int
    outcome: Success | Failed | Limited | Interrupted | Unmet
    checked: tuple[PackageCheck, ...] = ()
    denied: tuple[str, ...] = ()
