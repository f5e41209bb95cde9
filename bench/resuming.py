"""How resuming grows with the number of tasks."""

import shutil
from functools import cache, partial
from pathlib import Path

import sessions
from growth import grown
from iterdev.core.rules.decide import decide
from iterdev.store.journal import Journal
from iterdev.store.session_log import read_state
from iterdev.teams.development.team import DEVELOPMENT
from measure import Aim, Effort, Section, timed

MEASURED = """\
The journal of a session of which the first half of the tasks is completed (AttemptStarted, AttemptEnded, Announced \
and Landed each, so 2 entries per task) is opened and read, and what to do next is decided. For the first time, all of \
its entries are folded and a snapshot of the state is saved, if there are many; after that the snapshot is read. The \
slower shape counts."""
WHY = "decoding the tasks of the snapshot takes most of the time"
LARGE = 1.5
"""Seconds for the greatest table."""


def measure(effort: Effort, root: Path) -> Section:
    first = grown(effort, "resuming for the first time", partial(_resume, root, opened=False))
    resuming = grown(effort, "resuming", partial(_resume, root, opened=True))
    greatest = effort.sizes[-1]
    slowest = max(resuming.seconds[greatest, shape] for shape in sessions.SHAPES)
    claim = f"resuming {greatest:,} tasks: at most {LARGE:g} s"
    return Section(
        title="Resuming",
        measured=MEASURED,
        repetitions=f"{effort.repetitions}, the median",
        header=("tasks", "shape", "for the first time", "per task", "with the snapshot", "per task"),
        rows=tuple(
            (f"{size:,}", shape, *first.cells(size, shape), *resuming.cells(size, shape))
            for size, shape in resuming.seconds
        ),
        aims=(
            *resuming.aims(effort.judged, 0.2, WHY),
            Aim(claim=claim, value=slowest, limit=LARGE, unit="s", why=WHY),
        ),
    )


def _resume(root: Path, size: int, shape: str, *, opened: bool) -> float:
    path = root / "resumed.db"
    shutil.copyfile(_journal(root, size, shape, opened=opened), path)
    seconds = timed(partial(_take_up, path))
    path.unlink()
    return seconds


@cache
def _journal(root: Path, size: int, shape: str, *, opened: bool) -> Path:
    """One for all repetitions, each of which gets a copy."""
    path = root / f"{size}-{shape}-{opened}.db"
    if opened:
        shutil.copyfile(_journal(root, size, shape, opened=False), path)
        _take_up(path)
        return path
    tasks = sessions.SHAPES[shape](size)
    journal = Journal(path)
    written = sessions.entries([*sessions.begun(tasks), *sessions.journalled(tasks[: size // 2])])
    journal.append(sessions.NAME, written, after=0)
    journal.close()
    return path


def _take_up(path: Path) -> None:
    journal = Journal(path)
    state = read_state(journal, sessions.NAME)
    journal.close()
    if not decide(state, DEVELOPMENT, 2.0):
        raise SystemExit("the resumed session has nothing to do")
