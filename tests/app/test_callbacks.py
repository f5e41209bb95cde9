"""Texts that tell a session something instead of asking for a new one."""

import pytest
from tests.app.conftest import DEV, Sessions

from iterdev.app import callbacks
from iterdev.app.callbacks import CapabilityGap, WorkerCallback
from iterdev.app.sessions import SessionChoice
from iterdev.core.errors import UserError
from iterdev.core.types import Status


@pytest.mark.parametrize("text", ["Add a greeting", "DEV-007 is done", "Let the [developer] do it"])
def test_a_text_that_fits_no_session_is_a_request(sessions: Sessions, text: str) -> None:
    assert callbacks.callback_in(sessions.repository, text) is None


@pytest.mark.parametrize("text", ["[developer] DEV-001 is done", "DEV-001: done", "It is done, says the [developer]"])
def test_a_worker_says_that_its_task_is_done(sessions: Sessions, text: str) -> None:
    session = sessions.start()

    told = callbacks.callback_in(sessions.repository, text)
    assert isinstance(told, WorkerCallback)
    assert told.session == session
    callbacks.record(sessions.repository, session, told)

    assert sessions.state(session).tasks.status(DEV) is Status.completed


def test_of_several_sessions_that_have_the_task_the_user_chooses(sessions: Sessions) -> None:
    first, second = sessions.start("First thing"), sessions.start("Second thing")

    told = callbacks.callback_in(sessions.repository, "DEV-001 is done")

    assert isinstance(told, WorkerCallback)
    assert told.session == SessionChoice((first, second), second)


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
