"""Going back: the journal says first what no longer holds, then the session's branch and its folder follow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from iterdev.core import events as e
from iterdev.core import names, rollbacks
from iterdev.core.errors import HostError, UserError
from iterdev.core.fold import replay
from iterdev.engine.book import Book
from iterdev.engine.kit import Mark
from iterdev.engine.recovery import recover
from iterdev.engine.repository import Repository
from iterdev.host import landing, lease, paths
from iterdev.host.workspaces import Pool
from iterdev.store.projections import Projector


def roll_back(
    repository: Repository, book: Book, target: str, reason: str = "", *, mark: Mark = lambda _: None
) -> e.RollbackStarted:
    """Whoever was killed while going back has it finished first; to ask for the same again is to ask for just that."""
    with _alone(repository, book):
        if begun := _begun(repository, book):
            follow(repository, book, mark=mark)
            if begun.target == target:
                return begun
        _recover(repository, book, mark)
        planned = rollbacks.plan(repository.journal.read(book.session), target, repository.redact(reason))
        mark("before RollbackStarted")
        book.append(planned)
        mark("after RollbackStarted")
        follow(repository, book, mark=mark)
        return planned


def follow(repository: Repository, book: Book, *, mark: Mark) -> None:
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
    mark("branch moved back")
    _withdraw(repository, book)
    mark("before RollbackCompleted")
    book.append(e.RollbackCompleted(state.rewind))
    mark("after RollbackCompleted")
    Projector(repository.folder(state), repository.journal).write(book.state)
    mark("folder written")


@contextmanager
def _alone(repository: Repository, book: Book) -> Iterator[None]:
    """No engine can take up the session meanwhile; one that died is waited for until all its processes are gone."""
    folder = repository.folder(book.state)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with lease.lease(folder, wait=lambda: not repository.engine_alive(book.state)):
            book.refresh()
            yield
    except lease.Held:
        raise UserError(f'"{book.session}" is still running', hint="stop it first (Ctrl-C), then try again") from None


def _recover(repository: Repository, book: Book, mark: Mark) -> None:
    """Attempts of an engine that died end before what they belong to is undone."""
    pool = Pool(repository.top, paths.workspaces_of(repository.top) / book.session, paths.temps())
    recover(book, repository.top, pool, mark)
    pool.close()


def _begun(repository: Repository, book: Book) -> e.RollbackStarted | None:
    """The rollback that the branch has not followed yet."""
    return _last(repository.journal.read(book.session))[1] if book.state.rewind else None


def _withdraw(repository: Repository, book: Book) -> None:
    entries = repository.journal.read(book.session)
    before = replay(entries[: _last(entries)[0]])
    if before:
        Projector(repository.folder(before), repository.journal).withdraw(before, book.state)


def _last(entries: Sequence[e.Entry]) -> tuple[int, e.RollbackStarted]:
    (*_, last) = (
        (place, entry.event) for place, entry in enumerate(entries) if isinstance(entry.event, e.RollbackStarted)
    )
    return last
