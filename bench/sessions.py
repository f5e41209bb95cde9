"""Sessions of any size, in two shapes: wide (all work waits for one design) and deep (each task waits for the last)."""

from collections.abc import Iterator, Sequence
from itertools import chain, count, islice

from iterdev.core import ids
from iterdev.core.collaboration.messages import COORDINATOR, Announced
from iterdev.core.policy import Policy
from iterdev.core.session import events
from iterdev.core.session.tasks import Task, joining
from iterdev.core.types import Engine, SessionId, Status, TaskId
from iterdev.teams.development.events import TeamStarted
from iterdev.teams.development.requirement_analysis import analyse
from iterdev.teams.development.roles import Fields, Pipeline, Role
from iterdev.teams.development.team import DEVELOPMENT

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
        role=DEVELOPMENT.role_of(name) or Role.developer,
        fields=Fields(pipeline=Pipeline.sprint),
        deps=above,
        context_from=above,
    )


def begun(tasks: Sequence[Task]) -> list[events.Event]:
    """The first events of a session that is to do these tasks."""
    session = events.Session(
        id=NAME,
        team=DEVELOPMENT.name,
        engine=Engine.beat,
        requirement="Measure it",
        folder=ids.folder(Engine.beat, NAME),
        base=BASE,
        branch="main",
        by_hand=True,
    )
    return [
        events.SessionStarted(session, Policy(auto=True)),
        TeamStarted(analysis=analyse("Measure it")),
        events.TasksAdded(joining(tasks, {})),
        events.EngineStarted(1, BASE),
    ]


def entries(written: Sequence[events.Event]) -> list[events.Entry]:
    return [events.Entry(seq, 1.0, event) for seq, event in enumerate(written, 1)]


def done(tasks: Sequence[Task]) -> Iterator[events.Event]:
    """What happened to tasks that were done one after another."""
    for task in tasks:
        yield events.AttemptStarted(task.id, 1, "bench", BASE)
        yield events.AttemptEnded(
            task=task.id,
            number=1,
            agent="bench",
            requests=1,
            outcome=events.Done(findings="did it", commit=WORK, changed=("a.txt",)),
            status=Status.landing,
        )
        yield events.Landed(task=task.id, tip=TIP, changed=("a.txt",), status=Status.completed)


def journalled(tasks: Sequence[Task]) -> Iterator[events.Event]:
    """The same as a journal has it: the end of each attempt is announced."""
    numbers = count(1)
    for event in done(tasks):
        yield event
        if isinstance(event, events.AttemptEnded):
            text = f"[developer] {event.task} is done"
            yield Announced(sender="developer", to=COORDINATOR, kind="dev_complete", summary=text, number=next(numbers))
