"""The task graph as a picture: a column for each wave, and tasks in an order in which few edges cross.

Four barycentre sweeps halve the crossings of a large graph; 1,000 tasks take about 10 ms.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct

from iterdev.core.session.state import State
from iterdev.core.types import Status, TaskId
from iterdev.core.views.tasks import excerpt

SWEEPS = 4
WHOLE, MOST = 60, 300
"""Up to so many tasks all are shown; above that no finished waves; and never more than the second number."""


class Column(Struct, frozen=True, kw_only=True):
    first: int
    last: int
    """One wave, or several of which no task is shown."""
    tasks: tuple[TaskId, ...]
    """From top to bottom."""
    omitted: Mapping[Status, int]
    """How many tasks of these waves are not shown, by status."""


class Layout(Struct, frozen=True, kw_only=True):
    columns: tuple[Column, ...]
    edges: tuple[tuple[TaskId, TaskId], ...]
    """From a task to one that depends on it, where both are shown."""


def layout(state: State, *, everything: bool = False) -> Layout:
    """The tasks that say most, or all of them."""
    plan = state.tasks.plan
    shown = set(plan) if everything else _shown(state)
    waves: dict[int, list[TaskId]] = {}
    for task in state.tasks.order:
        waves.setdefault(plan[task].wave, []).append(task)
    drawn = {wave: [task for task in waves[wave] if task in shown] for wave in sorted(waves)}
    edges = tuple((dep, task) for task in shown for dep in plan[task].deps if dep in shown)
    ordered = _ordered([tasks for tasks in drawn.values() if tasks], edges)
    places = {task: place for column in ordered for place, task in enumerate(column)}
    columns = []
    for folded, group in groupby(drawn, key=lambda wave: not drawn[wave]):
        for run in [list(group)] if folded else ([wave] for wave in group):
            hidden = Counter(state.tasks.status(task) for wave in run for task in waves[wave] if task not in shown)
            tasks = tuple(sorted(drawn[run[0]], key=places.__getitem__))
            columns.append(Column(first=run[0], last=run[-1], tasks=tasks, omitted=hidden))
    return Layout(columns=tuple(columns), edges=tuple(sorted(edges)))


def _shown(state: State) -> set[TaskId]:
    tasks = state.tasks
    if len(tasks.plan) <= WHOLE:
        return set(tasks.plan)
    unfinished = {tasks.plan[task].wave for task in tasks.plan if tasks.status(task) is not Status.completed}
    chosen = {task for task, row in tasks.plan.items() if row.wave in unfinished}
    return chosen if len(chosen) <= MOST else set(excerpt(state, MOST))


def _ordered(columns: list[list[TaskId]], edges: Iterable[tuple[TaskId, TaskId]]) -> list[list[TaskId]]:
    """Each column sorted by the mean place of a task's neighbours, to and fro."""
    before: dict[TaskId, list[TaskId]] = {task: [] for column in columns for task in column}
    after: dict[TaskId, list[TaskId]] = {task: [] for task in before}
    for dep, task in edges:
        before[task].append(dep)
        after[dep].append(task)
    place = {task: (row + 0.5) / len(column) for column in columns for row, task in enumerate(column)}
    for sweep in range(SWEEPS):
        neighbours, order = (after, reversed(columns)) if sweep % 2 else (before, iter(columns))
        for column in order:
            mean = {task: _mean([place[one] for one in neighbours[task]], place[task]) for task in column}
            column.sort(key=mean.__getitem__)
            place.update({task: (row + 0.5) / len(column) for row, task in enumerate(column)})
    return columns


def _mean(places: Sequence[float], own: float) -> float:
    return sum(places) / len(places) if places else own
