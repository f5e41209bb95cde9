"""What all sessions of a repository have spent since a point in time. Every entry of the journal is read once."""

from iterdev.core.results import Usage
from iterdev.core.session.events import AttemptEnded
from iterdev.core.types import SessionId
from iterdev.store.journal import Journal


class DailySpending:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seen: dict[SessionId, int] = {}
        self._spent: list[tuple[float, Usage]] = []

    def spent_since(self, moment: float) -> Usage:
        for session in self._journal.sessions():
            seen, newest = self._seen.get(session, 0), self._journal.newest(session)
            if newest == seen:
                continue
            entries = self._journal.read(session, seen, since=moment)
            ended = ((entry.at, entry.event) for entry in entries)
            self._spent += [(at, event.outcome.usage) for at, event in ended if isinstance(event, AttemptEnded)]
            self._seen[session] = max(newest, entries[-1].seq if entries else 0)
        self._spent = [(at, usage) for at, usage in self._spent if at >= moment]
        return sum((usage for _, usage in self._spent), Usage())
