"""Carries out a rollback that the journal says has begun: the branch and the session folder follow."""

from collections.abc import Sequence

from iterdev.core import ids
from iterdev.core.errors import HostError
from iterdev.core.session.events import Entry, RollbackCompleted, RollbackFailed, RollbackStarted
from iterdev.core.session.fold import replay
from iterdev.engine.repository import Repository
from iterdev.execution.contract import Effect
from iterdev.host.git import landing
from iterdev.store.session_folder.projector import Projector
from iterdev.store.session_log import SessionLog


def follow(repository: Repository, log: SessionLog, effect: Effect) -> None:
    """Carries out a rollback that was begun, also by a process that was killed before its end."""
    rewind, tip = log.state.branch.rewind, log.state.branch.tip
    if not rewind:
        return
    kept = f"refs/iterdev/{log.session}/rolled-back/{rewind}"
    projector = Projector(repository.folder(log.state), repository.journal, log.team)
    try:
        with effect("move branch back"):
            landing.rewind(repository.top, ids.branch(log.session), tip, kept)
    except HostError as error:
        log.record(RollbackFailed(rewind, error.message))
        raise
    entries = repository.journal.read(log.session)
    if before := replay(entries[: last_rollback(entries)[0]], log.team):
        projector.withdraw(before, log.state)
    with effect("record", events="RollbackCompleted"):
        log.record(RollbackCompleted(rewind))
    with effect("write folder"):
        projector.write(log.state)


def last_rollback(entries: Sequence[Entry]) -> tuple[int, RollbackStarted]:
    (*_, last) = (
        (place, entry.event) for place, entry in enumerate(entries) if isinstance(entry.event, RollbackStarted)
    )
    return last
