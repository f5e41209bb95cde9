"""Texts that tell a session something instead of asking for a new one."""

import pytest
from tests.app.conftest import DEV, Sessions, commit_on_branch
from tests.core.conftest import task

from iterdev.app import callbacks
from iterdev.app.callbacks import CapabilityGap, WorkerCallback
from iterdev.app.sessions import SessionChoice
from iterdev.core.errors import UserError
from iterdev.core.session import events
from iterdev.core.types import Status

REQUESTS = ["Add a greeting", "DEV-007 is done", "Let the [developer] do it", "Add a [developer] section to the README"]


@pytest.mark.requirement("R116")
@pytest.mark.parametrize("text", REQUESTS)
def test_a_text_that_begins_with_neither_a_tag_nor_a_task_is_a_request(sessions: Sessions, text: str) -> None:
    sessions.start()

    assert callbacks.callback_in(sessions.repository, text) is None


@pytest.mark.requirement("R116")
@pytest.mark.parametrize("text", ["[developer] DEV-001 is done", "DEV-001: done", "## [developer] It is done"])
def test_a_worker_says_that_its_task_is_done(sessions: Sessions, text: str) -> None:
    session = sessions.start()
    tip = commit_on_branch(sessions.repo, session)

    told = callbacks.callback_in(sessions.repository, text)
    assert isinstance(told, WorkerCallback)
    assert told.session == session
    callbacks.record(sessions.repository, session, told)

    state = sessions.state(session)
    assert state.tasks.status(DEV) is Status.completed
    assert state.branch.tip == tip


@pytest.mark.requirement("R116")
@pytest.mark.parametrize("text", ["[developer] DEV-001 is done", "DEV-001: done", "[developer] section in the README"])
def test_a_word_completes_no_task_whose_work_is_not_there(sessions: Sessions, text: str) -> None:
    session = sessions.start()
    told = callbacks.callback_in(sessions.repository, text)
    assert told

    with pytest.raises(UserError, match="DEV-001 cannot be completed by a message: it has no commit yet") as error:
        callbacks.record(sessions.repository, session, told)

    assert f"commit its work on iterdev/{session}, or: iterdev run --role developer {session}" in error.value.hint
    assert sessions.state(session).tasks.status(DEV) is Status.pending


@pytest.mark.requirement("R116")
def test_the_same_commits_complete_one_task(sessions: Sessions) -> None:
    session = sessions.start()
    commit_on_branch(sessions.repo, session)
    told = callbacks.callback_in(sessions.repository, "DEV-001: done")
    assert told
    callbacks.record(sessions.repository, session, told)
    rows = (task("DEV-002"),)
    sessions.log(session).record(events.TasksAdded(rows))
    second = callbacks.callback_in(sessions.repository, "DEV-002: done")
    assert second

    with pytest.raises(UserError, match="DEV-002 cannot be completed by a message"):
        callbacks.record(sessions.repository, session, second)


@pytest.mark.requirement("R120")
@pytest.mark.parametrize("text", ["DEV-001 is done", "[developer] done", "capability_gap: SQL"])
def test_of_several_sessions_only_the_user_or_the_text_chooses_one(sessions: Sessions, text: str) -> None:
    first, second = sessions.start("First thing"), sessions.start("Second thing")

    told = callbacks.callback_in(sessions.repository, text)
    named = callbacks.callback_in(sessions.repository, f"{text} ({first})")

    assert told
    assert isinstance(told.session, SessionChoice)
    assert told.session.sessions == (first, second)
    with pytest.raises(UserError, match=f"Several sessions are unfinished: {first}, {second}"):
        told.session.unasked()
    assert named
    assert named.session == first


def test_what_cannot_be_done_yet_is_rejected(sessions: Sessions) -> None:
    session = sessions.start()

    told = callbacks.callback_in(sessions.repository, "[tester] VERIFY-001 is done")
    assert told

    with pytest.raises(UserError, match="it waits for DEV-001"):
        callbacks.record(sessions.repository, session, told)


def test_a_capability_gap_is_a_message_to_the_session(sessions: Sessions) -> None:
    session = sessions.start()

    told = callbacks.callback_in(sessions.repository, "capability_gap: somebody who knows SQL")
    assert isinstance(told, CapabilityGap)
    callbacks.record(sessions.repository, session, told)

    message = sessions.state(session).messages.sent[-1]
    assert (message.type, message.summary) == ("capability_gap", "[coordinator] somebody who knows SQL")
