"""How planning and resuming grow with the number of tasks."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import sessions
from measure import Aim, Effort, Section, medians, ms, timed
from msgspec import Struct

from iterdev.core import plan
from iterdev.core.decide import decide
from iterdev.core.fold import replay
from iterdev.core.plan import Task
from iterdev.core.state import State
from iterdev.store import tables
from iterdev.store.journal import Journal

PLANNING = """\
Planning is `plan.first_fault` and `plan.with_waves` on Task values: every rule of the table is checked, and every wave \
computed. Reading the table is `tables.parse` on its CSV text, which contains a planning. In a wide table all \
work waits for one design, and a test run and a review for each piece of work; in a deep one each task waits for the \
one before it."""
RESUMING = """\
The time to open the journal of a session of which every second task is completed (three events each, 1.5 times as many \
entries as tasks), to read and fold it, and to decide what to do next."""


class Figures(Struct, frozen=True, kw_only=True):
    size: int
    shape: str
    planning: float
    reading: float
    resuming: float


def measure(effort: Effort) -> list[Section]:
    found = [_figures(effort, size, shape) for size in effort.sizes for shape in sessions.SHAPES]
    slowest = {
        name: max((figures for figures in found if figures.size == effort.judged), key=partial(_field, name))
        for name in ("planning", "resuming")
    }
    return [
        Section(
            title="Planning",
            measured=PLANNING,
            header=("tasks", "shape", "planning", "per task", "reading the table"),
            rows=tuple(
                (f"{f.size:,}", f.shape, ms(f.planning), _each(f.planning, f.size), ms(f.reading)) for f in found
            ),
            aims=(_aim("planning", effort, slowest["planning"].planning, 0.05),),
        ),
        Section(
            title="Resuming",
            measured=RESUMING,
            header=("tasks", "shape", "resuming", "per task"),
            rows=tuple((f"{f.size:,}", f.shape, ms(f.resuming), _each(f.resuming, f.size)) for f in found),
            aims=(_aim("resuming a session of", effort, slowest["resuming"].resuming, 0.2),),
        ),
    ]
