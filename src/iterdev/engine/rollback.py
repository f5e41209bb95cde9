"""Carries out a rollback that the journal says has begun: the branch and the session folder follow."""

from collections.abc import Sequence

from iterdev.core import ids
from iterdev.core.errors import HostError
from iterdev.core.session import events
from iterdev.core.session.fold import replay
from iterdev.engine.repository import Repository
from iterdev.execution.context import Mark
from iterdev.host.git import landing
from iterdev.store.session_folder.projector import Projector
from iterdev.store.session_log import SessionLog


def follow(repository: Repository, log: SessionLog, *, mark: Mark) -> None:
    """Carries out a rollback that was begun, also by somebody who was killed before the end of it."""
    state = log.state
    if not state.rewind:
        return
    kept = f"refs/iterdev/{log.session}/rolled-back/{state.rewind}"
    try:
        landing.rewind(repository.top, ids.branch(log.session), state.tip, kept)
    except HostError as error:
        log.record(events.RollbackFailed(state.rewind, error.message))
        raise
    mark("branch moved back")
    _withdraw(repository, log)
    mark("before RollbackCompleted")
    log.record(events.RollbackCompleted(state.rewind))
    mark("after RollbackCompleted")
    Projector(repository.folder(state), repository.journal).write(log.state)
    mark("folder written")


def _withdraw(repository: Repository, log: SessionLog) -> None:
    entries = repository.journal.read(log.session)
    before = replay(entries[: last_rollback(entries)[0]])
    if before:
        Projector(repository.folder(before), repository.journal).withdraw(before, log.state)


def last_rollback(entries: Sequence[events.Entry]) -> tuple[int, events.RollbackStarted]:
    (*_, last) = (
        (place, entry.event) for place, entry in enumerate(entries) if isinstance(entry.event, events.RollbackStarted)
    )
    return last
