"""Writing to a session while other processes write to it too."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.store.conftest import BEGIN, started

from iterdev.core.errors import UserError
from iterdev.core.session.events import Event, Warned
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.store.journal import NAME, Journal
from iterdev.store.session_log import SessionLog

SESSION = SessionId("ids-demo-20260225")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / NAME)
    journal.append(SESSION, [started(SESSION)], at=BEGIN, after=0)
    yield journal
    journal.close()


def log(journal: Journal) -> SessionLog:
    return SessionLog(journal, SESSION, now=lambda: BEGIN)


def test_a_rule_is_asked_again_when_another_process_wrote_in_between(journal: Journal) -> None:
    mine, other = log(journal), log(journal)
    asked: list[int] = []

    def rule(state: State, _: float) -> Sequence[Event]:
        asked.append(len(state.warnings))
        if len(asked) == 1:
            other.record(Warned("in between"))
        return [Warned(f"after {len(state.warnings)}")]

    recorded = mine.transact(rule)

    assert asked == [0, 1]
    assert recorded == [Warned("after 1")]
    assert mine.state.warnings == ("in between", "after 1")


def test_a_rule_sees_what_others_wrote_before(journal: Journal) -> None:
    mine, other = log(journal), log(journal)
    other.record(Warned("before"))

    mine.transact(lambda state, _: [Warned(f"after {state.warnings[-1]}")])

    assert mine.state.warnings == ("before", "after before")


def test_a_rule_that_says_nothing_writes_nothing(journal: Journal) -> None:
    mine = log(journal)

    assert mine.transact(lambda _state, _at: ()) == ()
    assert mine.state.seq == journal.newest(SESSION)


def test_a_rule_that_refuses_writes_nothing(journal: Journal) -> None:
    mine = log(journal)

    def rule(_state: State, _at: float) -> Sequence[Event]:
        raise UserError("no")

    with pytest.raises(UserError):
        mine.transact(rule)

    assert journal.newest(SESSION) == mine.state.seq


def test_facts_are_recorded_behind_what_others_wrote(journal: Journal) -> None:
    mine, other = log(journal), log(journal)
    other.record(Warned("other"))

    mine.record(Warned("one"), Warned("two"))

    assert mine.state.warnings == ("other", "one", "two")
    assert mine.state == log(journal).state
