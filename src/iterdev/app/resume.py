"""Runs the engine of a session until it is over, has to ask, or is interrupted."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from iterdev.app import archive
from iterdev.app.answer import answer_on_resume, answer_with_defaults
from iterdev.app.archive import CompletionFailure
from iterdev.app.inspect import status
from iterdev.core.collaboration.messages import COORDINATOR
from iterdev.core.errors import UserError
from iterdev.core.session.events import Event, TasksReset
from iterdev.core.session.state import State
from iterdev.core.types import UNSUCCESSFUL, Ending, Role, SessionId
from iterdev.core.views.session import SessionView
from iterdev.engine.repository import Repository
from iterdev.engine.run import MakeExecutor, RunObserver, drive, local_executor
from iterdev.engine.run_scope import OneStep, OneWorker, RunScope


class RunResult(Struct, frozen=True, kw_only=True):
    ending: Ending
    view: SessionView
    idle_role: Role | None = None
    """The one role that was run, if nothing was ready for it."""
    failure: CompletionFailure | None = None
    """Why the session could not be archived or kept as configured."""


async def resume(
    repository: Repository,
    session: SessionId,
    observer: RunObserver,
    *,
    auto: bool = False,
    step: bool = False,
    executor: MakeExecutor = local_executor,
) -> RunResult:
    """Continues a session. One that waits between two sprints starts the next one."""
    answer_on_resume(repository.log(session))
    scope = OneStep() if step else None
    return await run_session(repository, session, observer, auto=auto, scope=scope, executor=executor)


async def run_role(
    repository: Repository,
    session: SessionId,
    role: Role,
    observer: RunObserver,
    *,
    executor: MakeExecutor = local_executor,
) -> RunResult:
    """Runs the next task of one role, and for a role that loops those after it."""
    scope = OneWorker(repository.team(repository.state(session)).roles[role])
    result = await run_session(repository, session, observer, scope=scope, executor=executor)
    return result if scope.taken else msgspec.structs.replace(result, idle_role=role)


def worker_role(repository: Repository, name: str) -> Role | None:
    """The role of one worker; the coordinator is the whole team."""
    if name == COORDINATOR:
        return None
    workers = list(dict.fromkeys(role for team in repository.teams.values() for role in team.workers))
    if name not in workers:
        raise UserError(f'There is no role "{name}"', hint=f"roles: {COORDINATOR}, {', '.join(workers)}")
    return name


def is_done(repository: Repository, session: SessionId) -> bool:
    """Whether there is nothing left for an engine to do."""
    return _is_done(repository.state(session))


async def run_session(
    repository: Repository,
    session: SessionId,
    observer: RunObserver,
    *,
    auto: bool = False,
    scope: RunScope | None = None,
    executor: MakeExecutor = local_executor,
) -> RunResult:
    """Runs the engine unless all work is done, and completes a session that is over as the configuration says.

    With `auto`, open questions and later ones are answered with their defaults.
    """
    log = repository.log(session)
    ending = Ending.over
    if not _is_done(log.state):
        if auto:
            answer_with_defaults(log)
        ending = await drive(repository, session, observer, scope=scope, executor=executor)
    failure = archive.complete_as_configured(repository, session) if ending is Ending.over else None
    return RunResult(ending=ending, view=status(repository, session), failure=failure)


def _is_done(state: State) -> bool:
    return state.lifecycle.is_finished and all(progress.status.is_final for progress in state.tasks.progress.values())


def reset_failed_tasks(repository: Repository, session: SessionId) -> None:
    """Makes the tasks pending again that failed, and those that were skipped because of them."""
    repository.log(session).transact(_reset)


def _reset(state: State, _: float) -> Sequence[Event]:
    again = tuple(task.id for task, progress in state.tasks.rows() if progress.status in UNSUCCESSFUL)
    if not again:
        session = state.session.id
        raise UserError(f'No task of "{session}" failed or was skipped', hint=f"iterdev status {session}")
    return [TasksReset(again)]
