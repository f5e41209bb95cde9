"""Edits of a session by a person, with or without a running engine.

What writes session folders is imported where it is used: commands that only look at a session need this module too.
"""
# ruff: noqa: PLC0415 - see above

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from iterdev.core.errors import UserError
from iterdev.core.session.state import State
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.repository import Repository
from iterdev.host import session_lease
from iterdev.store.session_log import SessionLog


@contextmanager
def edit_session(repository: Repository, session: SessionId) -> Iterator[SessionLog]:
    """The session's log; if no engine runs, the session folder is brought up to date afterwards."""
    log = repository.log(session)
    before = log.state.seq
    yield log
    folder = repository.folder(log.state)
    if log.state.seq == before or not folder.is_dir():
        return
    with suppress(session_lease.Held), session_lease.lease(folder, wait=lambda: False):
        log.refresh()
        project(repository, log)


def project(repository: Repository, log: SessionLog) -> None:
    """Brings the session folder up to date while the caller holds the session's lease."""
    from iterdev.store.session_folder.projector import Projector

    projector = Projector(repository.folder(log.state), repository.journal, log.team)
    projector.prepare()
    projector.write(log.state)


def table_edited(repository: Repository, state: State) -> bool:
    """Whether a person changed tasks.csv, and no engine has read it yet."""
    from iterdev.store.session_folder.projector import Projector

    return Projector(repository.folder(state), repository.journal, repository.team(state)).is_edited(state)


def require_task(state: State, text: str) -> TaskId:
    if text not in state.tasks.plan:
        raise UserError(f'There is no task "{text}" in {state.session.id}', hint=f"iterdev status {state.session.id}")
    return TaskId(text)


def redacted_text(repository: Repository, text: str, example: str) -> str:
    """A text of a person without secrets."""
    redacted = repository.redact(text).strip()
    if not redacted:
        raise UserError("The text is empty", hint=example)
    return redacted
