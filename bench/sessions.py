"""Sessions of any size, in two shapes: wide (all work waits for one design) and deep (each task waits for the last)."""

from collections.abc import Iterator, Sequence
from itertools import chain, count, islice

from iterdev.core import ids
from iterdev.core.session import events
from iterdev.core.session.tasks import Task, with_waves
from iterdev.core.types import Engine, Pipeline, Role, SessionId, TaskId, Team
from iterdev.teams.development.requirement_analysis import analyse

NAME = SessionId("bench")
BASE, WORK, TIP = ("0" * 40, "1" * 40, "2" * 40)


def wide(size: int) -> list[Task]:
    lives = chain.from_iterable(map(_life, count(1)))
    return [_task("DESIGN-001"), *islice(lives, size - 1)]


def deep(size: int) -> list[Task]:
    return [_task("DEV-000"), *(_task(f"DEV-{number:03}", f"DEV-{number - 1:03}") for number in range(1, size))]


SHAPES = {"wide": wide, "deep": deep}


def _life(number: int) -> Iterator[Task]:
    yield _task(f"DEV-{number:03}", "DESIGN-001")
    yield _task(f"VERIFY-{number:03}", f"DEV-{number:03}")
    yield _task(f"REVIEW-{number:03}", f"DEV-{number:03}")


def _task(name: str, *deps: str) -> Task:
    above = tuple(map(TaskId, deps))
    return Task(
        id=TaskId(name),
        title=f"Do {name}",
        description=f"PURPOSE: do what {name} asks for",
        role=ids.role_of(name) or Role.developer,
        pipeline=Pipeline.sprint,
        deps=above,
        context_from=above,
    )


def begun(tasks: Sequence[Task]) -> list[events.Event]:
    """The first events of a session that is to do these tasks."""
    session = events.Session(
        id=NAME,
        team=Team.iterdev,
        engine=Engine.beat,
        requirement="Measure it",
        folder=ids.folder(Engine.beat, NAME),
        base=BASE,
        branch="main",
        analysis=analyse("Measure it", None),
        by_hand=True,
    )
    planned = events.TasksAdded(with_waves(tasks))
    return [events.SessionStarted(session, events.Policy(auto=True)), planned, events.EngineStarted(1, BASE)]


def done(tasks: Sequence[Task]) -> Iterator[events.Event]:
    """What the journal says of tasks that were done one after another."""
    for task in tasks:
        yield events.AttemptStarted(task.id, 1, "bench", BASE)
        yield events.AttemptEnded(task.id, 1, 1, events.Done(findings="did it", commit=WORK, changed=("a.txt",)))
        yield events.Landed(task.id, TIP)
