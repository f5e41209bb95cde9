"""Rolls a session back to before a task or a wave."""

from contextlib import closing

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.rules import rollback
from iterdev.core.session.events import RollbackStarted
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.effects import Effects
from iterdev.engine.recovery import complete_rollback, end_attempts, last_rollback
from iterdev.engine.repository import Repository
from iterdev.execution.contract import Effect
from iterdev.store.session_log import SessionLog

NO_EFFECTS = Effects()


class RolledBack(Struct, frozen=True, kw_only=True):
    branch: str
    tip: str
    undone: tuple[TaskId, ...]
    accepted: str
    """The commit of the user's branch that keeps work which was accepted before; empty if there is none."""
    accepted_into: str


def roll_back(
    repository: Repository, session: SessionId, target: str, reason: str = "", *, effect: Effect = NO_EFFECTS
) -> RolledBack:
    """Goes back to before the target. A rollback that was interrupted is finished first."""
    log = repository.log(session)
    with repository.lease(log):
        begun = _last(repository, log) if log.state.branch.rewind else None
        complete_rollback(repository, log, effect)
        # Asking for the same rollback again completes the one that was interrupted.
        if begun is None or begun.target != target:
            begun = _begin(repository, log, target, repository.redact(reason), effect)
            complete_rollback(repository, log, effect)
    state = log.state
    return RolledBack(
        branch=ids.branch(session),
        tip=begun.tip,
        undone=begun.undone,
        accepted=state.lifecycle.accepted,
        accepted_into=state.session.branch,
    )


def _begin(repository: Repository, log: SessionLog, target: str, reason: str, effect: Effect) -> RollbackStarted:
    # Attempts of an engine that died end before what they belong to is undone.
    with closing(repository.workspaces(log.session)) as pool:
        end_attempts(log, repository.top, pool, effect)
    planned = rollback.plan(repository.journal.read(log.session), log.team, target, reason)
    with effect("record", events="RollbackStarted"):
        log.record(*planned)
    return _last(repository, log)


def _last(repository: Repository, log: SessionLog) -> RollbackStarted:
    return last_rollback(repository.journal.read(log.session))[1]
