"""Opens a repository, and finds the session that is meant."""

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import IterdevError, UserError
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository


class SessionChoice(Struct, frozen=True):
    """Several sessions may be meant: the user chooses one of them."""

    sessions: tuple[SessionId, ...]
    otherwise: SessionId | UserError
    """The session to take where no user can be asked, or the error."""

    def unasked(self) -> SessionId:
        if isinstance(self.otherwise, UserError):
            raise self.otherwise
        return self.otherwise


def open_repository(folder: Path) -> Repository:
    """The repository that the folder is in."""
    return Repository(folder)


def session_ids(folder: Path) -> list[SessionId]:
    """Every session of the repository that the folder is in; outside of a repository there are none."""
    try:
        return Repository(folder).sessions()
    except IterdevError:
        return []


def named_or_newest(repository: Repository, name: str | None) -> SessionId:
    return repository.find(name) if name else repository.newest()


def to_continue(repository: Repository, name: str = "") -> SessionId | SessionChoice:
    """The session of that name, or the newest that is not finished."""
    sessions = repository.sessions()
    if name in sessions:
        return SessionId(name)
    if name:
        return _choice(sessions, _found(repository, name))
    unfinished = repository.unfinished()
    if unfinished:
        return unfinished[-1]
    newest = repository.newest()
    hint = f"iterdev status {newest}; all sessions: {', '.join(sessions)}"
    return _choice(sessions, UserError("No session is unfinished", hint=hint))


def to_resume(repository: Repository) -> SessionId | SessionChoice:
    """The only session that is not finished; of several, the user chooses one."""
    unfinished = repository.unfinished()
    return _choice(unfinished, unfinished[-1]) if len(unfinished) > 1 else to_continue(repository)


def _choice(sessions: Iterable[SessionId], otherwise: SessionId | UserError) -> SessionChoice:
    return SessionChoice(tuple(sessions), otherwise)


def _found(repository: Repository, name: str) -> SessionId | UserError:
    try:
        return repository.find(name)
    except UserError as error:
        return error
