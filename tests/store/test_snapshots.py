"""Snapshots: what they hold is what folding all entries gives, and one that is wrong is never used."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.simulator import World
from tests.store.conftest import BEGIN, entries, started, task, team_started
from tests.teams.development.sessions import a_beginning, work
from tests.teams.issues.sessions import beginning, facts, random_work

from iterdev.core.collaboration.messages import MessageSent
from iterdev.core.request import Request
from iterdev.core.session.events import Entry, Event, TasksAdded, Warned
from iterdev.core.session.fold import evolve, replay
from iterdev.core.session.state import State
from iterdev.core.session.tasks import joining
from iterdev.core.settings import Settings
from iterdev.core.types import Engine, SessionId
from iterdev.store import snapshots
from iterdev.store.journal import NAME, EventCodec, Journal, Snapshot
from iterdev.store.session_log import SessionLog, create, read_state
from iterdev.teams.contract import Team
from iterdev.teams.development.team import DEVELOPMENT
from iterdev.teams.issues.team import ISSUES

SESSION = SessionId("ids-demo-20260225")
CODEC = EventCodec()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / NAME)
    rows = joining([task("DEV-001"), task("DEV-002", "DEV-001"), task("REVIEW-001", "DEV-002")], {})
    create(journal, [started(SESSION), team_started(), TasksAdded(rows)], at=BEGIN)
    yield journal
    journal.close()


def added(journal: Journal, *events: Event) -> None:
    SessionLog(journal, SESSION, now=lambda: BEGIN).record(*events)


def saved(journal: Journal) -> State:
    """The state of now, of which a snapshot is in the journal."""
    state = folded(journal)
    assert snapshots.save(journal, state, known=0, long=1) == state.seq
    return state


def folded(journal: Journal) -> State:
    return replay(journal.read(SESSION), DEVELOPMENT)


def written_again(entry: Entry) -> Entry:
    """An entry as it is read from a journal."""
    return Entry(entry.seq, entry.at, CODEC.decode(CODEC.encode(entry.event)))


def check(history: Sequence[Entry], place: int, team: Team) -> None:
    history = list(map(written_again, history))
    before = replay(history[:place], team)

    loaded = snapshots.decode(snapshots.encode(before, CODEC), CODEC, team)

    assert loaded == before
    assert list(loaded.tasks.ready) == list(before.tasks.ready)
    assert evolve(loaded, history[place:], team) == replay(history, team)


@settings(max_examples=60, derandomize=True, deadline=None, database=None)
@given(st.integers(1, 20), st.floats(0, 1), st.randoms(use_true_random=True))
def test_a_session_goes_on_from_a_snapshot_as_from_its_beginning(size: int, place: float, chance: Random) -> None:
    world = World(chance, DEVELOPMENT, a_beginning(chance, size), work, edits=2, rollbacks=2, talks=5)
    history = world.live().entries

    check(history, 1 + int(place * (len(history) - 1)), DEVELOPMENT)


@settings(max_examples=30, derandomize=True, deadline=None, database=None)
@given(st.integers(1, 7), st.floats(0, 1), st.randoms(use_true_random=True))
def test_so_does_a_session_of_the_issue_team(size: int, place: float, chance: Random) -> None:
    issues = [facts(number) for number in range(1, size + 1)]
    request = Request(requirement="Resolve them", auto=True, engine=chance.choice(list(Engine)))
    first = beginning(request, issues, "gemini", Settings())
    history = World(chance, ISSUES, first, random_work, rollbacks=2).live().entries

    check(history, 1 + int(place * (len(history) - 1)), ISSUES)


def test_only_what_came_after_the_snapshot_is_read(journal: Journal) -> None:
    added(journal, Warned("before"))
    before = saved(journal)
    added(journal, Warned("after"))
    with sqlite3.connect(journal.path) as database:
        database.execute("UPDATE events SET body = x'00' WHERE seq BETWEEN 2 AND ?", (before.seq - 1,))
    database.close()

    state = read_state(journal, SESSION)

    assert state.seq > before.seq
    assert state.warnings == ("before", "after")


def test_a_session_that_is_short_has_no_snapshot(journal: Journal) -> None:
    read_state(journal, SESSION)

    assert journal.snapshot(SESSION) is None


def test_reading_a_long_session_leaves_a_snapshot_for_the_next_time(journal: Journal) -> None:
    sent = [MessageSent(sender="user", to="all", kind="note", summary=f"{number}") for number in range(snapshots.LONG)]
    added(journal, *sent)

    state = read_state(journal, SESSION)

    taken = journal.snapshot(SESSION)
    assert taken
    assert taken.seq == state.seq
    assert read_state(journal, SESSION) == state == folded(journal)
    assert state.messages.sent[-1].summary == f"{snapshots.LONG - 1}"


def test_a_log_that_wrote_much_leaves_a_snapshot_at_its_end(journal: Journal) -> None:
    log = SessionLog(journal, SESSION, now=lambda: BEGIN)
    log.save_snapshot()
    assert journal.snapshot(SESSION) is None

    log.record(*(Warned(f"{number}", announced=False) for number in range(snapshots.LONG)))
    log.save_snapshot()

    assert snapshots.load(journal, SESSION) == log.state == folded(journal)


def test_what_is_left_of_a_snapshot_is_extended_like_any_other_state(journal: Journal) -> None:
    added(journal, Warned("one"))
    saved(journal)

    added(journal, Warned("two"))

    assert folded(journal).warnings == read_state(journal, SESSION).warnings == ("one", "two")


def test_a_snapshot_of_another_program_is_not_used(journal: Journal) -> None:
    saved(journal)

    assert snapshots.load(journal, SESSION, by=b"a later version") is None
    assert snapshots.load(journal, SESSION)


@pytest.mark.parametrize("place", [0, 100, -1])
def test_a_snapshot_with_a_changed_byte_is_not_used(journal: Journal, place: int) -> None:
    state = saved(journal)
    taken = journal.snapshot(SESSION)
    assert taken
    body = bytearray(taken.body)
    body[place] ^= 1

    journal.save_snapshot(SESSION, Snapshot(taken.seq, taken.mark, bytes(body)))

    assert snapshots.load(journal, SESSION) is None
    assert read_state(journal, SESSION) == state


@pytest.mark.parametrize("change", ["seq = seq - 1", "seq = seq + 1"])
def test_a_snapshot_that_names_another_entry_is_not_used(journal: Journal, change: str) -> None:
    state = saved(journal)

    with sqlite3.connect(journal.path) as database:
        database.execute(f"UPDATE snapshots SET {change}")
    database.close()

    assert snapshots.load(journal, SESSION) is None
    assert read_state(journal, SESSION) == state


def test_a_snapshot_of_a_journal_that_was_made_again_is_not_used(journal: Journal, tmp_path: Path) -> None:
    added(journal, Warned("one", announced=False))
    saved(journal)
    taken = journal.snapshot(SESSION)
    assert taken
    again = Journal(tmp_path / "again.db")
    before = [entry.event for entry in journal.read(SESSION)[:-1]]
    again.append(SESSION, entries([*before, Warned("other", announced=False)], at=BEGIN), after=0)

    again.save_snapshot(SESSION, taken)

    assert snapshots.load(again, SESSION) is None
    assert read_state(again, SESSION).warnings == ("other",)
    again.close()


def test_a_snapshot_that_cannot_be_saved_is_no_reason_to_fail(journal: Journal) -> None:
    state = folded(journal)
    with sqlite3.connect(journal.path) as database:
        database.execute("DROP TABLE snapshots")
    database.close()

    assert snapshots.save(journal, state, known=0, long=1) == 0
