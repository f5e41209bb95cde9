"""Going back: the journal says first what no longer holds, then the session's branch and its folder follow."""

from iterdev.core import events as e
from iterdev.core import names, rollbacks
from iterdev.core.errors import HostError
from iterdev.core.fold import replay
from iterdev.engine.book import Book
from iterdev.engine.repository import Repository
from iterdev.host import landing
from iterdev.store.projections import Projector


def roll_back(repository: Repository, book: Book, target: str) -> e.RollbackStarted:
    planned = rollbacks.plan(repository.journal.read(book.session), target)
    book.append(planned)
    follow(repository, book)
    return planned


def follow(repository: Repository, book: Book) -> None:
    """Carries out a rollback that was begun, also by somebody who was killed before the end of it."""
    state = book.state
    if not state.rewind:
        return
    kept = f"refs/iterdev/{book.session}/rolled-back/{state.rewind}"
    try:
        landing.rewind(repository.top, names.branch(book.session), state.tip, kept)
    except HostError as error:
        book.append(e.RollbackFailed(state.rewind, error.message))
        raise
    _withdraw(repository, book)
    book.append(e.RollbackCompleted(state.rewind))
    Projector(repository.folder(state), repository.journal).write(book.state)


def _withdraw(repository: Repository, book: Book) -> None:
    entries = repository.journal.read(book.session)
    (*_, last) = [place for place, entry in enumerate(entries) if isinstance(entry.event, e.RollbackStarted)]
    before = replay(entries[:last])
    if before:
        Projector(repository.folder(before), repository.journal).withdraw(before, book.state)
