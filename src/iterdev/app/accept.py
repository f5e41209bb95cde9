"""Brings the branch of a finished session into the user's branch."""

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.session.events import Accepted
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.host.git import landing, refs


def accept(repository: Repository, session: SessionId) -> Accepted:
    log = repository.log(session)
    state = log.state
    if repository.engine_alive(state.session):
        raise repository.still_running(session)
    if not state.lifecycle.is_finished:
        raise UserError(f'"{session}" is not finished', hint=f"iterdev resume {session}")
    if state.branch.tip == state.session.base:
        raise UserError(f'"{session}" has changed nothing', hint=f"iterdev report {session}")
    into = state.session.branch or refs.current_branch(repository.top)
    accepted = Accepted(into, landing.accept(repository.top, ids.branch(session), into, session))
    log.record(accepted)
    return accepted
