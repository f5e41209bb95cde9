"""Rolls a session back to before a task or a wave."""

from collections.abc import Iterator
from contextlib import contextmanager

from iterdev.core.errors import UserError
from iterdev.core.session import events, rollback
from iterdev.engine.recovery import recover
from iterdev.engine.repository import Repository
from iterdev.engine.rollback import follow, last_rollback
from iterdev.execution.context import Mark
from iterdev.host import paths, session_lease
from iterdev.host.workspaces.pool import Pool
from iterdev.store.session_log import SessionLog


def roll_back(
    repository: Repository, log: SessionLog, target: str, reason: str = "", *, mark: Mark = lambda _: None
) -> events.RollbackStarted:
    """Whoever was killed while going back has it finished first; to ask for the same again is to ask for just that."""
    with _alone(repository, log):
        if begun := _begun(repository, log):
            follow(repository, log, mark=mark)
            if begun.target == target:
                return begun
        _recover(repository, log, mark)
        planned = rollback.plan(repository.journal.read(log.session), target, repository.redact(reason))
        mark("before RollbackStarted")
        log.record(planned)
        mark("after RollbackStarted")
        follow(repository, log, mark=mark)
        return planned


@contextmanager
def _alone(repository: Repository, log: SessionLog) -> Iterator[None]:
    """No engine can take up the session meanwhile; one that died is waited for until all its processes are gone."""
    folder = repository.folder(log.state)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with session_lease.lease(folder, wait=lambda: not repository.engine_alive(log.state)):
            log.refresh()
            yield
    except session_lease.Held:
        raise UserError(f'"{log.session}" is still running', hint="stop it first (Ctrl-C), then try again") from None


def _recover(repository: Repository, log: SessionLog, mark: Mark) -> None:
    """Attempts of an engine that died end before what they belong to is undone."""
    pool = Pool(repository.top, paths.workspaces_of(repository.top) / log.session, paths.temps())
    recover(log, repository.top, pool, mark)
    pool.close()


def _begun(repository: Repository, log: SessionLog) -> events.RollbackStarted | None:
    """The rollback that the branch has not followed yet."""
    return last_rollback(repository.journal.read(log.session))[1] if log.state.rewind else None
