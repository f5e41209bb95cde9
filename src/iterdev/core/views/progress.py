"""What changed in a session from one state to the next, as far as it is worth a line."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from iterdev.core.session.state import State
from iterdev.core.types import Status
from iterdev.core.views.pauses import PauseView, pauses
from iterdev.core.views.tasks import TaskView, task_view
from iterdev.core.views.team import SprintView, sprint_goals, sprint_view


class EarlierTasks(Struct, frozen=True):
    """Tasks that were final before the first state that is looked at, by status."""

    counts: Mapping[Status, int]


class SprintChange(Struct, frozen=True):
    sprint: SprintView


class WaveChange(Struct, frozen=True):
    number: int


class TaskChange(Struct, frozen=True):
    task: TaskView


class SprintsPlanned(Struct, frozen=True):
    goals: tuple[str, ...]


class RoundChange(Struct, frozen=True, kw_only=True):
    number: int
    limit: int


class NewWarning(Struct, frozen=True):
    text: str


class NewPause(Struct, frozen=True):
    pause: PauseView


ProgressChange: TypeAlias = (
    EarlierTasks | SprintChange | WaveChange | TaskChange | SprintsPlanned | RoundChange | NewWarning | NewPause
)


def changes(before: State | None, after: State) -> Iterator[ProgressChange]:
    """What happened between two states; without an earlier one, everything that is not over yet."""
    if before is None:
        counts = Counter(progress.status for progress in after.progress.values() if progress.status.is_final)
        if counts:
            yield EarlierTasks(counts)
    yield from _stages(before, after)
    yield from _tasks(before, after)
    yield from _consequences(before, after)
    known = {pause.provider: pause.until for pause in pauses(before)} if before else {}
    yield from (NewPause(pause) for pause in pauses(after) if known.get(pause.provider) != pause.until)


def _stages(before: State | None, after: State) -> Iterator[ProgressChange]:
    if after.sprint != (before.sprint if before else 1):
        yield SprintChange(sprint_view(after))
    if after.wave and after.wave != (before.wave if before else 0):
        yield WaveChange(after.wave)


def _tasks(before: State | None, after: State) -> Iterator[ProgressChange]:
    # Progress is replaced when it changes, so most tasks of a long table are passed over by comparing identities.
    final = (item for item in after.progress.items() if item[1].status.is_final)
    known = before.progress if before else dict(final)
    for name, progress in after.progress.items():
        old = known.get(name)
        if old is not progress and progress.status is not (old.status if old else Status.pending):
            yield TaskChange(task_view(after, name))


def _consequences(before: State | None, after: State) -> Iterator[ProgressChange]:
    """What follows from a design, a verdict, or something odd."""
    goals = sprint_goals(after)
    if len(goals) > 1 and goals != (sprint_goals(before) if before else ()):
        yield SprintsPlanned(goals)
    if sum(after.rounds.values()) > (sum(before.rounds.values()) if before else 0):
        yield RoundChange(number=after.round, limit=after.policy.rounds)
    yield from map(NewWarning, after.warnings[len(before.warnings) if before else 0 :])
