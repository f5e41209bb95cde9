"""One session's journal together with the state it folds to. Everything that happens is written by `transact`."""

from collections.abc import Callable, Sequence

from iterdev.core.errors import UserError
from iterdev.core.session.events import Event
from iterdev.core.session.fold import evolve, replay
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.store.journal import Behind, Journal

Rule = Callable[[State, float], Sequence[Event]]
"""Looks at the state and the time, and says what happens. It may be called several times."""


class SessionLog:
    def __init__(self, journal: Journal, session: SessionId, *, now: Callable[[], float]) -> None:
        self._journal = journal
        self.now = now
        self.session = session
        state = replay(journal.read(session))
        if state is None:
            raise UserError(f'There is no session "{session}"', hint="iterdev sessions")
        self.state: State = state

    def transact(self, rule: Rule) -> Sequence[Event]:
        """Records what the rule makes of the newest state, and returns it.

        When another process writes in between, the rule is called again with the state that this led to.
        """
        while True:
            self.refresh()
            at = self.now()
            events = rule(self.state, at)
            if not events:
                return ()
            try:
                entries = self._journal.append(self.session, events, at=at, after=self.state.seq)
            except Behind:
                continue
            self.state = evolve(self.state, entries)
            return events

    def record(self, *events: Event) -> None:
        """Records facts, which do not depend on the state."""
        self.transact(lambda _state, _at: events)

    def refresh(self) -> bool:
        """Folds what other processes wrote; True if there was something."""
        news = self._journal.read(self.session, self.state.seq)
        self.state = evolve(self.state, news)
        return bool(news)

    def has_news(self) -> bool:
        return self._journal.has_news(self.session, self.state.seq)
