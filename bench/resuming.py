"""How resuming grows with the number of tasks."""

from functools import partial
from itertools import count
from pathlib import Path

import sessions
from growth import grown
from iterdev.core.rules.decide import decide
from iterdev.store.journal import Journal
from iterdev.store.session_log import read_state
from iterdev.teams.development.team import DEVELOPMENT
from measure import Effort, Section, timed

MEASURED = """\
The journal of a session of which the first half of the tasks is completed (AttemptStarted, AttemptEnded, Announced \
and Landed each, so 2 entries per task) is opened, read and folded, and what to do next is decided. The slower shape \
counts."""
WHY = "folding the entries takes more than two thirds of the time, reading and decoding them most of the rest"


def measure(effort: Effort, root: Path) -> Section:
    resuming = grown(effort, "resuming", partial(_resume, root, count()))
    return Section(
        title="Resuming",
        measured=MEASURED,
        header=("tasks", "shape", "resuming", "per task"),
        rows=tuple((f"{size:,}", shape, *resuming.cells(size, shape)) for size, shape in resuming.seconds),
        aims=resuming.aims(effort.judged, 0.2, WHY),
    )


def _resume(root: Path, numbers: "count[int]", size: int, shape: str) -> float:
    path = root / f"resume-{next(numbers)}.db"
    tasks = sessions.SHAPES[shape](size)
    journal = Journal(path)
    written = sessions.entries([*sessions.begun(tasks), *sessions.journalled(tasks[: size // 2])])
    journal.append(sessions.NAME, written, after=0)
    journal.close()
    return timed(partial(_take_up, path))


def _take_up(path: Path) -> None:
    journal = Journal(path)
    state = read_state(journal, sessions.NAME)
    journal.close()
    if not decide(state, DEVELOPMENT, 2.0):
        raise SystemExit("the resumed session has nothing to do")
