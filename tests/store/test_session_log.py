"""Writing to a session while other processes write to it too."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.store.conftest import BEGIN, COMMIT, Story, started, task, team_started

from iterdev.core.collaboration.messages import compose
from iterdev.core.errors import UserError
from iterdev.core.session.events import Archived, Entry, Event, Kept, Paused, Reopened, TaskFailed, Warned
from iterdev.core.session.state import State
from iterdev.core.session.summary import summarize
from iterdev.core.types import Phase, SessionId, TaskId
from iterdev.store import session_log
from iterdev.store.journal import NAME, Journal
from iterdev.store.session_log import SessionLog, Unfoldable

SESSION = SessionId("ids-demo-20260225")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / NAME)
    session_log.create(journal, [started(SESSION), team_started()], at=BEGIN)
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


class SummarizedStory(Story):
    """A session whose summary in the journal is compared with its state after every transaction."""

    def tell(self, *events: Event) -> State:
        state = super().tell(*events)
        assert self.journal.summaries() == [summarize(state)]
        return state


@pytest.fixture
def summarized(tmp_path: Path) -> Iterator[SummarizedStory]:
    story = SummarizedStory(tmp_path, started())
    yield story
    story.journal.close()


def test_the_summary_is_that_of_the_state_after_every_transaction(summarized: SummarizedStory) -> None:
    first = summarized.journal.summaries()
    summarized.sprint()
    summarized.tell(Archived())
    summarized.restart()
    summarized.tell(Reopened())
    summarized.tell(Kept())

    (last,) = summarized.journal.summaries()
    assert [(one.phase, one.completed, one.tasks) for one in first] == [(Phase.active, 0, 0)]
    assert (last.phase, last.completed, last.tasks) == (Phase.paused, 4, 4)


def test_the_summary_follows_attempts_that_fail_and_work_that_lands(summarized: SummarizedStory) -> None:
    summarized.add(task("DEV-001"), task("DEV-002"))
    summarized.start("DEV-001")
    during = summarized.journal.summaries()
    summarized.end("DEV-001", commit=COMMIT)
    summarized.land("DEV-001")
    summarized.fail("DEV-002")
    summarized.tell(Paused("interrupted"))

    (after,) = summarized.journal.summaries()
    assert [(one.attempts, one.completed) for one in during] == [(1, 0)]
    assert (after.attempts, after.completed, after.tasks, after.phase) == (0, 1, 2, Phase.paused)


def test_the_summary_is_right_whichever_process_wrote_last(journal: Journal) -> None:
    mine, other = log(journal), log(journal)
    mine.record(Paused("one step done"))
    other.record(Kept())
    mine.record(Archived())
    other.record(Reopened())
    mine.record(Archived())

    assert journal.summaries() == [summarize(mine.state)]
    assert journal.summaries()[0].phase is Phase.archived


def test_a_state_that_was_read_before_is_continued(journal: Journal) -> None:
    known = session_log.read_state(journal, SESSION)
    log(journal).record(Warned("since then"))

    state = session_log.read_state(journal, SESSION, known)

    assert state == session_log.read_state(journal, SESSION)
    assert (known.warnings, state.warnings) == ((), ("since then",))


def test_what_utf_8_cannot_encode_is_recorded_as_an_escape(journal: Journal) -> None:
    mine = log(journal)

    mine.record(Warned("a name: \udcff"), compose("developer", summary="half", data={"\ud800": ["\ud800"]}))

    assert mine.state == session_log.read_state(journal, SESSION)
    assert mine.state.warnings == ("a name: \\udcff",)
    assert {"\\ud800": ["\\ud800"]} in [message.data for message in mine.state.messages.sent]


def test_a_session_whose_requirement_cannot_be_encoded_is_created(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "other.db")
    first = started(SESSION)
    spoiled = replace(first, session=replace(first.session, requirement="Fix \ud800"))

    state = session_log.create(journal, [spoiled, team_started()], at=BEGIN)

    assert state.session.requirement == "Fix \\ud800"
    assert [summary.requirement for summary in journal.summaries()] == ["Fix \\ud800"]
    journal.close()


def test_entries_that_contradict_each_other_are_named_and_not_taken_for_a_defect(journal: Journal) -> None:
    last = journal.newest(SESSION)
    journal.append(SESSION, [Entry(last + 1, BEGIN, TaskFailed(TaskId("DEV-009"), "no such task"))], after=last)

    with pytest.raises(Unfoldable, match=f"entry {last + 1}, TaskFailed, does not fit those before it"):
        log(journal)
