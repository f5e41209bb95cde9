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
from iterdev.store.session_log import Book


def follow(repository: Repository, book: Book, *, mark: Mark) -> None:
    """Carries out a rollback that was begun, also by somebody who was killed before the end of it."""
    state = book.state
    if not state.rewind:
        return
    kept = f"refs/iterdev/{book.session}/rolled-back/{state.rewind}"
    try:
        landing.rewind(repository.top, ids.branch(book.session), state.tip, kept)
    except HostError as error:
        book.append(events.RollbackFailed(state.rewind, error.message))
        raise
    mark("branch moved back")
    _withdraw(repository, book)
    mark("before RollbackCompleted")
    book.append(events.RollbackCompleted(state.rewind))
    mark("after RollbackCompleted")
    Projector(repository.folder(state), repository.journal).write(book.state)
    mark("folder written")


def _withdraw(repository: Repository, book: Book) -> None:
    entries = repository.journal.read(book.session)
    before = replay(entries[: last_rollback(entries)[0]])
    if before:
        Projector(repository.folder(before), repository.journal).withdraw(before, book.state)


def last_rollback(entries: Sequence[events.Entry]) -> tuple[int, events.RollbackStarted]:
    (*_, last) = (
        (place, entry.event) for place, entry in enumerate(entries) if isinstance(entry.event, events.RollbackStarted)
    )
    return last
