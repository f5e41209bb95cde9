"""The task table as a plan: what a task is, how waves are computed, and what makes a table invalid."""

import re
from collections.abc import KeysView, Mapping, Sequence
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.session import graph
from iterdev.core.types import Mode, Role, TaskFields, TaskId, TaskKind

NAME = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
"""An id becomes part of git refs and of file names."""
ID_LIMIT = 120
"""Characters of an id; a file name may have 255 with all that is put around it."""


class Task(Struct, frozen=True, kw_only=True, gc=False):
    id: TaskId
    title: str
    description: str
    role: Role
    fields: TaskFields
    """What the session's team adds."""
    kind: TaskKind = TaskKind.work
    deps: tuple[TaskId, ...] = ()
    context_from: tuple[TaskId, ...] = ()
    mode: Mode = Mode.csv_wave
    wave: int = 0
    agent: str = ""
    """The agent that the plan names for it; that of its role if it is empty."""


class Fault(Struct, frozen=True):
    """What is wrong with one row, counted from 0."""

    row: int
    message: str


def redirected(task: Task, old: TaskId, new: TaskId) -> Task:
    """The task, depending on another task than before."""
    return replace(task, deps=tuple(new if dep == old else dep for dep in task.deps))


def joining(rows: Sequence[Task], known: Mapping[TaskId, Task]) -> tuple[Task, ...]:
    """Rows with their waves, each after those it depends on, that join a table whose own waves are known.

    Rows that follow each other and share one tuple of dependencies cost no more than one of them.
    """
    waves = {task: known[task].wave for task in known}
    placed: list[Task] = []
    for _, group in groupby(rows, key=lambda row: id(row.deps)):
        alike = tuple(group)
        wave = 1 + max((waves[dep] for dep in alike[0].deps), default=0)
        waves.update((row.id, wave) for row in alike)
        placed += [replace(row, wave=wave) for row in alike]
    return tuple(placed)


def checked(tasks: Sequence[Task]) -> tuple[Task, ...] | Fault:
    """The tasks with their wave numbers, one plus the highest among their dependencies, or the first wrong row.

    A row is wrong if it breaks a rule of the table; cycles come last.
    """
    dependencies = {task.id: task.deps for task in tasks}
    if fault := _wrong_row(tasks, dependencies.keys()):
        return fault
    try:
        waves = graph.depths(dependencies)
    except graph.CycleError as error:
        first = next(number for number, task in enumerate(tasks) if task.id in error.cycle)
        return Fault(first, f"the tasks depend on each other in a cycle: {error}")
    return _context_fault(tasks, waves) or tuple([replace(task, wave=waves[task.id]) for task in tasks])


def _wrong_row(tasks: Sequence[Task], known: KeysView[TaskId]) -> Fault | None:
    repeated = _repeated_row(tasks) if len(known) < len(tasks) else None
    for number, task in enumerate(tasks):
        if number == repeated:
            return Fault(number, f'the id "{task.id}" is used twice')
        if message := _wrong(task, known):
            return Fault(number, message)
    return None


def _repeated_row(tasks: Sequence[Task]) -> int:
    above: set[TaskId] = set()
    for task in tasks:
        if task.id in above:
            break
        above.add(task.id)
    return len(above)


def _wrong(task: Task, known: KeysView[TaskId]) -> str:
    if not task.id:
        return "the id is empty"
    if not NAME.fullmatch(task.id) or ".." in task.id or task.id.endswith((".", ".lock")):
        return f'the id "{task.id}" cannot name a branch and a file: use letters, digits and dashes'
    if len(task.id) > ID_LIMIT:
        return f'the id "{task.id}" is longer than {ID_LIMIT} characters'
    if not task.description.strip():
        return f'the description of "{task.id}" is empty'
    if task.id in task.deps:
        return f'"{task.id}" depends on itself'
    if len(known & task.deps) < len(task.deps):
        return f'"{task.id}" depends on {_odd_one(task.deps, known)}'
    if len(known & task.context_from) < len(task.context_from):
        return f'"{task.id}" takes context from {_odd_one(task.context_from, known)}'
    return ""


def _odd_one(others: Sequence[TaskId], known: KeysView[TaskId]) -> str:
    """What is wrong with ids that are not all different and in the table."""
    if len(set(others)) < len(others):
        return "the same task twice"
    unknown = next(other for other in others if other not in known)
    return f'"{unknown}", which is not in the table'


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
