"""How planning grows with the number of tasks."""

from functools import cache
from pathlib import Path

import sessions
from growth import grown
from iterdev.core.session.fold import replay
from iterdev.core.session.tasks import Fault, checked
from iterdev.store.session_folder import tasks_csv
from iterdev.teams.development.team import DEVELOPMENT
from measure import Effort, Section, timed

MEASURED = """\
Planning is `tasks.checked` on Task values: every rule of the table is checked and every wave computed. Reading is \
`tasks_csv.parse` on the CSV text of the same table, and contains a planning. In a wide table all work waits for one \
design, and a test run and a review wait for each piece of work; in a deep one each task waits for the one before it. \
The slower shape counts."""
WHY = """\
checking the rows takes more than half of the time, computing the waves most of the rest; what does not fit into the \
caches of the processor takes longer"""


def measure(effort: Effort, _: Path) -> Section:
    planning = grown(effort, "planning", _plan)
    reading = grown(effort, "reading", _read)
    return Section(
        title="Planning",
        measured=MEASURED,
        repetitions=f"{effort.repetitions}, the median",
        header=("tasks", "shape", "planning", "per task", "reading the table", "per task"),
        rows=tuple(
            (f"{size:,}", shape, *planning.cells(size, shape), *reading.cells(size, shape))
            for size, shape in planning.seconds
        ),
        aims=planning.aims(effort.judged, 0.05, WHY),
    )


def _plan(size: int, shape: str) -> float:
    tasks = sessions.SHAPES[shape](size)

    def work() -> None:
        if isinstance(fault := checked(tasks), Fault):
            raise SystemExit(f"the table is wrong: {fault}")

    return timed(work)


def _read(size: int, shape: str) -> float:
    text = _text(size, shape)
    return timed(lambda: tasks_csv.parse(text, DEVELOPMENT))


@cache
def _text(size: int, shape: str) -> str:
    state = replay(sessions.entries(sessions.begun(sessions.SHAPES[shape](size))), DEVELOPMENT)
    if state is None:
        raise SystemExit("the session is empty")
    return tasks_csv.table(state, DEVELOPMENT)
