"""Another process writes to the session at the very moment: nothing fails, and nothing is lost."""

from collections.abc import Callable
from functools import partial

import anyio
import pytest
from tests.app.conftest import Sessions, failed

from iterdev.app import feedback
from iterdev.app.answer import answer
from iterdev.app.resume import (
    RunObserver,
    answer_on_resume,
    answer_with_defaults,
    retry,
    run_session,
)
from iterdev.core.errors import UserError
from iterdev.core.session import events
from iterdev.core.types import Ending, SessionId, Status
from iterdev.host import clock
from iterdev.store.session_log import SessionLog

PLAN = events.Gate(kind="plan", question="Run these tasks?", choices=("approve", "reject"))
SPRINT = events.Gate(kind="sprint", subject="1", question="Sprint 1 is over. And now?", choices=("go-on", "stop"))


def adding_feedback(sessions: Sessions, session: SessionId) -> Callable[[], object]:
    """What `iterdev feedback add` does, in another process."""
    repository = sessions.open()
    return lambda: feedback.add(repository, session, "It is red", severity="high", category="ux")


def test_retry_resets_the_tasks_although_feedback_is_added_in_between(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())

    retry(sessions.interleaved(adding_feedback(sessions, session)), session)

    assert sessions.kinds(session)[-3:] == ["FeedbackGiven", "RetryRequested", "TasksReset"]
    assert {progress.status for progress in sessions.state(session).tasks.progress.values()} == {Status.pending}


def test_resume_starts_the_next_sprint_although_feedback_is_added_in_between(sessions: Sessions) -> None:
    session = sessions.start("Fix it", events.GateOpened(SPRINT))
    repository = sessions.interleaved(adding_feedback(sessions, session))

    answer_on_resume(SessionLog(repository.journal, session, now=clock.now))

    assert sessions.kinds(session)[-2:] == ["FeedbackGiven", "GateAnswered"]
    assert sessions.state(session).gates.answer("sprint-1") == "go-on"


def test_yes_answers_every_question_although_feedback_is_added_in_between(sessions: Sessions) -> None:
    session = sessions.start("Fix it", events.GateOpened(PLAN))
    repository = sessions.interleaved(adding_feedback(sessions, session))

    answer_with_defaults(SessionLog(repository.journal, session, now=clock.now))

    assert sessions.kinds(session)[-3:] == ["FeedbackGiven", "PolicyChanged", "GateAnswered"]
    state = sessions.state(session)
    assert (state.policy.auto, state.gates.open, state.gates.answer("plan")) == (True, {}, "approve")


def test_a_question_that_another_process_opens_in_between_is_answered_too(sessions: Sessions) -> None:
    session = sessions.start("Fix it", events.GateOpened(PLAN))
    other = sessions.log(session)
    repository = sessions.interleaved(lambda: other.record(events.GateOpened(SPRINT)))

    answer_with_defaults(SessionLog(repository.journal, session, now=clock.now))

    assert sessions.state(session).gates.open == {}


def test_a_question_that_is_answered_in_between_is_not_answered_twice(sessions: Sessions) -> None:
    session = sessions.start("Fix it", events.GateOpened(PLAN))
    other = sessions.log(session)
    repository = sessions.interleaved(lambda: other.record(events.GateAnswered("plan", "approve")))

    with pytest.raises(UserError, match="is not an open question"):
        answer(repository, session, "plan", "reject")

    assert sessions.kinds(session).count("GateAnswered") == 1


def test_a_whole_run_with_defaults_survives_feedback_at_its_first_write(sessions: Sessions) -> None:
    session = sessions.start("Fix it", events.GateOpened(PLAN))
    repository = sessions.interleaved(adding_feedback(sessions, session))

    result = anyio.run(partial(run_session, auto=True, resumes=True), repository, session, RunObserver())

    assert (result.ending, result.view.outcome.succeeded) == (Ending.over, True)
    assert result.view.feedback == "1 open, 1 of high or critical severity"
