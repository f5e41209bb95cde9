"""The tools of the team for a person, who may come while an engine runs, and while none does."""

import msgspec

from iterdev.core.collaboration import messages
from iterdev.core.collaboration.tool_schemas import (
    Board,
    ReportResult,
    ResourceLock,
    TaskCheckpoint,
    TeamMsg,
    ToolArguments,
)
from iterdev.core.errors import UserError
from iterdev.core.results import Discovery
from iterdev.core.session.announcements import EVERYBODY
from iterdev.core.session.events import Event, MessageDeleted, MessagesCleared, MessageSent
from iterdev.core.session.state import State
from iterdev.core.types import SessionId, TaskId
from iterdev.engine import collaboration, lock_tools
from iterdev.engine.collaboration import Document
from iterdev.engine.repository import Repository
from iterdev.engine.team_tools import add, discoveries, known, look
from iterdev.host import clock
from iterdev.store.session_folder import json_records


def use(repository: Repository, session: SessionId, asked: ToolArguments, sender: str) -> Document:
    """The same as the tools of agents, for somebody who says who they are."""
    match asked:
        case TeamMsg(operation="log" | "broadcast"):
            return _post(repository, session, _message(repository, asked, _named(sender)))
        case TeamMsg(operation="delete"):
            return _delete(repository, session, asked.id)
        case TeamMsg(operation="clear"):
            return _clear(repository, session)
        case TeamMsg():
            return look(repository.state(session), asked)
        case Board():
            return _board(repository, session, asked, sender)
        case ResourceLock():
            return _lock(repository, session, asked)
        case TaskCheckpoint():
            return _checkpoint(repository, session, asked)
        case ReportResult():
            raise UserError("Only the agent of an attempt has a result to report", hint="run it in an attempt")


def _message(repository: Repository, asked: TeamMsg, sender: str) -> MessageSent:
    to = EVERYBODY if asked.operation == "broadcast" else asked.to
    summary, data = repository.redact(asked.summary), _clean(repository, asked.data)
    return messages.composed(sender, to=to, kind=asked.kind, summary=summary, data=data)


def _named(sender: str) -> str:
    if not sender:
        raise UserError("Nobody is named as the sender", hint="--from coordinator")
    return sender


def _post(repository: Repository, session: SessionId, message: MessageSent) -> Document:
    with collaboration.opened(repository, session) as log:
        log.record(message)
        return json_records.message_record(log.state.messages[-1])


def _delete(repository: Repository, session: SessionId, name: str) -> Document:
    with collaboration.opened(repository, session) as log:
        log.transact(lambda state, _: [MessageDeleted(known(state, name).number)])
    return {"deleted": name}


def _clear(repository: Repository, session: SessionId) -> Document:
    """What is done and decided stays; only what was said about it goes."""
    gone = 0

    def rule(state: State, _: float) -> list[Event]:
        nonlocal gone
        gone = len(state.messages)
        return [MessagesCleared()]

    with collaboration.opened(repository, session) as log:
        log.transact(rule)
    return {"cleared": gone}


def _board(repository: Repository, session: SessionId, asked: Board, sender: str) -> Document:
    folder = repository.folder(repository.state(session))
    if asked.operation == "read":
        return {"discoveries": discoveries(folder, asked.kind)}
    found = Discovery(asked.kind, _clean(repository, asked.data))
    return add(folder, found, worker=_named(sender), at=clock.now())


def _lock(repository: Repository, session: SessionId, asked: ResourceLock) -> Document:
    if asked.operation == "list":
        state = repository.state(session)
        return lock_tools.listed_locks(state, clock.now(), engine_alive=repository.engine_alive(state))
    task = _task(asked.task)
    if asked.operation == "acquire" and not asked.role:
        raise UserError(f"No role is named for {task}", hint="--role developer")
    asked = msgspec.structs.replace(asked, resource=repository.redact(asked.resource))
    with collaboration.opened(repository, session) as log:
        alive = repository.engine_alive(log.state)
        return lock_tools.use_lock(log, asked, task=task, role=asked.role, engine_alive=alive)


def _checkpoint(repository: Repository, session: SessionId, asked: TaskCheckpoint) -> Document:
    if asked.operation == "list":
        return lock_tools.listed_checkpoints(repository.state(session), asked.task)
    task = _task(asked.task)
    asked = msgspec.structs.replace(asked, data=_clean(repository, asked.data))
    with collaboration.opened(repository, session) as log:
        return lock_tools.use_checkpoint(log, repository.folder(log.state), asked, task)


def _clean(repository: Repository, data: Document) -> Document:
    clean: Document = msgspec.convert(repository.redact.everywhere(data), Document)
    return clean


def _task(name: str) -> TaskId:
    if not name:
        raise UserError("No task is named", hint="--task DEV-001")
    return TaskId(name)
