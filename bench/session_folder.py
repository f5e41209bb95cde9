"""What an event costs the session folder, which is written again after it."""

import statistics
from itertools import islice
from pathlib import Path
from time import process_time

import sessions
from iterdev.core.session.events import Event
from iterdev.engine.perform import COALESCE, REST
from iterdev.store.journal import Journal
from iterdev.store.session_folder.projector import Projector
from iterdev.store.session_log import SessionLog
from iterdev.teams.development.team import DEVELOPMENT
from measure import Aim, Effort, ms

SMALL = 100
EVENTS = 9
LIMIT = 10.0
"""How much more an event may cost among 100 times the tasks."""
MEASURED = f"""\
The processor time to write the folder of a wide session of which the first half of the tasks is completed: by an \
engine that has just begun, which makes every file again, and after each of {EVENTS} further events by the same engine \
(the median). An engine waits at least {COALESCE:g} s between two writes, and {REST} times as long as the last one \
took, unless a wave, a question or the end of the session makes it urgent."""
WHY = """\
only the rows of tasks that an event changed are made again, but `tasks.csv` and the JSON files are replaced whole, so \
that they are complete whenever somebody reads them: their bytes are joined, compared by a digest and written, and the \
log of the development and the fields of `meta.json` that list tasks are made again"""


def measured(effort: Effort, root: Path) -> tuple[str, Aim]:
    """The figures as a sentence, and what is to be reached."""
    sizes = sorted({min(SMALL, effort.sizes[0]), effort.sizes[0], effort.judged})
    found = {size: _written(root / f"folder-{size}", size) for size in sizes}
    growth = found[sizes[-1]][1] / found[sizes[0]][1]
    claim = (
        f"the session folder after one more event: at most {LIMIT:g} times as much for {sizes[-1]:,} tasks as for "
        f"{sizes[0]:,}"
    )
    figures = "; ".join(f"{size:,} tasks: {ms(first)}, then {ms(more)}" for size, (first, more) in found.items())
    return f"{MEASURED} {figures}.", Aim(claim=claim, value=growth, limit=LIMIT, unit="times", why=WHY)


def _written(root: Path, size: int) -> tuple[float, float]:
    """Seconds for the first write, and for one after one more event."""
    tasks, journal = sessions.wide(size), Journal(root / "iterdev.db")
    begun = sessions.entries([*sessions.begun(tasks), *sessions.journalled(tasks[: size // 2])])
    journal.append(sessions.NAME, begun, after=0)
    log = SessionLog(journal, sessions.NAME, now=lambda: 2.0)
    projector = Projector(root / "folder", journal, DEVELOPMENT)
    projector.prepare()
    first = _seconds(projector, log)
    further = islice(sessions.journalled(tasks[size // 2 :]), EVENTS)
    more = [_after(event, projector, log) for event in further]
    journal.close()
    return first, statistics.median(more)


def _after(event: Event, projector: Projector, log: SessionLog) -> float:
    log.record(event)
    return _seconds(projector, log)


def _seconds(projector: Projector, log: SessionLog) -> float:
    begin = process_time()
    projector.write(log.state)
    return process_time() - begin
