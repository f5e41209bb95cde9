"""The task table: what a task is, how its waves are computed, and what makes a table wrong."""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from iterdev.core import graph
from iterdev.core.errors import UserError
from iterdev.core.words import Mode, Pipeline, Role, TaskId

NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
"""An id becomes part of git refs and of file names."""


class Task(Struct, frozen=True, kw_only=True):
    """One row of the plan: what is to be done, by whom, after what."""

    id: TaskId
    title: str
    description: str
    role: Role
    pipeline: Pipeline
    sprint: int = 1
    round: int = 0
    """0 for first work, n for the n-th fix round of its sprint."""
    deps: tuple[TaskId, ...] = ()
    context_from: tuple[TaskId, ...] = ()
    mode: Mode = Mode.csv_wave
    wave: int = 0


class Fault(Struct, frozen=True):
    """What is wrong with one row, counted from 0."""

    row: int
    message: str


def with_waves(tasks: Sequence[Task], above: Sequence[Task] = ()) -> tuple[Task, ...]:
    """The tasks with their wave numbers: one plus the highest wave among their dependencies."""
    everything = {task.id: task for task in (*above, *tasks)}
    try:
        depth = graph.depths({task.id: task.deps for task in everything.values()})
    except graph.CycleError as error:
        raise UserError(
            f"The tasks wait for each other in a circle: {error}",
            hint="remove one of these dependencies from the `deps` column",
        ) from error
    return tuple(msgspec.structs.replace(task, wave=depth[task.id]) for task in tasks)


def first_fault(tasks: Sequence[Task]) -> Fault | None:
    """The first row that breaks a rule of the table, in the order of the rows; cycles last."""
    rows: dict[TaskId, int] = {}
    for number, task in enumerate(tasks):
        rows.setdefault(task.id, number)
    for number, task in enumerate(tasks):
        if rows[task.id] != number:
            return Fault(number, f'the id "{task.id}" is used twice')
        if message := _wrong(task, rows.keys()):
            return Fault(number, message)
    try:
        waves = graph.depths({task.id: task.deps for task in tasks})
    except graph.CycleError as error:
        return Fault(min(rows[TaskId(str(node))] for node in error.cycle), f"the tasks wait for each other: {error}")
    return _context_fault(tasks, waves)


def _wrong(task: Task, known: Iterable[TaskId]) -> str:
    if not task.id:
        return "the id is empty"
    if not NAME.fullmatch(task.id) or ".." in task.id or task.id.endswith((".", ".lock")):
        return f'the id "{task.id}" cannot name a branch and a file: use letters, digits and dashes'
    if not task.description.strip():
        return f'the description of "{task.id}" is empty'
    if task.sprint < 1:
        return f'the sprint_num of "{task.id}" is {task.sprint}, and sprints are counted from 1'
    if task.round < 0:
        return f'the gc_round of "{task.id}" is {task.round}, and rounds are counted from 0'
    if task.id in task.deps:
        return f'"{task.id}" depends on itself'
    for name, others in (("depends on", task.deps), ("takes context from", task.context_from)):
        if len(set(others)) < len(others):
            return f'"{task.id}" {name} the same task twice'
        if unknown := [other for other in others if other not in known]:
            return f'"{task.id}" {name} "{unknown[0]}", which is not in the table'
    return ""


def _context_fault(tasks: Sequence[Task], waves: Mapping[TaskId, int]) -> Fault | None:
    for number, task in enumerate(tasks):
        for other in task.context_from:
            if waves[other] >= waves[task.id]:
                return Fault(
                    number,
                    f'"{task.id}" takes context from "{other}", which is in wave {waves[other]} '
                    f"and not before wave {waves[task.id]}",
                )
    return None
