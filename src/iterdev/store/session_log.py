"""One session's journal together with the state it folds to. Everything that happens is written by `transact`."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from iterdev.core.errors import HostError, UserError
from iterdev.core.rules.record import record
from iterdev.core.session.events import Entry, Event, SessionStarted
from iterdev.core.session.fold import evolve, replay
from iterdev.core.session.state import State
from iterdev.core.session.summary import SessionSummary, summarize
from iterdev.core.types import SessionId
from iterdev.store import snapshots
from iterdev.store.journal import Behind, Journal
from iterdev.teams.contract import Team

CONTRADICTIONS = (LookupError, TypeError, ValueError)
"""What folding raises for an event about something that is not there."""

Rule = Callable[[State, float], Sequence[Event]]
"""Returns the events that follow from the state and the time. It may be called several times."""


def read_state(journal: Journal, session: SessionId, known: State | None = None) -> State:
    """The state of a session; raises `UserError` if there is none of that name.

    If its state at an earlier time is known, only what is new is folded.
    """
    if known and known.session.id == session:
        return _evolved(known, journal.read(session, known.seq), journal.teams[known.session.team])
    if snapshot := snapshots.load(journal, session):
        with suppress(Unfoldable):
            state = read_state(journal, session, snapshot)
            snapshots.save(journal, state, known=snapshot.seq)
            return state
    entries = journal.read(session)
    if not entries:
        raise UserError(f'There is no session "{session}"', hint="iterdev sessions")
    state = _replay(journal, entries)
    snapshots.save(journal, state, known=0)
    return state


def create(journal: Journal, events: Sequence[Event], *, at: float) -> State:
    """Writes the first events of a session."""
    try:
        return _created(journal, events, at)
    except UnicodeEncodeError:
        return _created(journal, [journal.codec.encodable(event) for event in events], at)


def _created(journal: Journal, events: Sequence[Event], at: float) -> State:
    first, *others = map(journal.clean, events)
    started = Entry(1, at, first)
    begun = _replay(journal, [started])
    entries, state = record(begun, journal.teams[begun.session.team], others, at)
    journal.append(
        state.session.id, [started, *entries], after=0, summary=_summary(state, journal.teams[state.session.team])
    )
    return state


def _replay(journal: Journal, entries: Sequence[Entry]) -> State:
    first, started = entries[0], entries[0].event
    if not isinstance(started, SessionStarted) or started.session.team not in journal.teams:
        raise Unfoldable(f"its first entry does not begin a session that is known here: {first.event}")
    team = journal.teams[started.session.team]
    return _evolved(replay(entries[:1], team), entries[1:], team)


class Unfoldable(HostError):
    """The entries of a session can be read, and contradict each other: a byte has changed, or iterdev is wrong.

    Other than damage that SQLite finds, this is never repaired by itself.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The journal of the session cannot be used: {problem}", hint="run `iterdev doctor --fix` to rebuild it"
        )


def _evolved(state: State, entries: Sequence[Entry], team: Team) -> State:
    try:
        return evolve(state, entries, team)
    except CONTRADICTIONS:
        for entry in entries:
            try:
                state = evolve(state, [entry], team)
            except CONTRADICTIONS as error:
                what = f"entry {entry.seq}, {type(entry.event).__name__}, does not fit those before it"
                raise Unfoldable(f"{what} ({type(error).__name__}: {error})") from error
        raise


def _summary(state: State, team: Team) -> SessionSummary:
    # A view takes time, and what a team says of the result matters only when there is one.
    return summarize(state, team.view(state).shortcomings if state.lifecycle.is_finished else ())


class SessionLog:
    def __init__(
        self, journal: Journal, session: SessionId, *, now: Callable[[], float], known: State | None = None
    ) -> None:
        self._journal = journal
        self.now = now
        self.session = session
        self.state: State = read_state(journal, session, known)
        self.team = journal.teams[self.state.session.team]
        self._summary: SessionSummary | None = None
        self._saved = self.state.seq
        """The entry of the last snapshot, or the one before which there are few without."""

    def transact(self, rule: Rule) -> Sequence[Event]:
        """Records the events that the rule returns for the newest state, with all that follows, and returns them.

        When another process writes in between, the rule is called again with the newer state.
        """
        self.refresh()
        while events := rule(self.state, at := self.now()):
            if self._written(events, at):
                return events
            self.refresh()
        return ()

    def record(self, *events: Event) -> None:
        """Records facts, which do not depend on the state; so it is not read before, which saves a query."""
        while events and not self._written(events, self.now()):
            self.refresh()

    def _written(self, events: Sequence[Event], at: float) -> bool:
        """Writes the events with all that follows from them; False if another process has written first."""
        try:
            return self._appended(events, at)
        except UnicodeEncodeError:
            return self._appended([self._journal.codec.encodable(event) for event in events], at)

    def _appended(self, events: Sequence[Event], at: float) -> bool:
        entries, after = record(self.state, self.team, [self._journal.clean(event) for event in events], at)
        # The journal counts the open attempts itself, because a summary that changes with each would cost an update.
        summary = replace(_summary(after, self.team), attempts=0)
        changed = summary if summary != self._summary else None
        try:
            self._journal.append(self.session, entries, after=self.state.seq, summary=changed)
        except Behind:
            return False
        self.state, self._summary = after, summary
        return True

    def refresh(self) -> bool:
        """Folds what other processes wrote; True if there was anything."""
        news = self._journal.read(self.session, self.state.seq)
        if news:
            self.state, self._summary = _evolved(self.state, news, self.team), None
        return bool(news)

    def save_snapshot(self) -> None:
        """Saves a snapshot if much was written since the last one, so that the next process has little to fold."""
        self._saved = snapshots.save(self._journal, self.state, known=self._saved)

    def has_news(self) -> bool:
        return self._journal.newest(self.session) > self.state.seq
