"""The issue tracker's log together with the state that it folds to. Everything that happens is written by `transact`.

The log is in the journal of the main worktree, beside the sessions of that worktree.

A session changes the tracker by being followed. What its events mean for issues, solutions and queues is a rule of its
team, and `SessionFollower.catch_up` applies it: it reads the entries of the session that the tracker has not seen, asks
the team's function for rules for each, and writes what these return together with the number of the session's last
entry, in one transaction. So each entry of a session changes the tracker exactly once: after a crash between the two
logs, following again goes on where the tracker stopped, and following a second time changes nothing. One transaction
for both logs would not do, because a session of a linked worktree is in another file.

A rule that follows a session must not raise: an issue that is gone, or a queue that a person has changed meanwhile, is
nothing that a session can be stopped for. It returns no events then. It decides by the session's entry and state alone
what is wanted, and by the tracker only whether there is anything left to do.
"""

from collections.abc import Callable, Sequence

import msgspec

from iterdev.core.encodable import encodable_document
from iterdev.core.session import fold
from iterdev.core.session.events import Entry, SessionStarted
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.store.journal import Behind, Followed, Journal
from iterdev.teams.contract import SessionRules, Team
from iterdev.tracker import state
from iterdev.tracker.events import TrackerEntry, TrackerEvent
from iterdev.tracker.state import Tracker, TrackerRule


class TrackerLog:
    def __init__(self, journal: Journal, *, now: Callable[[], float]) -> None:
        self._journal = journal
        self.now = now
        self.tracker = state.replay(journal.read_tracker())

    def transact(self, rule: TrackerRule) -> Sequence[TrackerEvent]:
        """Records the events that the rule returns for the newest state, and returns them.

        When another process writes in between, the rule is called again with the newer state.
        """
        self.refresh()
        while events := rule(self.tracker, at := self.now()):
            if self.write(events, at):
                return events
            self.refresh()
        return ()

    def refresh(self) -> bool:
        """Folds what other processes wrote; True if there was anything."""
        news = self._journal.read_tracker(self.tracker.seq)
        self.tracker = state.evolve(self.tracker, news)
        return bool(news)

    def followed(self, session: SessionId) -> int:
        """The entry of a session up to which the tracker knows of it."""
        return self._journal.followed(session)

    def mark_followed(self, session: SessionId, seq: int) -> None:
        self._journal.mark_followed(session, seq)

    def write(self, events: Sequence[TrackerEvent], at: float, followed: Followed | None = None) -> bool:
        """Writes the events after the known ones; False if another process has written first."""
        try:
            return self._appended(events, at, followed)
        except UnicodeEncodeError:
            return self._appended([_encodable(event) for event in events], at, followed)

    def _appended(self, events: Sequence[TrackerEvent], at: float, followed: Followed | None) -> bool:
        entries = _entries(self.tracker, events, at)
        try:
            self._journal.append_tracker(entries, after=self.tracker.seq, followed=followed)
        except Behind:
            return False
        self.tracker = state.evolve(self.tracker, entries)
        return True


def _entries(tracker: Tracker, events: Sequence[TrackerEvent], at: float) -> list[TrackerEntry]:
    return [TrackerEntry(seq, at, event) for seq, event in enumerate(events, tracker.seq + 1)]


def _encodable(event: TrackerEvent) -> TrackerEvent:
    """The event without what JSON in UTF-8 cannot express."""
    return msgspec.convert(encodable_document(msgspec.to_builtins(event)), type(event))


class SessionFollower:
    """Follows one session. It keeps the session's state, so that each entry is folded once."""

    def __init__(self, log: TrackerLog, sessions: Journal, session: SessionId, rules: SessionRules) -> None:
        """`sessions` is the journal that the session is in."""
        self._log, self._sessions, self._session, self._rules = log, sessions, session, rules
        self._state: State | None = None
        """The state after the last entry that the tracker has seen."""

    def catch_up(self) -> bool:
        """Processes what is new in the session; True if that changed the tracker."""
        while True:
            self._log.refresh()
            seen = self._log.followed(self._session)
            known = self._state if self._state and self._state.seq <= seen else None
            entries = self._sessions.read(self._session, known.seq if known else 0)
            new = [entry for entry in entries if entry.seq > seen]
            if not new:
                if entries and entries[-1].seq < seen:
                    # The session was rebuilt from its folder, and has fewer entries than before.
                    self._log.mark_followed(self._session, entries[-1].seq)
                return False
            before = self._folded(known, [entry for entry in entries if entry.seq <= seen])
            at = self._log.now()
            after, events = self._consequences(before, new, at)
            if self._log.write(events, at, Followed(self._session, seen, new[-1].seq)):
                self._state = after
                return bool(events)

    def _folded(self, known: State | None, entries: Sequence[Entry]) -> State | None:
        if known is None:
            return fold.replay(entries, self._team(entries[0])) if entries else None
        return fold.evolve(known, entries, self._sessions.teams[known.session.team])

    def _consequences(
        self, before: State | None, entries: Sequence[Entry], at: float
    ) -> tuple[State, list[TrackerEvent]]:
        first = before or fold.replay(entries[:1], self._team(entries[0]))
        folding, tracker = fold.Fold(first, self._sessions.teams[first.session.team]), self._log.tracker
        events: list[TrackerEvent] = []
        for entry in entries:
            if entry.seq > first.seq:
                folding.apply(entry)
            for rule in self._rules(folding.state(), entry):
                new = rule(tracker, at)
                tracker = state.evolve(tracker, _entries(tracker, new, at))
                events += new
        return folding.state(), events

    def _team(self, entry: Entry) -> Team:
        if not isinstance(entry.event, SessionStarted):
            raise TypeError(f"a journal begins with SessionStarted, not {type(entry.event).__name__}")
        return self._sessions.teams[entry.event.session.team]
