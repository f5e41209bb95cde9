"""What all sessions of a repository spent since a moment."""

from pathlib import Path

import msgspec
from tests.store.conftest import entries, started

from iterdev.core.results import Usage
from iterdev.core.session import events
from iterdev.core.types import SessionId, Status, TaskId
from iterdev.store.daily_spending import DailySpending
from iterdev.store.journal import Journal

DEV = TaskId("DEV-001")


class Ledger:
    """A journal of several sessions in which attempts cost money."""

    def __init__(self, path: Path) -> None:
        self.journal = Journal(path)

    def spend(self, name: str, at: float, dollars: float) -> None:
        session = SessionId(name)
        newest = self.journal.newest(session)
        if not newest:
            begun = started()
            facts = msgspec.structs.replace(begun.session, id=session)
            first = entries([events.SessionStarted(facts, begun.policy)], at=at)
            self.journal.append(session, first, after=0)
            newest = 1
        outcome = events.Interrupted(usage=Usage(cost_usd=dollars))
        ended = events.AttemptEnded(
            task=DEV, number=newest, agent="mine", requests=1, outcome=outcome, status=Status.pending
        )
        attempt = [events.AttemptStarted(DEV, newest, "mine", "b"), ended]
        self.journal.append(session, entries(attempt, at=at, after=newest), after=newest)


def test_all_sessions_count_and_only_since_the_moment(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "iterdev.db")
    for name, at, dollars in (("one", 10, 1), ("one", 20, 2), ("two", 30, 4), ("old", 5, 8)):
        ledger.spend(name, at, dollars)

    assert DailySpending(ledger.journal).spent_since(20) == Usage(cost_usd=6)
    assert DailySpending(ledger.journal).spent_since(0) == Usage(cost_usd=15)
    ledger.journal.close()


def test_what_comes_later_is_added_once_and_an_earlier_day_falls_out(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "iterdev.db")
    spending = DailySpending(ledger.journal)
    ledger.spend("one", 10, 1)
    told = [spending.spent_since(10).cost_usd, spending.spent_since(10).cost_usd]
    ledger.spend("one", 20, 2)
    ledger.spend("two", 20, 4)
    told += [spending.spent_since(10).cost_usd, spending.spent_since(20).cost_usd, spending.spent_since(30).cost_usd]

    assert told == [1, 1, 7, 6, 0]
    ledger.journal.close()
