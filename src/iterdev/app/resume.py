"""Runs the engine of a session until it is over, has to ask, or is interrupted; or takes one step of it."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from iterdev.app import completion
from iterdev.app.completion import CompletionFailure
from iterdev.app.edits import project, table_edited
from iterdev.app.inspect import status
from iterdev.app.live.background import BackgroundEngine, UnattendedQuestions
from iterdev.core.collaboration.messages import COORDINATOR
from iterdev.core.errors import UserError
from iterdev.core.session.events import EngineStarted, Event, GateAnswered, PolicyChanged, RetryRequested
from iterdev.core.session.state import State
from iterdev.core.types import Ending, Phase, Role, SessionId
from iterdev.core.views.previews import (
    Refusal,
    ResumePreview,
    RetryPreview,
    refusal,
    resume_preview,
    retry_preview,
)
from iterdev.core.views.session import SessionView
from iterdev.engine.effects import NO_EFFECTS
from iterdev.engine.loop import BeforeStarts, OneStep, OneWorker
from iterdev.engine.recovery import complete_run
from iterdev.engine.repository import Repository
from iterdev.engine.run import MakeExecutor, RunObserver, drive
from iterdev.execution.local import LocalExecutor
from iterdev.store.session_log import SessionLog
from iterdev.teams.contract import Team

STEP_LOG, DETACHED_LOG = "logs/step.log", "logs/detached.log"
GRACE = 2.0
"""Seconds that workers are given to end before a step is over without them: quick results are shown at once."""
PATIENCE = 30.0
"""Seconds until an engine in the background has begun; it may have to wait for the processes of a dead one to end."""


class Detached(Struct, frozen=True, kw_only=True):
    """An engine that was started in the background."""

    pid: int
    log: str
    """The file that has what it prints."""
    has_ended: bool
    """A short session may be over already."""
    view: SessionView


class RunResult(Struct, frozen=True, kw_only=True):
    ending: Ending
    view: SessionView
    idle_role: Role | None = None
    """The one role that was run, if nothing was ready for it."""
    failure: CompletionFailure | None = None
    """Why the session could not be archived or kept as configured."""


def one_worker(repository: Repository, name: str) -> OneWorker | None:
    """The scope of a run that does the next task of one role; none for the coordinator, who is the whole team."""
    if name == COORDINATOR:
        return None
    if name not in repository.workers:
        raise UserError(f'There is no role "{name}"', hint=f"roles: {', '.join((COORDINATOR, *repository.workers))}")
    return OneWorker(name)


def is_done(repository: Repository, session: SessionId) -> bool:
    """Whether nothing is left for an engine to do, including in a table that a person has edited since."""
    state = repository.state(session)
    if not state.lifecycle.is_finished or any(not one.status.is_final for one in state.tasks.progress.values()):
        return False
    return state.lifecycle.phase is Phase.archived or not table_edited(repository, state)


async def run_session(
    repository: Repository,
    session: SessionId,
    observer: RunObserver,
    *,
    auto: bool = False,
    resumes: bool = False,
    scope: OneStep | BeforeStarts | OneWorker | None = None,
    executor: MakeExecutor = LocalExecutor,
) -> RunResult:
    """Runs the engine unless all work is done, and completes a session that is over as the configuration says.

    Of a session whose engine was killed when all work was done, what the engine does last is done now.

    With `auto`, open questions and later ones are answered with their defaults. With `resumes`, those are answered
    whose answer is that the user resumes the session: one that waits between two sprints starts the next one.
    """
    log = repository.log(session)
    if resumes:
        answer_on_resume(log)
    ending = Ending.over
    if not is_done(repository, session):
        if auto:
            answer_with_defaults(log)
        ending = await drive(repository, session, observer, scope=scope, executor=executor)
    else:
        complete_run(repository, session, NO_EFFECTS)
    failure = completion.complete_as_configured(repository, session) if ending is Ending.over else None
    idle = scope.worker if scope and not scope.taken else None
    return RunResult(ending=ending, view=status(repository, session), idle_role=idle, failure=failure)


async def run_detached(
    repository: Repository, session: SessionId, observer: RunObserver, *, executor: MakeExecutor = LocalExecutor
) -> RunResult:
    """Runs the engine in the background: it waits at questions, for as long as the configuration says."""
    questions = UnattendedQuestions(repository, session)
    waiting = msgspec.structs.replace(observer, ask=questions.ask, detached=True)
    while True:
        result = await run_session(repository, session, waiting, executor=executor)
        # The answer may have come when this engine had given up waiting for it, and still held the session.
        if result.ending is not Ending.waiting or repository.state(session).gates.open:
            return result


async def take_step(
    repository: Repository,
    session: SessionId,
    observer: RunObserver,
    *,
    auto: bool = False,
    executor: MakeExecutor = LocalExecutor,
) -> RunResult:
    """Decides and records what is due, starts the next tasks, and does not wait for their workers.

    An engine of its own, in the background, holds the session until they end. Until then there is nothing to do.
    """
    if repository.engine_alive(repository.state(session).session):
        return RunResult(ending=Ending.stepped, view=status(repository, session))
    scope = BeforeStarts()
    result = await run_session(repository, session, observer, auto=auto, resumes=True, scope=scope, executor=executor)
    if result.ending is not Ending.stepped or not scope.ready:
        return result
    return _hand_over(repository, session)


def _hand_over(repository: Repository, session: SessionId) -> RunResult:
    """Has the tasks started by an engine in the background."""
    engine = BackgroundEngine(repository, session, "--step", "--wait", log=STEP_LOG)
    log = repository.log(session)
    before = log.state.attempts

    def has_started() -> bool:
        log.refresh()
        return log.state.attempts != before

    engine.wait_until(has_started)
    engine.wait_until(lambda: False, GRACE)
    engine.require_success("The step failed")
    view = status(repository, session)
    over = Ending.over if view.outcome.is_over else Ending.stepped
    return RunResult(ending=Ending.waiting if view.gates else over, view=view)


def detach(repository: Repository, session: SessionId, *, auto: bool = False, resumes: bool = False) -> Detached:
    """Has the session run by an engine in the background, which waits at questions; returns when it has begun.

    `auto` and `resumes` are those of `run_session`.
    """
    log = repository.log(session)
    if repository.engine_alive(log.state.session):
        raise repository.still_running(session)
    if resumes:
        answer_on_resume(log)
    if auto:
        answer_with_defaults(log)
    before = log.state.seq
    engine = BackgroundEngine(repository, session, "--detached", log=DETACHED_LOG)

    def has_started() -> bool:
        return any(isinstance(entry.event, EngineStarted) for entry in repository.journal.read(session, before))

    engine.wait_until(has_started, PATIENCE)
    engine.require_success(f'The engine of "{session}" could not start')
    ended, view = engine.has_ended, status(repository, session)
    return Detached(pid=engine.pid, log=str(engine.log), has_ended=ended, view=view)


def answer_with_defaults(log: SessionLog) -> None:
    """Answers every open question with its default, and has later ones answered in the same way."""

    def rule(state: State, _: float) -> Sequence[Event]:
        answers = [GateAnswered(gate.id, gate.choices[0]) for gate in state.gates.open.values()]
        if state.policy.auto:
            return answers
        return [PolicyChanged(msgspec.structs.replace(state.policy, auto=True)), *answers]

    log.transact(rule)


def answer_on_resume(log: SessionLog) -> None:
    """Answers the open questions whose answer is that the user resumes the session."""

    def rule(state: State, _: float) -> Sequence[Event]:
        choices = ((gate.id, log.team.choice_on_resume(gate)) for gate in state.gates.open.values())
        return [GateAnswered(gate, choice) for gate, choice in choices if choice]

    log.transact(rule)


def retry(repository: Repository, session: SessionId) -> None:
    """Has the tasks done again that failed, and those that were skipped because of them; the team may add a fix."""
    log = repository.log(session)
    with repository.lease(log):
        log.transact(lambda state, _: [RetryRequested(), *_retried(state, log.team)])
        project(repository, log)


def _retried(state: State, team: Team) -> Sequence[Event]:
    session = state.session.id
    again = tuple(task.id for task, progress in state.tasks.rows() if progress.is_lost)
    if events := team.retried(state, again):
        return events
    raise UserError(f'No task of "{session}" failed or was skipped', hint=f"iterdev status {session}")


def preview_retry(repository: Repository, session: SessionId) -> RetryPreview:
    """What `retry` would do now. Nothing is changed."""
    state = repository.state(session)
    try:
        events = _retried(state, repository.team(state))
    except UserError as error:
        return retry_preview(state, (), refusal(error))
    running = repository.engine_alive(state.session)
    return retry_preview(state, events, refusal(repository.still_running(session)) if running else None)


def preview_resume(repository: Repository, session: SessionId) -> ResumePreview:
    """What an engine in the background would continue with now. Nothing is changed."""
    state = repository.state(session)
    refused = None
    if repository.engine_alive(state.session):
        refused = refusal(repository.still_running(session))
    elif is_done(repository, session):
        refused = Refusal(f'Nothing is left to do in "{session}"', f"iterdev status {session}")
    return resume_preview(state, refused)
