"""Asks for an update of a session: the branch that it came from is brought into it when an engine runs."""

from msgspec import Struct

from iterdev.app.edits import project
from iterdev.core.errors import UserError
from iterdev.core.session.events import UpdateRequested
from iterdev.core.session.state import State
from iterdev.core.types import Phase, SessionId
from iterdev.engine.repository import Repository
from iterdev.host.git import refs


class UpdateRequest(Struct, frozen=True, kw_only=True):
    branch: str
    commit: str
    is_new: bool
    """The session does not have all of the branch yet."""
    was_finished: bool
    """All work of the session was done before."""


def request_update(repository: Repository, session: SessionId) -> UpdateRequest:
    """Records that the newest commit of the user's branch is to be brought in; no engine may run meanwhile."""
    log = repository.log(session)
    with repository.lease(log):
        state = log.state
        _check(state)
        branch = state.session.branch or refs.current_branch(repository.top)
        commit = refs.resolve(repository.top, f"refs/heads/{branch}") if branch else None
        if commit is None:
            where = f'The branch "{branch}"' if branch else "The branch that the session came from"
            raise UserError(f"{where} does not exist", hint="git switch main, then try again")
        waits = state.branch.requested is not None and state.branch.requested.commit == commit
        is_new = waits or not refs.is_ancestor(repository.top, commit, state.branch.tip)
        if is_new and not waits:
            log.record(UpdateRequested(branch=branch, commit=commit))
            project(repository, log)
        return UpdateRequest(branch=branch, commit=commit, is_new=is_new, was_finished=state.lifecycle.is_finished)


def _check(state: State) -> None:
    session, lifecycle = state.session.id, state.lifecycle
    if lifecycle.phase is Phase.archived:
        raise UserError(f'"{session}" is archived', hint=f"iterdev reopen {session}")
    if lifecycle.is_finished and not state.tasks.plan:
        raise UserError(f'"{session}" ended before its work began', hint="start a new session")
