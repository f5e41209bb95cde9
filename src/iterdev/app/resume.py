"""Runs the engine of a session until it is over, has to ask, or is interrupted."""

import msgspec
from msgspec import Struct

from iterdev.app import archive
from iterdev.app.answer import answer_with_defaults, start_next_sprint
from iterdev.app.archive import CompletionFailure
from iterdev.core.session.announcements import COORDINATOR
from iterdev.core.session.state import State
from iterdev.core.session.worker_callbacks import known_role
from iterdev.core.types import Ending, Role, SessionId
from iterdev.core.views.session import SessionView, session_view
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver, drive
from iterdev.engine.run_scope import OneRole, OneStep, Pace
from iterdev.host import clock
from iterdev.store.session_log import SessionLog


class RunResult(Struct, frozen=True, kw_only=True):
    ending: Ending
    view: SessionView
    idle_role: Role | None = None
    """The one role that was run, if nothing was ready for it."""
    failure: CompletionFailure | None = None
    """Why the session could not be archived or kept as configured."""


async def resume(
    repository: Repository, session: SessionId, observer: RunObserver, *, auto: bool = False, step: bool = False
) -> RunResult:
    """Goes on with a session. One that waits between two sprints starts the next one."""
    start_next_sprint(SessionLog(repository.journal, session, now=clock.now))
    scope = OneStep() if step else None
    return await run_session(repository, session, observer, auto=auto, scope=scope)


async def run_role(repository: Repository, session: SessionId, role: Role, observer: RunObserver) -> RunResult:
    """Runs the next task of one role, and for the developer those after it."""
    scope = OneRole(role)
    result = await run_session(repository, session, observer, scope=scope)
    return result if scope.taken else msgspec.structs.replace(result, idle_role=role)


def worker_role(name: str) -> Role | None:
    """The role of one worker; the coordinator is the whole team."""
    return None if name == COORDINATOR else known_role(name)


def is_done(repository: Repository, session: SessionId) -> bool:
    """Whether there is nothing left for an engine to do."""
    return _is_done(repository.state(session))


async def run_session(
    repository: Repository,
    session: SessionId,
    observer: RunObserver,
    *,
    auto: bool = False,
    scope: Pace | None = None,
) -> RunResult:
    """Runs the engine unless all work is done, and completes a session that is over as the configuration says.

    With `auto`, open questions and later ones are answered with their defaults.
    """
    log = SessionLog(repository.journal, session, now=clock.now)
    ending = Ending.over
    if not _is_done(log.state):
        if auto:
            answer_with_defaults(log)
        ending = await drive(repository, session, observer, pace=scope)
    failure = archive.complete_as_configured(repository, session) if ending is Ending.over else None
    return RunResult(ending=ending, view=session_view(repository.state(session), engine_alive=False), failure=failure)


def _is_done(state: State) -> bool:
    return state.is_finished and all(progress.status.is_final for progress in state.progress.values())
