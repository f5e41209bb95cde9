"""Locks and checkpoints on a real journal, with several who use it at once."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from tests.store.conftest import started, task

from iterdev.core.collaboration.feedback import Feedback, FeedbackStatus
from iterdev.core.collaboration.locks import AGE, Ask, Locks
from iterdev.core.collaboration.tech_debt import Debt, DebtStatus
from iterdev.core.errors import UserError
from iterdev.core.session import events, tasks
from iterdev.core.types import SessionId, TaskId
from iterdev.engine import collaboration
from iterdev.engine.collaboration import NothingRestored, Restored
from iterdev.store.journal import Journal
from iterdev.store.session_log import SessionLog

ONE, TWO = TaskId("DEV-001"), TaskId("DEV-002")


class Place:
    """A session in a journal that several books may be opened on, and a clock that is moved by hand."""

    def __init__(self, top: Path) -> None:
        self.folder, self.now = top, 1_772_000_000.0
        self.path = top / "iterdev.db"
        self.journals: list[Journal] = []
        beginning = started()
        self.session: SessionId = beginning.session.id
        rows = tasks.with_waves([task("DEV-001"), task("DEV-002")])
        self.journal().append(self.session, [beginning, events.TasksAdded(rows)], at=self.now, after=0)

    def journal(self) -> Journal:
        self.journals.append(Journal(self.path))
        return self.journals[-1]

    def log(self) -> SessionLog:
        return SessionLog(self.journal(), self.session, now=lambda: self.now)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    for journal in place.journals:
        journal.close()


def ask(resource: str, name: TaskId = ONE) -> Ask:
    return Ask(resource=resource, task=name, role="developer")


@pytest.mark.requirement("R124", "R125")
def test_of_many_who_ask_at_the_same_moment_exactly_one_gets_the_lock(place: Place) -> None:
    books = [place.log() for _ in range(8)]
    together = Barrier(len(books))

    def asks(number: int) -> bool:
        together.wait()
        return collaboration.acquire(books[number], ask("a", TaskId(f"DEV-{number:03d}"))).granted

    with ThreadPoolExecutor(len(books)) as crowd:
        granted = list(crowd.map(asks, range(len(books))))

    assert granted.count(True) == 1
    (holder,) = place.log().state.locks.held.values()
    assert holder.task == f"DEV-{granted.index(True):03d}"


@pytest.mark.requirement("R125", "R126")
def test_a_book_that_is_behind_answers_by_what_others_wrote(place: Place) -> None:
    stale, other = place.log(), place.log()
    collaboration.acquire(other, ask("a", TWO))

    refused = collaboration.acquire(stale, ask("a"))
    released = [collaboration.release(stale, "a", ONE), collaboration.release(other, "a", TWO)]

    assert (refused.granted, refused.lock.task) == (False, TWO)
    assert released == [False, True]
    assert collaboration.acquire(stale, ask("a")).granted


def test_asking_for_what_changes_nothing_writes_nothing(place: Place) -> None:
    log = place.log()
    before = log.state.seq

    collaboration.release(log, "a", ONE)

    assert log.state.seq == before


@pytest.mark.requirement("R128")
def test_the_one_who_is_aborted_is_told_so(place: Place) -> None:
    log = place.log()
    log.record(events.AttemptStarted(ONE, 1, "mine", "b"))
    place.now += 1
    log.record(events.AttemptStarted(TWO, 1, "mine", "b"))
    collaboration.acquire(log, ask("a"))
    collaboration.acquire(log, ask("b", TWO))
    collaboration.acquire(log, ask("b"))

    answer = collaboration.acquire(log, ask("a", TWO))

    assert (answer.granted, answer.aborted, answer.lock.task) == (False, True, ONE)
    assert list(log.state.aborted) == [TWO]
    assert collaboration.acquire(log, ask("b")).granted


def test_who_died_with_the_engine_holds_nothing(place: Place) -> None:
    log = place.log()
    log.record(events.AttemptStarted(ONE, 1, "mine", "b"))
    collaboration.acquire(log, ask("a"))
    alive = collaboration.current_locks(log.state, place.now, engine_alive=True)

    seen = collaboration.current_locks(log.state, place.now, engine_alive=False)
    answer = collaboration.acquire(log, ask("a", TWO), engine_alive=False)

    assert list(alive.held) == ["a"]
    assert seen == Locks()
    assert answer.granted


@pytest.mark.requirement("R127")
def test_an_old_lock_is_taken_away_by_the_next_who_asks_for_anything(place: Place) -> None:
    log = place.log()
    collaboration.acquire(log, ask("a"))
    place.now += AGE

    collaboration.acquire(log, ask("b", TWO))

    assert list(log.state.locks.held) == ["b"]
    assert len(log.state.warnings) == 1


@pytest.mark.requirement("R135", "R136")
def test_what_was_saved_last_is_restored_and_files_that_are_not_kept_are_gone(place: Place) -> None:
    log = place.log()
    for step in range(7):
        place.now += 1
        collaboration.save(log, place.folder, ONE, {"step": step, "text": "中"})

    restored = collaboration.restore(place.log(), place.folder, ONE)

    assert isinstance(restored, Restored)
    assert restored.data == {"step": 6, "text": "中"}
    files = {str(path.relative_to(place.folder)) for path in (place.folder / "checkpoints").iterdir()}
    assert files == {one.pointer for one in log.state.checkpoints[ONE]}
    assert len(files) == 5
    kept = [json.loads((place.folder / one.pointer).read_text(encoding="utf-8")) for one in log.state.checkpoints[ONE]]
    assert [one["step"] for one in kept] == [6, 5, 4, 3, 2]
    assert place.log().state.messages[-1].type == "context_restored"


@pytest.mark.requirement("R136")
@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda _: None, "there is no checkpoint of DEV-002"),
        (lambda path: path.unlink(), "cannot be read"),
        (lambda path: path.write_text("{half"), "is damaged"),
        (lambda path: path.write_bytes(b'"\xff"'), "is damaged"),
    ],
    ids=["none", "gone", "half", "not text"],
)
def test_without_a_readable_checkpoint_restoring_fails_with_a_reason(place: Place, harm: object, reason: str) -> None:
    log = place.log()
    saved = collaboration.save(log, place.folder, ONE, {})
    harm(place.folder / saved.pointer)

    nothing = collaboration.restore(log, place.folder, TWO if "no checkpoint" in reason else ONE)

    assert isinstance(nothing, NothingRestored)
    assert reason in nothing.why
    told = [warning for warning in log.state.warnings if reason in warning]
    assert len(told) == (0 if "no checkpoint" in reason else 1)
    assert "context_restored" not in [message.type for message in log.state.messages]


@pytest.mark.requirement("R137", "R138")
def test_feedback_and_debt_that_nobody_knows_are_refused_with_those_that_are_known(place: Place) -> None:
    log = place.log()
    wish = collaboration.give_feedback(log, Feedback(description="red", timestamp=place.now))
    owed = collaboration.note_debt(log, Debt(description="copied", detection_date=place.now))

    with pytest.raises(UserError) as feedback:
        collaboration.move_feedback(log, "FB-none", FeedbackStatus.closed)
    with pytest.raises(UserError) as debt:
        collaboration.move_debt(log, "TD-none", DebtStatus.resolved)
    with pytest.raises(UserError) as unlinked:
        collaboration.link_feedback(log, wish.feedback_id, TaskId("DEV-009"))

    assert wish.feedback_id in feedback.value.hint
    assert owed.debt_id in debt.value.hint
    assert '"DEV-009"' in unlinked.value.message
    assert log.state.feedback == (wish,)
    assert collaboration.link_feedback(log, wish.feedback_id, ONE).status == "reviewed"
