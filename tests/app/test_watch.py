"""Watching a session from another process: what is seen, when it ends, and that nothing is written."""

import os
from collections.abc import Callable

import pytest
from tests.app.conftest import DEV, Sessions, failed, running_engine
from tests.e2e.conftest import every_file

from iterdev.app.live.watch import (
    INTERVAL,
    Changes,
    Followed,
    OutputLine,
    RepositoryWatch,
    SessionWatch,
    follow,
    watch,
)
from iterdev.core.errors import UserError
from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted
from iterdev.core.session.gates import plan_gate
from iterdev.core.types import Ending, SessionId, Status
from iterdev.core.views.attention import NeedKind
from iterdev.core.views.history import AttemptOutcome, History, evolve
from iterdev.core.views.session import STARTING
from iterdev.host import clock
from iterdev.teams.development.team import DEVELOPMENT

STARTED = events.AttemptStarted(DEV, 1, "mine", "b" * 40)
INTERRUPTED = events.AttemptEnded(
    task=DEV, number=1, agent="mine", requests=1, outcome=events.Interrupted(), status=Status.pending
)


def look(watched: SessionWatch) -> Changes:
    changes = watched.look()
    assert changes
    return changes


def say(sessions: Sessions, session: SessionId, text: str, name: str = "DEV-001-1") -> None:
    """What an agent's log gets while it speaks."""
    logs = sessions.repository.folder(sessions.state(session)) / "logs"
    logs.mkdir(exist_ok=True)
    with (logs / f"{name}.log").open("a") as file:
        file.write(text)


def test_the_first_look_shows_everything_and_the_next_ones_only_what_is_new(sessions: Sessions) -> None:
    session = sessions.start()
    watched = SessionWatch(sessions.open(), session)

    first = look(watched)
    nothing = watched.look()
    sessions.log(session).record(events.WaveStarted(1))
    second = look(watched)

    assert [line.event for line in first.lines] == ["SessionStarted", "TasksAdded"]
    assert nothing is None
    assert [line.text for line in second.lines] == ["wave 1/2"]
    assert watched.state == sessions.state(session)


def test_what_the_watching_process_itself_writes_is_seen_too(sessions: Sessions) -> None:
    session = sessions.start()
    watched = SessionWatch(sessions.repository, session)
    look(watched)

    sessions.log(session).record(events.Warned("odd"))

    assert [line.text for line in look(watched).lines] == ["warning: odd"]


def test_another_session_changes_nothing(sessions: Sessions) -> None:
    watched = SessionWatch(sessions.open(), sessions.start())
    look(watched)

    sessions.start("Another one")

    assert watched.look() is None


def test_agents_are_heard_while_they_speak_and_until_their_last_line(sessions: Sessions) -> None:
    session = sessions.start("Fix it", STARTED)
    say(sessions, session, "before\n")
    watched = SessionWatch(sessions.open(), session)

    first = look(watched).output
    say(sessions, session, "now\nha")
    second = look(watched).output
    say(sessions, session, "lf\n")
    sessions.log(session).record(INTERRUPTED)
    last = look(watched).output
    say(sessions, session, "too late\n")

    assert first == (OutputLine(DEV, 1, "before"),)
    assert [line.text for line in (*second, *last)] == ["now", "half"]
    assert watched.look() is None


def test_an_attempt_that_starts_later_is_heard_too(sessions: Sessions) -> None:
    session = sessions.start()
    watched = SessionWatch(sessions.open(), session)
    look(watched)

    sessions.log(session).record(STARTED)
    look(watched)
    say(sessions, session, "hello\n")

    assert look(watched).output == (OutputLine(DEV, 1, "hello"),)


def test_that_an_engine_starts_and_ends_is_seen(sessions: Sessions) -> None:
    session, seconds = sessions.start(), iter(range(0, 1000, 10))
    watched = SessionWatch(sessions.open(), session, monotonic=lambda: next(seconds))
    look(watched)

    with running_engine(sessions, session):
        started, running = look(watched), watched.view()
    ended = look(watched)

    assert (started.engine_changed, running.process) == (True, os.getpid())
    assert (ended.engine_changed, watched.view().running) == (True, False)


def test_two_watchers_show_the_same_and_write_nothing(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())
    state = sessions.repo.path / ".workflow"
    watchers = [SessionWatch(sessions.open(), session) for _ in range(2)]
    before = every_file(state)

    views = [watched.view() for watched in watchers if look(watched)]

    assert views[0] == views[1]
    assert views[0].seq == sessions.state(session).seq
    assert watchers[0].layout() == watchers[1].layout()
    assert every_file(state) == before


def test_watching_yields_a_view_whenever_something_has_changed(sessions: Sessions) -> None:
    session, slept = sessions.start(), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            sessions.log(session).record(events.Warned("odd"))

    seen = watch(sessions.open(), session, sleep=sleep)

    assert next(seen).view.warnings == ()
    assert next(seen).view.warnings == ("odd",)
    assert slept == [INTERVAL, INTERVAL]


def test_an_unknown_session_cannot_be_watched(sessions: Sessions) -> None:
    sessions.start()

    with pytest.raises(UserError, match='no session "ids-none"'):
        SessionWatch(sessions.open(), SessionId("ids-none"))


def followed(
    sessions: Sessions, session: SessionId, *steps: Callable[[], object], now: float = 0, until_question: bool = False
) -> tuple[list[str], Ending]:
    """The lines, while one step is done after each look, and how following ended."""
    left = list(steps)
    lines = follow(
        sessions.open(),
        session,
        until_question=until_question,
        sleep=lambda _: left.pop(0)(),
        now=lambda: now or clock.now(),
    )
    *told, ended = lines
    assert isinstance(ended, Followed)
    return [line.text for line in told if not isinstance(line, Followed)], ended.ending


def test_a_session_that_is_over_is_told_and_followed_no_further(sessions: Sessions) -> None:
    lines, ending = followed(sessions, sessions.start("Fix it", *failed()))

    assert lines[-3:] == [
        "DEV-001 failed: no luck",
        "VERIFY-001 skipped: DEV-001 failed",
        "finished: 1 failed, 1 skipped",
    ]
    assert ending is Ending.over


def test_a_question_ends_following_only_if_that_is_wanted(sessions: Sessions) -> None:
    session = sessions.start("Fix it", events.GateOpened(plan_gate()))

    with running_engine(sessions, session):
        _, until = followed(sessions, session, until_question=True)
        log = sessions.log(session)
        lines, _ = followed(
            sessions,
            session,
            lambda: log.record(events.GateAnswered("plan", "reject")),
            lambda: log.record(events.Finished("the plan was rejected")),
            lambda: sessions.repository.journal.release(session),
        )

    assert until is Ending.waiting
    assert lines[-2:] == ["plan was answered: reject", "finished: the plan was rejected"]


@pytest.mark.parametrize(
    ("happened", "ending"),
    [((events.GateOpened(plan_gate()),), Ending.waiting), ((STARTED,), Ending.interrupted)],
)
def test_without_an_engine_following_ends_when_none_has_started_for_a_while(
    sessions: Sessions, happened: tuple[events.Event, ...], ending: Ending
) -> None:
    session = sessions.start("Fix it", *happened)

    assert followed(sessions, session, now=sessions.state(session).updated_at + STARTING + 1)[1] is ending


def test_the_history_is_that_of_the_last_look(sessions: Sessions) -> None:
    session = sessions.start("Fix it", STARTED)
    watched = SessionWatch(sessions.open(), session)
    look(watched)

    first = watched.history()
    sessions.log(session).record(INTERRUPTED)
    unseen = watched.history()
    look(watched)

    assert [attempt.outcome for attempt in first.attempts] == [AttemptOutcome.running]
    assert unseen == first
    assert watched.history() == evolve(History(), sessions.repository.journal.read(session), DEVELOPMENT)


def test_all_sessions_of_a_repository_are_watched_and_what_they_need(sessions: Sessions) -> None:
    broken = sessions.start("Fix it", *failed())
    watched = RepositoryWatch(sessions.open())

    first, at_first, again = watched.look(), watched.needs(), watched.look()
    asking = sessions.start("Ask me", events.GateOpened(plan_gate()))
    later, then = watched.look(), watched.needs()
    sessions.log(broken).record(Accepted("main", "c" * 40))

    assert (first, again, later, watched.look()) == (True, False, True, True)
    assert [(need.kind, need.session) for need in at_first] == [(NeedKind.failed, broken)]
    assert [(need.kind, need.session) for need in then] == [(NeedKind.question, asking), (NeedKind.failed, broken)]
    assert [need.session for need in watched.needs()] == [asking]
    assert [line.standing for line in watched.sessions()] == ["failed (accepted)", "waiting"]


def test_an_engine_of_any_session_is_seen(sessions: Sessions) -> None:
    session = sessions.start()
    watched = RepositoryWatch(sessions.open())
    watched.look()

    with running_engine(sessions, session):
        changed = watched.look()

        assert (changed, [line.standing for line in watched.sessions()]) == (True, ["running"])
