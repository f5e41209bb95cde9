"""Texts that report to a session instead of asking for a new one: a task is done, or the team lacks something."""

from typing import TypeAlias

from msgspec import Struct

from iterdev.app.sessions import SessionChoice, to_resume
from iterdev.core.collaboration.messages import COORDINATOR, Escalation, compose
from iterdev.core.rules import worker_callbacks
from iterdev.core.rules.escalations import capability_gap
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository


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
    """The report in a text, recognised by a role's tag, a task id or a keyword at its beginning."""
    if callback := worker_callbacks.callback(text, repository.workers):
        is_request = not text.lstrip().startswith("[") and not repository.unfinished()
        return None if is_request else WorkerCallback(session=to_resume(repository), callback=callback)
    if (lacking := capability_gap(text)) is not None:
        return CapabilityGap(session=to_resume(repository), lacking=lacking)
    prefixes = [role.prefix for team in repository.teams.values() for role in team.roles.values()]
    task = worker_callbacks.begins_with_task(text, prefixes)
    having = [one for one in repository.unfinished() if task in repository.state(one).tasks.plan] if task else []
    if not having:
        return None
    session = SessionChoice(tuple(having), having[-1]) if len(having) > 1 else having[0]
    return WorkerCallback(session=session, callback=worker_callbacks.Callback(None, text))


def record(repository: Repository, session: SessionId, reported: Callback) -> None:
    """Records a report. A running engine gets the reports of its own workers, and no others."""
    log = repository.log(session)
    if repository.engine_alive(log.state.session):
        raise repository.still_running(session)
    match reported:
        case WorkerCallback(callback=callback):
            log.transact(lambda state, _: [worker_callbacks.completed(state, log.team, callback)])
        case CapabilityGap(lacking=lacking):
            summary = repository.redact(lacking)
            log.record(compose(COORDINATOR, kind=Escalation.capability_gap, summary=summary))
