"""Rolls a session back to before a task or a wave."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.rules import rollback
from iterdev.core.session.events import RollbackStarted
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.effects import Effects
from iterdev.engine.recovery import recover
from iterdev.engine.repository import Repository
from iterdev.engine.rollback import follow, last_rollback
from iterdev.execution.contract import Effect
from iterdev.host import paths, session_lease
from iterdev.host.workspaces.pool import Pool
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
    with _alone(repository, log):
        begun = _begun(repository, log)
        if begun:
            follow(repository, log, effect)
        # To ask for the same again is to ask for the end of what was interrupted.
        if begun is None or begun.target != target:
            begun = _begin(repository, log, target, repository.redact(reason), effect)
            follow(repository, log, effect)
    state = log.state
    return RolledBack(
        branch=ids.branch(session),
        tip=begun.tip,
        undone=begun.undone,
        accepted=state.lifecycle.accepted,
        accepted_into=state.session.branch,
    )


def _begin(repository: Repository, log: SessionLog, target: str, reason: str, effect: Effect) -> RollbackStarted:
    _recover(repository, log, effect)
    planned = rollback.plan(repository.journal.read(log.session), log.team, target, reason)
    with effect("record", events="RollbackStarted"):
        log.record(*planned)
    return last_rollback(repository.journal.read(log.session))[1]


@contextmanager
def _alone(repository: Repository, log: SessionLog) -> Iterator[None]:
    """Keeps engines off the session, and waits for the processes of one that died to end."""
    folder = repository.folder(log.state)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with session_lease.lease(folder, wait=lambda: not repository.engine_alive(log.state.session)):
            log.refresh()
            yield
    except session_lease.Held:
        raise UserError(f'"{log.session}" is still running', hint="stop it first (Ctrl-C), then try again") from None


def _recover(repository: Repository, log: SessionLog, effect: Effect) -> None:
    """Attempts of an engine that died end before what they belong to is undone."""
    pool = Pool(repository.top, paths.workspaces_of(repository.top) / log.session, paths.temps())
    recover(log, repository.top, pool, effect)
    pool.close()


def _begun(repository: Repository, log: SessionLog) -> RollbackStarted | None:
    """The rollback that the branch has not followed yet."""
    return last_rollback(repository.journal.read(log.session))[1] if log.state.branch.rewind else None
