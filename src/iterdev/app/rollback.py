"""Rolls a session back to before a task or a wave."""

from contextlib import closing

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.rules import rollback
from iterdev.core.session.delivery import Accepted
from iterdev.core.types import SessionId, TaskId
from iterdev.core.views.previews import RollbackPreview, refusal, rollback_preview
from iterdev.engine.effects import NO_EFFECTS
from iterdev.engine.issue_tracker import session_tracker
from iterdev.engine.recovery import complete_rollback, end_attempts
from iterdev.engine.repository import Repository
from iterdev.execution.contract import Effect
from iterdev.host.git import refs, session_branch
from iterdev.host.git.users_branch import acceptance


class RolledBack(Struct, frozen=True, kw_only=True):
    branch: str
    tip: str
    undone: tuple[TaskId, ...]
    accepted: Accepted | None
    """That the user's branch still has what was accepted before."""
    undo: str
    """The command that undoes it there."""


def roll_back(
    repository: Repository, session: SessionId, target: str, reason: str = "", *, effect: Effect = NO_EFFECTS
) -> RolledBack:
    """Goes back to before the target. A rollback that was interrupted is finished first."""
    log = repository.log(session)
    with repository.lease(log):
        session_branch.require_free(repository.top, session)
        begun = complete_rollback(repository, log, effect)
        # Asking for the same rollback again completes the one that was interrupted.
        if begun is None or begun.target != target:
            # Attempts of an engine that died end before what they belong to is undone.
            with closing(repository.workspaces(session)) as pool:
                end_attempts(log, repository.top, pool, effect)
            planned = rollback.plan(repository.journal.read(session), log.team, target, repository.redact(reason))
            with effect("record", events="RollbackStarted"):
                log.record(*planned)
            begun = complete_rollback(repository, log, effect)
        if tracker := session_tracker(repository, log):
            tracker.catch_up()
    if begun is None:
        raise AssertionError("a rollback that was recorded is completed")
    accepted = _accepted(repository, session)
    undo = acceptance.undo(repository.top, session, accepted, begun.tip) if accepted else ""
    return RolledBack(branch=ids.branch(session), tip=begun.tip, undone=begun.undone, accepted=accepted, undo=undo)


def preview_rollback(repository: Repository, session: SessionId, target: str) -> RollbackPreview:
    """What `roll_back` would do now. Nothing is changed."""
    state = repository.state(session)
    try:
        if repository.engine_alive(state.session):
            raise repository.still_running(session)
        session_branch.require_free(repository.top, session)
        planned = rollback.plan(repository.journal.read(session), repository.team(state), target)
    except UserError as error:
        return rollback_preview(state, target, refused=refusal(error))
    return rollback_preview(state, target, planned)


def _accepted(repository: Repository, session: SessionId) -> Accepted | None:
    """What was accepted last, if the branch that it was merged into still has it."""
    last = repository.state(session).delivery.accepted
    return last if last and refs.contains(repository.top, last.branch, last.commit) else None
