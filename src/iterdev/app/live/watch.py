"""Watches sessions from any process: views as the journal grows, and what agents say. It never writes.

An idle look costs one number from SQLite and one `stat` for each running agent; the journal is read only when another
process has written.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct

from iterdev.app.edits import require_task
from iterdev.app.logs import LogTail
from iterdev.core.collaboration.wisdom import Note
from iterdev.core.session.events import AttemptStarted, Entry
from iterdev.core.session.fold import replay
from iterdev.core.session.state import State
from iterdev.core.session.summary import SessionSummary
from iterdev.core.types import Ending, Phase, SessionId, TaskId
from iterdev.core.views import history
from iterdev.core.views.attention import Need, in_order
from iterdev.core.views.event_lines import EventLine, event_lines
from iterdev.core.views.history import History
from iterdev.core.views.layout import Layout, layout
from iterdev.core.views.pages.collaboration import (
    ConflictView,
    LockView,
    MessagePage,
    conflict_views,
    lock_views,
    message_page,
    notes,
)
from iterdev.core.views.pages.cost import CostView, cost_view
from iterdev.core.views.pages.journal import JournalPage, journal_page
from iterdev.core.views.pages.task_details import TaskDetails, task_details
from iterdev.core.views.pages.task_list import TaskFilter, TaskList, task_list
from iterdev.core.views.report import report
from iterdev.core.views.session import STARTING, SessionLine, SessionView, session_view
from iterdev.core.views.tasks import TaskView, task_view
from iterdev.core.views.team import FindingView, ReviewView, TestRunView
from iterdev.core.views.timeline import Timeline, sections, timeline
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.store.session_folder import discoveries
from iterdev.store.session_folder.discoveries import Line
from iterdev.teams.contract import Team

REPORT = "context.md"
"""The file of the report."""
INTERVAL = 0.1
"""Seconds between two looks."""
ENGINE_INTERVAL = 1.0
"""Seconds between two looks whether a killed engine is gone; one that starts or ends in order writes that it does."""
KEPT = 8
"""How many accepted or archived sessions are kept folded while they are viewed."""


class OutputLine(Struct, frozen=True):
    """What an agent said."""

    task: TaskId
    attempt: int
    text: str


class Changes(Struct, frozen=True, kw_only=True):
    """What happened since the last look."""

    entries: tuple[Entry, ...] = ()
    lines: tuple[EventLine, ...] = ()
    """The lines for notable entries."""
    output: tuple[OutputLine, ...] = ()
    engine_changed: bool = False
    """An engine started, or ended."""


class SessionPicture:
    """A session at one entry of its journal, as views."""

    def __init__(self, repository: Repository, state: State) -> None:
        self._repository, self.state = repository, state
        self.process: int | None = None
        """The process of the engine, if one was alive then."""

    @property
    def _team(self) -> Team:
        return self._repository.team(self.state)

    @property
    def _is_alive(self) -> bool:
        return self.process is not None

    def view(self, *, room: int | None = None) -> SessionView:
        """The session, with as many tasks as there is room for."""
        state, process = self.state, self.process
        return session_view(
            state, self._team, engine_alive=self._is_alive, process=process, room=room, zone=clock.LOCAL
        )

    def tasks(self, wanted: TaskFilter, page: int = 1) -> TaskList:
        """The tasks that fit a filter."""
        return task_list(self.state, self._team, wanted, page, engine_alive=self._is_alive, zone=clock.LOCAL)

    def task(self, task: TaskId) -> TaskView:
        return task_view(self.state, self._team, task, engine_alive=self._is_alive, zone=clock.LOCAL)

    def details(self, task: str) -> TaskDetails:
        """Everything about a task; raises `UserError` if there is none of that name."""
        name = require_task(self.state, task)
        return task_details(self.state, self._team, name, engine_alive=self._is_alive, zone=clock.LOCAL)

    def layout(self, *, everything: bool = False) -> Layout:
        """The picture of the task graph."""
        return layout(self.state, everything=everything)

    def reviews(self) -> tuple[ReviewView, ...]:
        return self._team.reviews(self.state)

    def test_runs(self) -> tuple[TestRunView, ...]:
        return self._team.test_runs(self.state)

    def locks(self) -> tuple[LockView, ...]:
        return lock_views(self.state)

    def conflicts(self) -> tuple[ConflictView, ...]:
        return conflict_views(self.state)

    def messages(self, *, sender: str = "", to: str = "", kind: str = "", page: int = 1) -> MessagePage:
        return message_page(self.state, sender=sender, to=to, kind=kind, page=page)

    def notes(self) -> tuple[Note, ...]:
        """What the session learned, and what it was told by earlier ones."""
        return notes(self.state)

    def documents(self) -> Mapping[str, str]:
        """What the session has to read, by the names of its files; made of the journal, so no file is opened."""
        own = self._team.documents(self.state)
        return {REPORT: report(self.state, self._team, clock.LOCAL), **dict(sorted(own.items()))}

    def findings(self) -> tuple[FindingView, ...]:
        """What reviews found."""
        return self._team.findings(self.state)


class SessionWatch(SessionPicture):
    """A session as it is in the journal, read again and again; all views of one read show the same entry."""

    def __init__(
        self, repository: Repository, session: SessionId, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(repository, repository.state(session))
        self.session, self._monotonic = session, monotonic
        self._version: tuple[int, int] | None = None
        self._checked_at = float("-inf")
        self._tails: dict[tuple[TaskId, int], LogTail] = {}
        self._history = History()
        self._lines: list[EventLine] = []

    def look(self) -> Changes | None:
        """What is new, and at the first look everything; None if nothing is."""
        # Read before the journal is, so that what is written meanwhile is found by the next look.
        version, before = self._repository.journal.version(), self._version
        entries, lines = self._read(first=before is None) if version != before else ((), ())
        self._version = version
        engine_changed = self._look_at_engine(at_once=version != before)
        output = tuple(self._output())
        if not (entries or output or engine_changed):
            return None
        return Changes(entries=entries, lines=lines, output=output, engine_changed=engine_changed)

    def history(self) -> History:
        """All attempts up to the last look; what is new is added to what was asked for before."""
        news = self._repository.journal.read(self.session, self._history.seq)
        seen = [entry for entry in news if entry.seq <= self.state.seq]
        self._history = history.evolve(self._history, seen, self._team)
        return self._history

    def as_of(self, seq: int) -> SessionPicture:
        """The session as it was after an entry of its journal; no engine runs in the past."""
        entries = self._repository.journal.read(self.session)[: max(seq, 1)]
        return SessionPicture(self._repository, replay(entries, self._team))

    def sections(self) -> tuple[tuple[str, History], ...]:
        """The parts of the history, such as fix rounds, by name."""
        return sections(self.history())

    def timeline(self, shown: History, now: float, *, folds: bool = True) -> Timeline:
        """The attempts of a history on one axis; what runs without a living engine has ended with the last entry."""
        return timeline(shown, now if self._is_alive else self.state.updated_at, folds=folds)

    def cost(self) -> CostView:
        return cost_view(self.state, self.history())

    def discoveries(self) -> list[Line]:
        """What agents and people wrote on the board of the session."""
        return discoveries.read(self._repository.folder(self.state) / discoveries.NAME)

    def attempt_log(self, task: TaskId, number: int) -> LogTail:
        return LogTail(self._repository.folder(self.state) / "logs" / f"{task}-{number}.log")

    def journal(self, *, event: str = "", task: str = "", page: int = 1) -> JournalPage:
        """The entries up to the last look."""
        entries = self._entries()
        return journal_page(entries, self._lines, event=event, task=task, page=page)

    def journal_lines(self) -> str:
        """The entries as lines of JSON."""
        lines = ({"seq": one.seq, "at": one.at, "event": one.event} for one in self._entries())
        return "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines)

    def _entries(self) -> list[Entry]:
        return [one for one in self._repository.journal.read(self.session) if one.seq <= self.state.seq]

    def _read(self, *, first: bool) -> tuple[tuple[Entry, ...], tuple[EventLine, ...]]:
        known, team = None if first else self.state, self._team
        entries = self._repository.journal.read(self.session, known.seq if known else 0)
        self.state, lines = event_lines(known, entries, team, clock.LOCAL)
        self._lines += lines
        started = self.state.attempts.running.values() if first else _started(entries)
        logs = self._repository.folder(self.state) / "logs"
        for one in started:
            self._tails[one.task, one.number] = LogTail(logs / f"{one.task}-{one.number}.log")
        return tuple(entries), tuple(lines)

    def _output(self) -> Iterator[OutputLine]:
        """New lines of the attempts under way; one that has ended is read for the last time."""
        running = {(task, started.number) for task, started in self.state.attempts.running.items()}
        for key, tail in list(self._tails.items()):
            yield from (OutputLine(*key, text) for text in tail.new_lines())
            if key not in running:
                del self._tails[key]

    def _look_at_engine(self, *, at_once: bool) -> bool:
        now = self._monotonic()
        if not at_once and now < self._checked_at + ENGINE_INTERVAL:
            return False
        before, self._checked_at = self.process, now
        self.process = self._repository.engine_process(self.state.session)
        return self.process != before


def _started(entries: Iterable[Entry]) -> list[AttemptStarted]:
    return [entry.event for entry in entries if isinstance(entry.event, AttemptStarted)]


class RepositoryWatch:
    """All sessions of a repository, read again and again; those that are not decided are kept folded.

    One that the caller watches already is not folded twice; the caller looks at it.
    """

    def __init__(self, repository: Repository, watched: SessionWatch | None = None) -> None:
        self._repository, self._watched = repository, watched
        self._version: tuple[int, int] | None = None
        self._undecided: dict[SessionId, SessionWatch] = {watched.session: watched} if watched else {}
        self._decided: dict[SessionId, SessionWatch] = {}
        """Those that were asked for last."""
        self._overviews: dict[SessionId, tuple[SessionSummary, SessionView]] = {}
        self._needs: tuple[Need, ...] | None = None
        self.changes = 0
        """How many looks have found something new, whoever looked."""
        self._summaries: list[SessionSummary] = []

    def look(self) -> bool:
        """Whether something has changed; what an agent says does not count."""
        if not self._repository.has_journal:
            # Opening a journal would create it.
            return False
        version, before = self._repository.journal.version(), self._version
        if version != before:
            self._version, self._summaries = version, self._repository.summaries()
            undecided = (one.id for one in self._summaries if one.phase is not Phase.archived and not one.accepted)
            known = self._undecided
            self._undecided = {one: known.get(one) or SessionWatch(self._repository, one) for one in undecided}
        changes = [one.look() for one in self._undecided.values() if one is not self._watched]
        changed = version != before or any(one and one.engine_changed for one in changes)
        if changed:
            self._needs = None
            self.changes += 1
        return changed

    def sessions(self) -> tuple[SessionLine, ...]:
        """Every session in one line, the newest last."""
        watched = self._undecided
        return tuple(
            SessionLine(one, one.id in watched and watched[one.id].process is not None) for one in self._summaries
        )

    def has_news(self) -> bool:
        """Whether anything was written since the last look, which takes microseconds to find out."""
        return self._repository.has_journal and self._repository.journal.version() != self._version

    def session(self, name: SessionId) -> SessionWatch:
        """A session as it is now; of those that are decided, the ones that were asked for last are kept."""
        self.look()
        if watched := self._undecided.get(name):
            return watched
        watched = self._decided.pop(name, None) or SessionWatch(self._repository, name)
        self._decided[name] = watched
        for oldest in list(self._decided)[:-KEPT]:
            del self._decided[oldest]
        watched.look()
        return watched

    def overview(self, summary: SessionSummary) -> SessionView:
        """A session without its tasks, for a list; one that is decided is folded only once."""
        if watched := self._undecided.get(summary.id):
            return watched.view(room=0)
        known = self._overviews.get(summary.id)
        if known is None or known[0] != summary:
            state = self._repository.state(summary.id)
            view = session_view(state, self._repository.team(state), engine_alive=False, room=0, zone=clock.LOCAL)
            known = self._overviews[summary.id] = summary, view
        return known[1]

    def needs(self) -> tuple[Need, ...]:
        """What needs the user in any session, the most severe first."""
        if self._needs is None:
            found = (need for watched in self._undecided.values() for need in watched.view(room=0).needs)
            self._needs = in_order(found)
        return self._needs


class Watched(Struct, frozen=True, kw_only=True):
    view: SessionView
    changes: Changes


def watch(
    repository: Repository,
    session: SessionId,
    *,
    room: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
    interval: float = INTERVAL,
) -> Iterator[Watched]:
    """The session as it is now, and again whenever something has changed, without end."""
    watched = SessionWatch(repository, session)
    while True:
        if changes := watched.look():
            yield Watched(view=watched.view(room=room), changes=changes)
        sleep(interval)


class Followed(Struct, frozen=True, kw_only=True):
    """How following ended."""

    ending: Ending
    view: SessionView


def follow(
    repository: Repository,
    session: SessionId,
    *,
    until_question: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = clock.now,
) -> Iterator[EventLine | Followed]:
    """The lines of a session from its beginning, then new ones, and last how it ended.

    It ends when the session is over, when no engine runs it any longer, or if wanted when a question is open.
    """
    watched = SessionWatch(repository, session)
    while True:
        if changes := watched.look():
            yield from changes.lines
        if ending := _ending(watched, until_question=until_question, now=now()):
            yield Followed(ending=ending, view=watched.view())
            return
        sleep(INTERVAL)


def _ending(watched: SessionWatch, *, until_question: bool, now: float) -> Ending | None:
    state = watched.state
    if watched.process is None and state.lifecycle.is_finished:
        return Ending.over
    ended = watched.process is None and now > state.updated_at + STARTING
    if state.gates.open and (until_question or ended):
        return Ending.waiting
    return Ending.interrupted if ended else None
