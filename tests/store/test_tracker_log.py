"""The tracker's log beside the sessions of the same journal."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.store.conftest import started, team_started

from iterdev.core.session.events import Entry, Paused, Warned
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.store import session_log
from iterdev.store.journal import NAME, Journal
from iterdev.store.session_log import SessionLog
from iterdev.store.tracker_log import SessionFollower, TrackerLog, TrackerRule
from iterdev.tracker import rules
from iterdev.tracker.events import IssueCreated, TrackerEvent
from iterdev.tracker.issues import Description, IssueStatus
from iterdev.tracker.state import Tracker

SESSION = SessionId("ids-demo-20260225")


def now() -> float:
    return 1_772_000_000.0


def new(title: str, name: str = "") -> TrackerRule:
    return lambda tracker, at: rules.created(tracker, Description(title=title), at, name=name)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal(tmp_path / NAME)
    yield opened
    opened.close()


def test_what_was_written_is_there_when_it_is_opened_again(journal: Journal) -> None:
    TrackerLog(journal, now=now).transact(new("First", "GH-1"))

    again = TrackerLog(journal, now=now)

    assert again.tracker.issues["GH-1"].description.title == "First"


def test_a_rule_is_applied_again_when_another_process_was_faster(journal: Journal) -> None:
    first, second = TrackerLog(journal, now=now), TrackerLog(journal, now=now)
    seen: list[int] = []

    def slow(tracker: Tracker, at: float) -> Sequence[TrackerEvent]:
        seen.append(len(tracker.issues))
        if len(seen) == 1:
            second.transact(new("In between"))
        return new("Mine")(tracker, at)

    first.transact(slow)

    assert seen == [0, 1]
    assert [issue.description.title for issue in first.tracker.issues.values()] == ["In between", "Mine"]


def test_half_a_surrogate_pair_is_stored_as_an_escape(journal: Journal) -> None:
    log = TrackerLog(journal, now=now)

    log.transact(new("bad \ud800"))

    (issue,) = TrackerLog(journal, now=now).tracker.issues.values()
    assert issue.description.title == "bad \\ud800"


class FollowedSession:
    """A session whose warnings each complete an issue, and a log that can be made to stop in between."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        session_log.create(journal, [started(SESSION), team_started()], at=now())
        self.session = SessionLog(journal, SESSION, now=now)
        self.asked: list[int] = []

    def follower(self) -> SessionFollower:
        """As a new process would follow."""
        return SessionFollower(TrackerLog(self.journal, now=now), self.journal, SESSION, self.rules)

    def rules(self, state: State, entry: Entry) -> Iterator[TrackerRule]:
        assert state.seq == entry.seq
        self.asked.append(entry.seq)
        if isinstance(entry.event, Warned):
            yield new(entry.event.text)

    def titles(self) -> list[str]:
        issues = TrackerLog(self.journal, now=now).tracker.issues.values()
        return [issue.description.title for issue in issues]


def test_each_entry_of_a_session_changes_the_tracker_once(journal: Journal) -> None:
    followed = FollowedSession(journal)
    followed.session.record(Warned("one"), Warned("two"))
    follower = followed.follower()

    assert follower.catch_up()
    assert not follower.catch_up()
    assert not followed.follower().catch_up()
    followed.session.record(Warned("three"))
    assert follower.catch_up()

    assert followed.titles() == ["one", "two", "three"]


def test_a_new_process_goes_on_where_the_tracker_stopped(journal: Journal) -> None:
    followed = FollowedSession(journal)
    followed.session.record(Warned("one"))
    followed.follower().catch_up()
    followed.session.record(Warned("two"))
    asked = len(followed.asked)

    followed.follower().catch_up()

    assert followed.titles() == ["one", "two"]
    assert len(followed.asked) - asked == journal.newest(SESSION) - asked


def test_two_processes_that_follow_the_same_session_do_not_apply_an_entry_twice(journal: Journal) -> None:
    followed = FollowedSession(journal)
    followed.session.record(Warned("one"))
    first, second = followed.follower(), followed.follower()
    seen = first._log.followed

    def overtaken(session: SessionId) -> int:
        before = seen(session)
        second.catch_up()
        return before

    first._log.followed = overtaken  # type: ignore[method-assign]

    assert not first.catch_up()
    assert followed.titles() == ["one"]


def test_an_entry_without_a_meaning_for_the_tracker_is_not_looked_at_again(journal: Journal) -> None:
    followed = FollowedSession(journal)
    followed.session.record(Paused("later"))

    assert not followed.follower().catch_up()

    assert journal.followed(SESSION) == journal.newest(SESSION)


def test_a_rule_sees_what_the_rules_before_it_did(journal: Journal) -> None:
    followed = FollowedSession(journal)
    followed.session.record(Warned("one"))

    def create_and_complete(_: State, entry: Entry) -> Iterator[TrackerRule]:
        if isinstance(entry.event, Warned):
            yield new("one", "GH-1")
            yield lambda tracker, _: rules.moved(tracker, "GH-1", IssueStatus.completed)

    log = TrackerLog(journal, now=now)
    SessionFollower(log, journal, SESSION, create_and_complete).catch_up()

    assert log.tracker.issues["GH-1"].status is IssueStatus.completed
    assert isinstance(journal.read_tracker()[0].event, IssueCreated)


def test_a_session_that_was_rebuilt_with_fewer_entries_is_followed_from_there(journal: Journal, tmp_path: Path) -> None:
    followed = FollowedSession(journal)
    followed.session.record(*(Warned(f"warning {number}") for number in range(9)))
    followed.follower().catch_up()
    before = followed.titles()
    rebuilt = Journal(tmp_path / "rebuilt.db")
    session_log.create(rebuilt, [started(SESSION), team_started()], at=now())
    follower = SessionFollower(TrackerLog(journal, now=now), rebuilt, SESSION, followed.rules)

    assert not follower.catch_up()
    SessionLog(rebuilt, SESSION, now=now).record(Warned("new"))

    assert follower.catch_up()
    assert followed.titles() == [*before, "new"]
    rebuilt.close()
