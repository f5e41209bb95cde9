"""Texts that report to a session instead of asking for a new one: a task is done, or the team lacks something."""

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from iterdev.app.sessions import SessionChoice, one_of, to_continue
from iterdev.core import ids
from iterdev.core.collaboration.messages import COORDINATOR, Escalation, compose
from iterdev.core.rules import worker_callbacks
from iterdev.core.rules.escalations import capability_gap
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.host.git import refs


class WorkerCallback(Struct, frozen=True, kw_only=True):
    """A worker that was started elsewhere reports that its task is done."""

    session: SessionId | SessionChoice
    callback: worker_callbacks.Callback


class CapabilityGap(Struct, frozen=True, kw_only=True):
    """The team lacks something; the engine asks what to do about it."""

    session: SessionId | SessionChoice
    lacking: str


Callback: TypeAlias = WorkerCallback | CapabilityGap


def callback_in(repository: Repository, text: str) -> Callback | None:
    """The report that a text is, recognised by a role's tag, a task id or a keyword at its beginning."""
    if callback := worker_callbacks.callback(text, repository.workers):
        return WorkerCallback(session=_addressed(repository, text, repository.unfinished()), callback=callback)
    if (lacking := capability_gap(text)) is not None:
        return CapabilityGap(session=_addressed(repository, text, repository.unfinished()), lacking=lacking)
    prefixes = [role.prefix for team in repository.teams.values() for role in team.roles.values()]
    task = worker_callbacks.begins_with_task(text, prefixes)
    having = [one for one in repository.unfinished() if task in repository.state(one).tasks.plan] if task else []
    if not having:
        return None
    session = _addressed(repository, text, having)
    return WorkerCallback(session=session, callback=worker_callbacks.Callback(None, text))


def _addressed(repository: Repository, text: str, sessions: Sequence[SessionId]) -> SessionId | SessionChoice:
    """The session that the text names among these, or the only one."""
    words = {word.strip("(:,;.)") for word in text.split()}
    fitting = [session for session in sessions if session in words] or sessions
    if len(fitting) > 1:
        return one_of(fitting, hint=f"name one in the text, such as: ... ({fitting[-1]})")
    return fitting[0] if fitting else to_continue(repository)


def record(repository: Repository, session: SessionId, reported: Callback) -> None:
    """Records a report. A running engine gets the reports of its own workers, and no others."""
    log = repository.log(session)
    if repository.engine_alive(log.state.session):
        raise repository.still_running(session)
    match reported:
        case WorkerCallback(callback=callback):
            tip = _commits_elsewhere(repository, session, log.state.branch.tip)
            log.transact(lambda state, _: [worker_callbacks.completed(state, log.team, callback, tip)])
        case CapabilityGap(lacking=lacking):
            summary = repository.redact(lacking)
            log.record(compose(COORDINATOR, kind=Escalation.capability_gap, summary=summary))


def _commits_elsewhere(repository: Repository, session: SessionId, landed: str) -> str:
    """The tip of the session's branch if it has commits on top of what has landed, or else nothing."""
    tip = refs.resolve(repository.top, f"refs/heads/{ids.branch(session)}")
    return tip if tip and tip != landed and refs.is_ancestor(repository.top, landed, tip) else ""
