"""Which session is meant, and when the user has to choose."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing

import pytest
from tests.app.conftest import DEV, Sessions, failed, running_engine

from iterdev.app import inspect
from iterdev.app.doctor import findings
from iterdev.app.sessions import (
    SessionChoice,
    before_task,
    before_text,
    named_or_last_active,
    named_or_last_finished,
    newest_of_team,
    session_ids,
    to_continue,
    to_resume,
)
from iterdev.core.errors import UserError
from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted
from iterdev.core.types import TaskId
from iterdev.engine.repository import STATE
from iterdev.store.journal import NAME

VERIFY = TaskId("VERIFY-001")


def test_without_a_session_there_is_nothing_to_go_on_with(sessions: Sessions) -> None:
    for find in (to_continue, to_resume):
        with pytest.raises(UserError, match="There is no session in"):
            find(sessions.repository)
        with pytest.raises(UserError, match='There is no session "ids-other"'):
            find(sessions.repository, "ids-other")


def test_the_session_that_was_last_active_is_meant_unless_one_is_named(sessions: Sessions) -> None:
    first, second = sessions.start("First thing"), sessions.start("Second thing")
    started_last = named_or_last_active(sessions.repository, None)
    sessions.repository.log(first).record(events.Warned("odd"))

    assert started_last == second
    assert named_or_last_active(sessions.repository, None) == first
    assert [named_or_last_active(sessions.repository, name) for name in (second, "ids-sec", "second")] == [second] * 3


def test_the_beginning_of_an_id_counts_before_a_part_of_another(sessions: Sessions) -> None:
    sessions.start("Use ids-fix everywhere")
    fix = sessions.start("Fix it")

    assert named_or_last_active(sessions.repository, "ids-fix") == fix


def test_a_session_to_accept_is_the_finished_one_that_was_last_active(sessions: Sessions) -> None:
    unfinished = sessions.start("First thing")
    before = named_or_last_finished(sessions.repository, None)
    ended = sessions.start("Second thing", *failed())
    sessions.start("Third thing")

    assert before == unfinished
    assert named_or_last_finished(sessions.repository, None) == ended


def test_a_single_word_is_a_task_of_the_session_that_was_last_active_or_a_session(sessions: Sessions) -> None:
    first, second = sessions.start("First thing"), sessions.start("Second thing")

    found = [before_task(sessions.repository, words) for words in ([], ["DEV-001"], ["ids-first"], ["ids-f", "X"])]

    assert found == [(second, ""), (second, "DEV-001"), (first, ""), (first, "X")]


@pytest.mark.parametrize(
    ("words", "named", "text"),
    [
        (["ids-first", "too", "long"], "first", "too long"),
        (["ids-first"], "second", "ids-first"),
        (["i", "think", "so"], "second", "i think so"),
        (["ids-based keys", "are fine"], "second", "ids-based keys are fine"),
    ],
)
def test_a_text_may_begin_with_its_session(sessions: Sessions, words: list[str], named: str, text: str) -> None:
    by_name = {"first": sessions.start("First thing"), "second": sessions.start("Second thing")}

    assert before_text(sessions.repository, words) == (by_name[named], text)


REJECTED = events.Finished(events.Finished.WHY_REJECTED)
STARTED = events.AttemptStarted(DEV, 1, "mine", "b" * 40)
GATE = events.GateOpened(events.Gate(kind="plan", question="Run?", choices=("approve", "reject")))


@pytest.mark.parametrize(
    ("told", "standing"),
    [
        ([], "active"),
        ([GATE], "waiting"),
        ([STARTED], "interrupted"),
        ([events.Paused("interrupted")], "paused"),
        (failed(), "failed"),
        ([REJECTED], "rejected"),
        ([REJECTED, events.Archived()], "archived (rejected)"),
        ([events.Finished("the user stopped it")], "stopped"),
        ([*failed(), Accepted("main", "c" * 40)], "failed (accepted)"),
        ([*failed(), events.Archived()], "archived (failed)"),
        ([*failed(), events.Kept()], "paused (failed)"),
        ([events.TaskCompleted(DEV, ""), events.TaskCompleted(VERIFY, ""), events.Finished()], "completed"),
    ],
)
def test_a_list_of_sessions_says_how_each_ended(
    sessions: Sessions, told: Sequence[events.Event], standing: str
) -> None:
    sessions.start("First thing", *told)

    assert [line.standing for line in inspect.summaries(sessions.repository)] == [standing]


@pytest.mark.parametrize(
    ("told", "standing"), [([GATE], "running (waiting)"), ([GATE, STARTED], "running"), ([], "running")]
)
def test_a_list_of_sessions_says_which_engine_waits_for_an_answer(
    sessions: Sessions, told: Sequence[events.Event], standing: str
) -> None:
    session = sessions.start("First thing", *told)

    with running_engine(sessions, session):
        assert [line.standing for line in inspect.summaries(sessions.repository)] == [standing]


def test_a_team_means_its_newest_session_and_an_unfinished_one_first(sessions: Sessions) -> None:
    sessions.start("First thing", team_name="night")
    second = sessions.start("Second thing", team_name="night")
    sessions.start("Third thing", *failed(), team_name="night")
    fourth = sessions.start("Fourth thing")

    assert newest_of_team(sessions.repository, "night") == second
    assert newest_of_team(sessions.repository, "iterdev") == fourth
    with pytest.raises(UserError, match='No session has the team "day"') as error:
        newest_of_team(sessions.repository, "day")
    assert error.value.hint == "teams: iterdev, night"


@pytest.mark.requirement("R120")
def test_of_several_unfinished_sessions_only_the_user_chooses_one_to_resume(sessions: Sessions) -> None:
    first, second = sessions.start("First thing"), sessions.start("Second thing")
    sessions.start("Third thing", *failed())

    choice = to_resume(sessions.repository)

    assert isinstance(choice, SessionChoice)
    assert choice.sessions == (first, second)
    with pytest.raises(UserError, match=f"Several sessions are unfinished: {first}, {second}") as error:
        choice.unasked()
    assert error.value.hint == f"name one: iterdev resume {second}"
    assert to_continue(sessions.repository) == second


def test_the_only_unfinished_session_is_resumed_without_a_choice(sessions: Sessions) -> None:
    first = sessions.start("First thing")
    sessions.start("Second thing", *failed())

    assert to_resume(sessions.repository) == to_continue(sessions.repository) == first


def test_when_every_session_is_finished_the_user_has_to_choose(sessions: Sessions) -> None:
    only = sessions.start("First thing", *failed())

    choice = to_continue(sessions.repository)

    assert isinstance(choice, SessionChoice)
    assert choice.sessions == (only,)
    with pytest.raises(UserError, match="No session is unfinished") as error:
        choice.unasked()
    assert f"iterdev status {only}" in error.value.hint


def test_a_name_that_fits_no_session_exactly_is_a_choice_with_a_fallback(sessions: Sessions) -> None:
    first, second = sessions.start("First thing"), sessions.start("Second thing")

    exact, part, unknown = (to_continue(sessions.repository, name) for name in (first, "second", "nothing"))

    assert exact == first
    assert part == SessionChoice((first, second), second)
    assert isinstance(unknown, SessionChoice)
    with pytest.raises(UserError, match='There is no session "nothing"'):
        unknown.unasked()


def test_sessions_are_completed_inside_of_a_repository_only(sessions: Sessions) -> None:
    first = sessions.start("First thing")

    assert session_ids(sessions.repo.path) == [first]
    assert session_ids(sessions.repo.home) == []


def make_events_unreadable(sessions: Sessions) -> None:
    """Leaves the summaries of the journal as they are."""
    with sqlite3.connect(sessions.repo.path / STATE / NAME) as database:
        database.execute("UPDATE events SET body = CAST('garbage' AS BLOB)")
    database.close()


def test_sessions_are_listed_without_reading_an_event(sessions: Sessions) -> None:
    first, second = sessions.start("First thing"), sessions.start("Second thing", *failed())
    make_events_unreadable(sessions)

    lines = list(inspect.summaries(sessions.repository))
    listed = [(line.summary.id, line.standing, line.summary.completed, line.summary.tasks) for line in lines]

    assert listed == [(first, "active", 0, 2), (second, "failed", 0, 2)]


def test_a_session_to_resume_or_to_complete_is_found_without_reading_an_event(sessions: Sessions) -> None:
    first, second = sessions.start("First thing"), sessions.start("Second thing", *failed())
    make_events_unreadable(sessions)

    assert sessions.repository.unfinished() == [first]
    assert to_resume(sessions.repository) == to_continue(sessions.repository) == first
    assert session_ids(sessions.repo.path) == [first, second]
    # A journal that is found to be damaged would be renamed.
    assert [path.name for path in (sessions.repo.path / STATE).glob("*damaged*")] == []


def test_the_name_of_a_session_has_at_most_40_characters_of_the_request(sessions: Sessions) -> None:
    session = sessions.start("word" * 15)

    prefix, words, *_ = session.split("-")
    assert (prefix, words) == ("ids", ("word" * 15)[:40])


def test_a_journal_that_does_not_list_a_session_whose_entries_it_has_is_rebuilt(sessions: Sessions) -> None:
    session = sessions.start()
    folder = sessions.repository.folder(sessions.state(session))
    (folder / "tasks.csv").write_text("id,description\nDEV-001,do it\n", encoding="utf-8")
    with closing(sqlite3.connect(sessions.repo.path / STATE / NAME)) as db, db:
        db.execute("UPDATE sessions SET id = 'ids-another'")

    assert sessions.open().sessions() == [session]


def test_doctor_names_entries_that_contradict_each_other_and_how_to_mend_that(sessions: Sessions) -> None:
    session = sessions.start()
    journal, last = sessions.repository.journal, sessions.state(session).seq
    journal.append(session, [events.Entry(last + 1, 1.0, events.TaskFailed(TaskId("DEV-0O1"), "x"))], after=last)

    (found,) = (finding for finding in findings(sessions.repo.path) if finding.subject == "journal")

    assert f"{session}: " in found.problem
    assert f"entry {last + 1}, TaskFailed, does not fit" in found.problem
    assert found.hint == "iterdev doctor --fix"
