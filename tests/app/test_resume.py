"""Runs of a whole session, without a command line."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
from tests.app.conftest import Sessions
from tests.session_files import left_behind

from iterdev.app.answer import answer
from iterdev.app.completion import accept
from iterdev.app.doctor import findings
from iterdev.app.inspect import replay, status
from iterdev.app.resume import OneStep, RunObserver, is_done, one_worker, run_detached, run_session
from iterdev.app.sessions import Repository, to_resume
from iterdev.app.start import Request, read_table, start
from iterdev.core.processes import ProcessIdentity
from iterdev.core.session.events import GateAnswered
from iterdev.core.types import Ending, Phase, SessionId, Status
from iterdev.core.views.gates import GateView
from iterdev.core.views.session import SessionView
from iterdev.host import clock
from iterdev.teams.development.roles import Pipeline, Role


def new(sessions: Sessions, **request: object) -> SessionId:
    return start(sessions.repository, Request(requirement="Add a greeting", pipeline=Pipeline.patch, **request))


def test_an_observer_sees_lines_views_and_questions(sessions: Sessions) -> None:
    session = new(sessions)
    lines: list[str] = []
    views: list[SessionView] = []
    asked: list[str] = []

    async def ask(gate: GateView) -> str:
        asked.append(gate.id)
        return gate.choices[0]

    observer = RunObserver(ask=ask, progress=lines.append, show=lambda view: views.append(view(1)))
    result = anyio.run(run_session, sessions.repository, session, observer)

    assert (result.ending, result.view.outcome.succeeded, result.failure) == (Ending.over, True, None)
    assert asked == ["plan"]
    assert "  DEV-001 started (developer, mine, attempt 1)" in lines
    assert lines[-1].startswith("  VERIFY-001 completed")
    assert {len(view.tasks) for view in views[-3:]} == {1}
    assert views[-1].omitted == {Status.completed: 1}
    assert is_done(sessions.repository, session)


def test_without_somebody_to_ask_a_run_waits_and_goes_on_after_the_answer(sessions: Sessions) -> None:
    session = new(sessions)

    waiting = anyio.run(run_session, sessions.repository, session, RunObserver())
    answered = answer(sessions.repository, session, "plan", "approve").view
    done = anyio.run(partial(run_session, resumes=True), sessions.repository, session, RunObserver())

    assert (waiting.ending, [gate.id for gate in waiting.view.gates]) == (Ending.waiting, ["plan"])
    assert (answered.running, answered.gates) == (False, ())
    assert done.ending is Ending.over
    assert status(sessions.repository, session) == done.view


def test_a_step_ends_before_the_work_is_done(sessions: Sessions) -> None:
    session = new(sessions, auto=True)

    result = anyio.run(partial(run_session, scope=OneStep()), sessions.repository, session, RunObserver())

    assert result.ending is Ending.stepped
    assert result.view.counts[Status.completed] == 1
    assert not is_done(sessions.repository, session)


def test_a_role_without_a_ready_task_is_idle(sessions: Sessions) -> None:
    session = new(sessions, auto=True)
    scopes = [one_worker(sessions.repository, role) for role in (Role.reviewer, Role.developer)]

    idle, busy = (
        anyio.run(partial(run_session, scope=scope), sessions.repository, session, RunObserver()) for scope in scopes
    )

    assert (idle.idle_role, busy.idle_role) == (Role.reviewer, None)
    assert busy.view.tasks[0].status is Status.completed


def test_a_finished_session_is_not_run_again(sessions: Sessions) -> None:
    session = new(sessions, auto=True)
    anyio.run(run_session, sessions.repository, session, RunObserver())
    before = sessions.kinds(session)

    again = anyio.run(run_session, sessions.repository, session, RunObserver())

    assert again.ending is Ending.over
    assert sessions.kinds(session) == before


def killed_at_its_end(sessions: Sessions) -> SessionId:
    """A session whose engine was killed after the last event: nothing that follows it was done."""
    session = new(sessions, auto=True)
    anyio.run(run_session, sessions.repository, session, RunObserver())
    repository, state = sessions.repository, sessions.state(session)
    repository.workspaces(session).borrow(state.branch.tip, task="DEV-001", number=1)
    (repository.folder(state) / "context.md").unlink()
    repository.journal.take(session, ProcessIdentity(pid=2**22 + 1))
    return session


def test_resume_does_what_an_engine_that_was_killed_at_its_end_did_not(sessions: Sessions) -> None:
    session = killed_at_its_end(sessions)

    found = to_resume(sessions.repository)
    result = anyio.run(run_session, sessions.repository, session, RunObserver())

    assert (found, result.ending) == (session, Ending.over)
    assert (sessions.repository.folder(sessions.state(session)) / "context.md").exists()
    assert sessions.repository.incomplete() == []
    assert left_behind(sessions.repo) == []


def test_accept_does_what_an_engine_that_was_killed_at_its_end_did_not(sessions: Sessions) -> None:
    session = killed_at_its_end(sessions)

    accept(sessions.repository, session)

    assert sessions.repository.incomplete() == []
    assert left_behind(sessions.repo) == []


def test_doctor_names_a_session_whose_engine_was_killed_at_its_end(sessions: Sessions) -> None:
    session = killed_at_its_end(sessions)

    (finding,) = (one for one in findings(sessions.repo.path) if one.subject == f"session {session}")

    assert (finding.problem, finding.hint) == ("its engine died", f"iterdev resume {session}")


def test_a_machine_that_sleeps_for_an_hour_in_the_middle_of_a_wave_fails_none_of_its_tasks(sessions: Sessions) -> None:
    asleep = [0.0]
    repository = Repository(sessions.repo.path, now=lambda: clock.now() + asleep[0])
    sessions.opened.append(repository)
    rows = read_table(repository, table(sessions, "DEV-001", "DEV-002"))
    session = start(repository, Request(requirement="Two things", auto=True, concurrency=1), rows)

    def wake(line: str) -> None:
        asleep[0] = 3600.0 if "DEV-001 completed" in line else asleep[0]

    result = anyio.run(run_session, repository, session, RunObserver(progress=wake))

    assert result.view.outcome.succeeded
    assert sessions.kinds(session).count("ClockChanged") == 1
    assert replay(sessions.repository, session).difference is None


def table(sessions: Sessions, *tasks: str) -> Path:
    path = sessions.repo.home / "mine.csv"
    path.write_text("id,description,role\n" + "".join(f"{task},do it,developer\n" for task in tasks), encoding="utf-8")
    return path


def limited(sessions: Sessions, seconds: float) -> Repository:
    """The repository with an engine in the background that waits at a question for so long."""
    settings = (sessions.repo.path / "iterdev.toml").read_text(encoding="utf-8")
    sessions.repo.write("iterdev.toml", f"{settings}\n[limits]\ngate = {seconds}\n")
    return sessions.open()


def test_an_engine_in_the_background_ends_when_it_has_waited_for_long_enough(sessions: Sessions) -> None:
    session = new(sessions)

    result = anyio.run(run_detached, limited(sessions, 0.01), session, RunObserver())

    assert (result.ending, result.view.detached) == (Ending.waiting, False)
    assert sessions.state(session).lifecycle.detached


def test_an_answer_to_an_engine_that_is_giving_up_is_not_lost(sessions: Sessions) -> None:
    session = new(sessions)

    def answer_late(make: Callable[[int], SessionView]) -> None:
        if (view := make(1)).phase is Phase.paused and view.gates:
            sessions.log(session).record(GateAnswered("plan", "approve"))

    observer = RunObserver(show=answer_late)
    result = anyio.run(run_detached, limited(sessions, 0.01), session, observer)

    assert (result.ending, result.view.outcome.succeeded) == (Ending.over, True)


def test_an_engine_of_a_terminal_is_not_started_again_by_an_answer(sessions: Sessions) -> None:
    session = new(sessions)
    anyio.run(run_session, sessions.repository, session, RunObserver())

    answered = answer(sessions.repository, session, "plan", "approve")

    assert (answered.restarted, answered.view.running) == (False, False)
