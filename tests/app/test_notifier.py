"""Messages of a running engine: retried, never twice, and never a reason to stop."""

from collections.abc import Callable, Sequence

import anyio
import pytest
from msgspec.structs import replace
from tests.app.conftest import DEV, Sessions, failed

from iterdev.core.errors import HostError
from iterdev.core.session import events
from iterdev.core.session.delivery import Notified
from iterdev.core.types import NotificationKind, SessionId, TaskId
from iterdev.core.views.notifications import Notification
from iterdev.engine.effects import NO_EFFECTS
from iterdev.engine.notifier import AT_END, RETRIES, Journal, Notifier


class Recorder:
    """A channel that keeps what it is given, and fails as often as it is told to."""

    name = "recorder"

    def __init__(self, failures: int = 0) -> None:
        self.got: list[Notification] = []
        self.tries = 0
        self._failures = failures

    async def send(self, notification: Notification) -> None:
        self.tries += 1
        if self.tries <= self._failures:
            raise HostError("the server is on fire")
        self.got.append(notification)


class Silent(Recorder):
    """A channel that never says whether a message arrived."""

    name = "silent"

    async def send(self, notification: Notification) -> None:
        self.got.append(notification)
        await anyio.sleep_forever()


def told(
    sessions: Sessions,
    session: SessionId,
    *channels: Recorder,
    during: Callable[[], object] = lambda: None,
    redact: Callable[[str], str] = str,
    at_end: float = AT_END,
) -> Sequence[float]:
    """The pauses between tries, after an engine has run for a moment."""
    log = sessions.repository.log(session)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    def warn(text: str) -> None:
        log.record(events.Warned(text))

    async def run() -> None:
        journal = Journal(record=log.record, warn=warn, redact=redact)
        async with Notifier(log, channels, set(NotificationKind), journal, NO_EFFECTS, sleep, at_end).opened():
            during()
            log.refresh()

    anyio.run(run)
    return pauses


@pytest.fixture
def session(sessions: Sessions) -> SessionId:
    """A session with a task that failed."""
    return sessions.start("Fix it", *failed())


def test_each_channel_gets_a_message_once_whoever_runs_the_session(sessions: Sessions, session: SessionId) -> None:
    first, second, later = Recorder(), Recorder(), Recorder()

    told(sessions, session, first, second)
    told(sessions, session, later)

    assert [one.text for one in first.got] == ["DEV-001 failed: no luck"]
    assert (second.got, later.got) == (first.got, [])
    assert first.got[0].commands[0] == f"iterdev logs {session} DEV-001"


def test_what_is_gone_is_told_if_it_was_told_before(sessions: Sessions, session: SessionId) -> None:
    channel = Recorder()
    told(sessions, session, Recorder())

    sessions.log(session).record(events.TasksReset((DEV, TaskId("VERIFY-001"))))
    told(sessions, session, channel)

    assert ("failed", True) in [(one.kind, one.is_over) for one in channel.got]


def test_a_message_is_in_the_journal_before_it_is_sent(sessions: Sessions, session: SessionId) -> None:
    known: list[bool] = []

    class Looking(Recorder):
        async def send(self, notification: Notification) -> None:
            known.append("failed DEV-001" in sessions.state(session).delivery.notified)

    told(sessions, session, Looking())

    assert known == [True]
    assert sessions.kinds(session).count(Notified.__name__) == 1


def test_a_channel_that_fails_is_tried_again_and_the_others_do_not_wait(sessions: Sessions, session: SessionId) -> None:
    failing, other = Recorder(failures=2), Recorder()

    pauses = told(sessions, session, failing, other)

    assert (len(failing.got), failing.tries, list(pauses)) == (1, 3, list(RETRIES[:2]))
    assert other.tries == 1
    assert not sessions.state(session).warnings


def test_after_the_last_try_there_is_a_warning_and_the_run_goes_on(sessions: Sessions, session: SessionId) -> None:
    failing = Recorder(failures=99)

    pauses = told(sessions, session, failing)
    told(sessions, session, failing)

    assert (failing.tries, list(pauses)) == (4, [1.0, 5.0, 25.0])
    assert list(sessions.state(session).warnings) == [
        "a notification could not be sent by recorder: the server is on fire"
    ]


def test_a_burst_of_needs_is_one_message_which_is_not_repeated(sessions: Sessions) -> None:
    session, first, later = sessions.start("Fix it"), Recorder(), Recorder()
    more, task = (TaskId("DEV-002"), TaskId("DEV-003")), sessions.state(session).tasks.plan[DEV]
    began, ended, skipped, finished = failed()
    failures = [
        each for name in (DEV, *more) for each in (replace(began, task=name), replace(ended, task=name, denied=("rm",)))
    ]
    added = events.TasksAdded(tuple(replace(task, id=name) for name in more))
    sessions.log(session).record(added, *failures, skipped, finished)

    told(sessions, session, first)
    told(sessions, session, later)

    assert [(one.kind, one.text.partition(":")[0]) for one in first.got] == [("several", "4 messages")]
    assert later.got == []


def test_the_end_of_a_run_does_not_wait_for_a_channel_that_is_silent(sessions: Sessions, session: SessionId) -> None:
    silent, other, later = Silent(), Recorder(), Recorder()

    told(sessions, session, silent, other, at_end=0.01)
    told(sessions, session, later)

    assert (len(silent.got), len(other.got), later.got) == (1, 1, [])
    (warning,) = sessions.state(session).warnings
    assert warning == "a notification could not be sent by silent before the run ended"


def test_what_happens_last_is_told_too(sessions: Sessions) -> None:
    session, channel = sessions.start("Fix it"), Recorder()

    told(sessions, session, channel, during=lambda: sessions.log(session).record(*failed()))

    assert [one.kind for one in channel.got] == ["failed"]


def test_messages_have_no_secrets(sessions: Sessions, session: SessionId) -> None:
    channel = Recorder()

    told(sessions, session, channel, redact=lambda text: text.replace("luck", "****"))

    assert channel.got[0].text == "DEV-001 failed: no ****"
