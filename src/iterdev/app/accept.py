"""Brings the branch of a finished session into the user's branch."""

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.session.events import Accepted
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.host.git import landing, refs
from iterdev.store.session_log import SessionLog


def accept(repository: Repository, session: SessionId) -> Accepted:
    log = SessionLog(repository.journal, session, now=clock.now)
    state = log.state
    if repository.engine_alive(state):
        raise UserError(f'"{session}" is still running', hint=f"iterdev status {session}")
    if not state.is_finished:
        raise UserError(f'"{session}" is not finished', hint=f"iterdev resume {session}")
    if state.tip == state.session.base:
        raise UserError(f'"{session}" has changed nothing', hint=f"iterdev report {session}")
    into = state.session.branch or refs.current_branch(repository.top)
    accepted = Accepted(into, landing.accept(repository.top, ids.branch(session), into, session))
    log.record(accepted)
    return accepted
