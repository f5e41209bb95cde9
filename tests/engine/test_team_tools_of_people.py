"""Locks and checkpoints on a real journal, used by several callers at once."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import msgspec
import pytest
from tests.store.conftest import started, task, team_started

from iterdev.core.collaboration.tool_schemas import ResourceLock, TaskCheckpoint
from iterdev.core.policy import Policy
from iterdev.core.session import events, tasks
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.team_tools import Document, Person, TeamTools
from iterdev.host.secrets import Redactor
from iterdev.store import session_log
from iterdev.store.journal import Journal
from iterdev.store.session_log import SessionLog

ONE, TWO = TaskId("DEV-001"), TaskId("DEV-002")


class Place:
    """A session in a journal that several logs may be opened on, and a clock that is moved by hand."""

    def __init__(self, top: Path) -> None:
        self.folder, self.now = top, 1_772_000_000.0
        self.path = top / "iterdev.db"
        self.journals: list[Journal] = []
        beginning = started()
        self.session: SessionId = beginning.session.id
        rows = tasks.checked([task("DEV-001"), task("DEV-002")])
        session_log.create(self.journal(), [beginning, team_started(), events.TasksAdded(rows)], at=self.now)

    def journal(self) -> Journal:
        self.journals.append(Journal(self.path))
        return self.journals[-1]

    def log(self) -> SessionLog:
        return SessionLog(self.journal(), self.session, now=lambda: self.now)

    def user(self, *, engine_alive: bool = True) -> "User":
        return User(self.log(), self.folder, engine_alive=engine_alive)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    for journal in place.journals:
        journal.close()


class User:
    """A person who uses the tools on a log."""

    def __init__(self, log: SessionLog, folder: Path, *, engine_alive: bool = True) -> None:
        self.log = log
        self._tools = TeamTools(log, folder, redact=Redactor([]), engine_alive=lambda _: engine_alive)

    def lock(self, operation: str, resource: str = "", task: TaskId = ONE) -> Document:
        asked = {"operation": operation, "resource": resource, "task": task, "role": "developer"}
        return self._tools.use(Person(), msgspec.convert(asked, ResourceLock))

    def acquire(self, resource: str, task: TaskId = ONE) -> Document:
        return self.lock("acquire", resource, task)

    def checkpoint(self, operation: str, task: TaskId = ONE, data: Document | None = None) -> Document:
        asked = {"operation": operation, "task": task, "data": data or {}}
        return self._tools.use(Person(), msgspec.convert(asked, TaskCheckpoint))


@pytest.mark.requirement("R124", "R125")
def test_of_many_who_ask_at_the_same_moment_exactly_one_gets_the_lock(place: Place) -> None:
    users = [place.user() for _ in range(8)]
    together = Barrier(len(users))

    def asks(number: int) -> bool:
        together.wait()
        return bool(users[number].acquire("a", TaskId(f"DEV-{number:03d}"))["granted"])

    with ThreadPoolExecutor(len(users)) as crowd:
        granted = list(crowd.map(asks, range(len(users))))

    assert granted.count(True) == 1
    (holder,) = place.log().state.locks.held.values()
    assert holder.task == f"DEV-{granted.index(True):03d}"


@pytest.mark.requirement("R125", "R126")
def test_a_log_that_is_behind_answers_by_what_others_wrote(place: Place) -> None:
    stale, other = place.user(), place.user()
    other.acquire("a", TWO)

    refused = stale.acquire("a")
    released = [stale.lock("release", "a")["released"], other.lock("release", "a", TWO)["released"]]

    assert (refused["granted"], refused["locked_by_task_id"]) == (False, TWO)
    assert released == [False, True]
    assert stale.acquire("a")["granted"]


def test_asking_for_what_changes_nothing_writes_nothing(place: Place) -> None:
    user = place.user()
    before = user.log.state.seq

    user.lock("release", "a")

    assert user.log.state.seq == before


@pytest.mark.requirement("R128")
def test_the_one_who_is_aborted_is_told_so(place: Place) -> None:
    user = place.user()
    user.log.record(events.AttemptStarted(ONE, 1, "mine", "b"))
    place.now += 1
    user.log.record(events.AttemptStarted(TWO, 1, "mine", "b"))
    user.acquire("a")
    user.acquire("b", TWO)
    user.acquire("b")

    answer = user.acquire("a", TWO)

    assert (answer["granted"], answer["aborted"], answer["locked_by_task_id"]) == (False, True, ONE)
    assert list(user.log.state.attempts.aborted) == [TWO]
    assert user.acquire("b")["granted"]


def test_who_died_with_the_engine_holds_nothing(place: Place) -> None:
    user, after_death = place.user(), place.user(engine_alive=False)
    user.log.record(events.AttemptStarted(ONE, 1, "mine", "b"))
    user.acquire("a")
    alive = user.lock("list")

    seen = after_death.lock("list")
    answer = after_death.acquire("a", TWO)

    assert list(alive["resource_locks"]) == ["a"]
    assert seen == {"resource_locks": {}, "waiting": {}}
    assert answer["granted"]


def test_who_works_where_attempts_outlive_the_engine_keeps_its_locks(place: Place) -> None:
    user, without_engine = place.user(), place.user(engine_alive=False)
    user.log.record(events.AttemptStarted(ONE, 1, "mine", "b", where="hosts"))
    user.acquire("a")

    answer = without_engine.acquire("a", TWO)

    assert list(without_engine.lock("list")["resource_locks"]) == ["a"]
    assert not answer["granted"]


@pytest.mark.requirement("R127")
def test_an_old_lock_is_taken_away_by_the_next_who_asks_for_anything(place: Place) -> None:
    user = place.user()
    user.acquire("a")
    place.now += Policy().lock_seconds

    user.acquire("b", TWO)

    assert list(user.log.state.locks.held) == ["b"]
    assert len(user.log.state.warnings) == 1


@pytest.mark.requirement("R135", "R136")
def test_what_was_saved_last_is_restored_and_files_that_are_not_kept_are_gone(place: Place) -> None:
    user = place.user()
    for step in range(7):
        place.now += 1
        user.checkpoint("save", data={"step": step, "text": "中"})
    log = user.log

    restored = place.user().checkpoint("restore")

    assert restored["restored"]
    assert restored["data"] == {"step": 6, "text": "中"}
    files = {str(path.relative_to(place.folder)) for path in (place.folder / "checkpoints").iterdir()}
    assert files == {one.pointer for one in log.state.checkpoints[ONE]}
    assert len(files) == 5
    kept = [json.loads((place.folder / one.pointer).read_text(encoding="utf-8")) for one in log.state.checkpoints[ONE]]
    assert [one["step"] for one in kept] == [6, 5, 4, 3, 2]
    assert place.log().state.messages.sent[-1].type == "context_restored"


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
    user = place.user()
    saved = user.checkpoint("save")
    harm(place.folder / str(saved["state_data_pointer"]))

    nothing = user.checkpoint("restore", TWO if "no checkpoint" in reason else ONE)

    log = user.log
    assert not nothing["restored"]
    assert reason in str(nothing["why"])
    told = [warning for warning in log.state.warnings if reason in warning]
    assert len(told) == (0 if "no checkpoint" in reason else 1)
    assert "context_restored" not in [message.type for message in log.state.messages.sent]
