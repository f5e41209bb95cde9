"""How fast a transition becomes durable, beside what SQLite itself takes for the same rows."""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path

from msgspec import Struct

import sessions
from iterdev.core.session.events import Event
from iterdev.store import session_log
from iterdev.store.journal import EventCodec, Journal
from iterdev.store.session_log import SessionLog
from measure import Aim, Effort, Section, timed

BARE, JOURNAL, LOG = "bare `sqlite3` loop", "`Journal.append`", "`SessionLog.record`, {size:,} tasks"
MEASURED = """\
{transitions:,} events (AttemptStarted, AttemptEnded, Landed in turn), each in a transaction of its own that is on the \
disk when the call returns: by a bare `sqlite3` loop (same table, WAL, `synchronous=FULL`, BEGIN IMMEDIATE, one INSERT \
of the same bytes, COMMIT); by `Journal.append`; and by `SessionLog.record`, a whole transition, which also folds the \
event into the state of a session of that many tasks."""
WHY = """\
an append also asks for the newest entry, so that nobody writes over what he has not seen, and keeps the list of open \
attempts; the fold copies each map of the state that an event changes, and so costs more the more tasks there are"""


class Bench(Struct, frozen=True, kw_only=True):
    root: Path
    numbers: "count[int]"
    events: Sequence[Event]

    def file(self) -> Path:
        return self.root / f"journal-{next(self.numbers)}.db"

    def bare(self) -> float:
        path = self.file()
        Journal(path).close()
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA synchronous = FULL")
        bodies = list(map(EventCodec().encode, self.events))

        def write() -> None:
            for seq, body in enumerate(bodies, 1):
                db.execute("BEGIN IMMEDIATE")
                db.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (sessions.NAME, seq, 1.0, body))
                db.execute("COMMIT")

        seconds = timed(write)
        db.close()
        return seconds

    def journal(self) -> float:
        journal = Journal(self.file())

        def write() -> None:
            for entry in sessions.entries(self.events):
                journal.append(sessions.NAME, [entry], after=entry.seq - 1)

        seconds = timed(write)
        journal.close()
        return seconds

    def log(self, size: int) -> float:
        journal = Journal(self.file())
        session_log.create(journal, sessions.begun(sessions.wide(size)), at=1.0)
        log = SessionLog(journal, sessions.NAME, now=lambda: 1.0)

        def write() -> None:
            for event in self.events:
                log.record(event)

        seconds = timed(write)
        journal.close()
        return seconds


def measure(effort: Effort, root: Path) -> Section:
    tasks = sessions.wide(effort.sizes[0])
    events = list(islice(sessions.done(tasks), effort.transitions))
    bench = Bench(root=root, numbers=count(), events=events)
    contestants: dict[str, Callable[[], float]] = {BARE: bench.bare, JOURNAL: bench.journal}
    for size in sorted({effort.sizes[0], effort.judged}):
        contestants[LOG.format(size=size)] = partial(bench.log, size)
    seconds = effort.stopwatch.medians(effort.repetitions, contestants)
    rates = {name: len(events) / taken for name, taken in seconds.items()}
    return Section(
        title="Durable transitions",
        measured=MEASURED.format(transitions=len(events)),
        repetitions=f"{effort.repetitions}, the median",
        header=("", "per second", "of the bare loop"),
        rows=tuple((name, f"{rate:,.0f}", f"{rate / rates[BARE]:.2f}") for name, rate in rates.items()),
        aims=tuple(_aim(name, rate / rates[BARE]) for name, rate in rates.items() if name != BARE),
    )


def _aim(name: str, share: float) -> Aim:
    claim = f"{name}: at least half the transitions per second of a bare loop"
    return Aim(claim=claim, value=share, limit=0.5, unit="of the bare loop", at_least=True, why=WHY)
