"""The landing queue: work that waits to land, in its order, and what is known of the tests with it.

What lands or is tested next is in `landings`, a module of the rules.
"""

from collections.abc import Mapping
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import without
from iterdev.core.session import events
from iterdev.core.session.landing_events import LandingTakenOut, LandingTestEnded, LandingTestStarted, QueueEvent
from iterdev.core.types import FINAL, Status, TaskId

EVENTS = (
    *get_args(QueueEvent),
    *(events.AttemptEnded, events.UpdateStarted, events.Landed, events.LandingRefused),
    *(events.EngineStarted, events.TasksReset, events.RollbackStarted),
)


class LandingQueue(Struct, frozen=True, kw_only=True):
    arrived: Mapping[TaskId, int] = {}
    """When each task first came into the queue. One that was taken out and comes back keeps its place."""
    arrivals: int = 0
    testing: LandingTestStarted | None = None
    """The test run that is under way."""
    passed: LandingTestEnded | None = None
    """Tasks that land next, one after another: the tests passed with all of them on top of `tip`."""
    failed: LandingTestEnded | None = None
    """The fewest tasks from the head of the queue with which the tests are known to fail on top of `tip`."""
    host_deaths: int = 0
    """How many hosts have died in a row during a test run."""
    taken_out: Mapping[TaskId, int] = {}
    """How often the work of a task was taken out."""


def evolve(part: LandingQueue, event: object, _: float = 0) -> LandingQueue:
    match event:
        case events.AttemptEnded(task=task, status=Status.landing) | events.UpdateStarted(task):
            return _arrived(part, task)
        case events.AttemptEnded(task=task, status=status):
            return _left(part, task) if status in FINAL else part
        case events.Landed(task=task, tip=tip):
            passed, failed = _after_landing(part.passed, task, tip), _after_landing(part.failed, task, tip)
            return replace(_left(part, task), passed=passed, failed=failed)
        case events.LandingRefused(task=task):
            return replace(_left(part, task), passed=None, failed=None)
        case events.EngineStarted():
            return replace(part, testing=None) if part.testing else part
        case events.TasksReset(tasks):
            arrived, taken_out = without(part.arrived, *tasks), without(part.taken_out, *tasks)
            return replace(part, arrived=arrived, taken_out=taken_out)
        case events.RollbackStarted():
            # The work that others failed with may be undone.
            return LandingQueue(arrived=without(part.arrived, *event.undone), arrivals=part.arrivals)
        case _:
            return _tested(part, event)


def _tested(part: LandingQueue, event: object) -> LandingQueue:
    match event:
        case LandingTestStarted():
            return replace(part, testing=event)
        case LandingTestEnded(passed=True):
            return replace(part, testing=None, passed=event, host_deaths=0)
        case LandingTestEnded(passed=False):
            return replace(part, testing=None, failed=event, host_deaths=0)
        case LandingTestEnded(host_died=died):
            return replace(part, testing=None, host_deaths=part.host_deaths + died)
        case LandingTakenOut(task=task, status=status):
            counted = {**part.taken_out, task: part.taken_out.get(task, 0) + 1}
            left = _left(part, task) if status in FINAL else part
            return replace(left, taken_out=counted, passed=None, failed=None)
        case _:
            raise TypeError(event)


def _arrived(part: LandingQueue, task: TaskId) -> LandingQueue:
    if task in part.arrived:
        return part
    return replace(part, arrived={**part.arrived, task: part.arrivals}, arrivals=part.arrivals + 1)


def _left(part: LandingQueue, task: TaskId) -> LandingQueue:
    return replace(part, arrived=without(part.arrived, task)) if task in part.arrived else part


def _after_landing(known: LandingTestEnded | None, task: TaskId, tip: str) -> LandingTestEnded | None:
    """What is known of the others, once the first of the tasks that were tested together is on the branch."""
    if known is None or known.tasks[0] != task or len(known.tasks) == 1:
        return None
    return replace(known, tasks=known.tasks[1:], tip=tip)
