"""The tools of agents. The token says who is calling; nothing that the caller says can change it."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from anyio.to_thread import run_sync

from iterdev.agents.contract import ToolServer
from iterdev.core import ids, results
from iterdev.core.collaboration import messages
from iterdev.core.collaboration.tool_schemas import (
    Board,
    ReportResult,
    ResourceLock,
    TaskCheckpoint,
    TeamMsg,
    ToolArguments,
)
from iterdev.core.results import Discovery, Misfit, Result
from iterdev.core.session.announcements import EVERYBODY
from iterdev.core.session.events import MessageDeleted, MessageSent
from iterdev.core.session.state import Message, State
from iterdev.engine import lock_tools
from iterdev.engine.collaboration import Document, Refused
from iterdev.execution.contract import Job
from iterdev.host.secrets import Redactor
from iterdev.store.session_folder import discoveries as session_folder_discoveries
from iterdev.store.session_folder import json_records
from iterdev.store.session_log import SessionLog


class Caller:
    """An attempt that may use the tools."""

    def __init__(self, job: Job, server: ToolServer) -> None:
        self.job, self.server = job, server
        self.reported: Result | None = None
        """What the agent has handed in since it was last asked."""


class Tools:
    def __init__(
        self,
        log: SessionLog,
        folder: Path,
        *,
        tell: Callable[[MessageSent], None],
        changed: Callable[[], None],
        redact: Redactor,
        now: Callable[[], float],
    ) -> None:
        self._log, self._folder, self._redact, self._now = log, folder, redact, now
        self._tell, self._changed = tell, changed

    async def use(self, caller: Caller, asked: ToolArguments) -> Document:
        match asked:
            case TeamMsg(operation="log" | "broadcast"):
                return self._send(caller, asked)
            case TeamMsg(operation="delete" | "clear"):
                return self._take_back(caller, asked)
            case TeamMsg():
                return self._look(caller, asked)
            case Board(operation="read"):
                return {"discoveries": await run_sync(partial(discoveries, self._folder, asked.kind))}
            case Board():
                return await self._add(caller, asked)
            case ResourceLock():
                return self._lock(caller, asked)
            case TaskCheckpoint():
                return self._checkpoint(caller, asked)
            case ReportResult(result=result):
                return self._accept(caller, result)

    def _send(self, caller: Caller, asked: TeamMsg) -> Document:
        task = caller.job.task
        _check_session(caller, asked.session_id)
        if asked.sender not in {"", task.role}:
            raise Refused(f'You are the {task.role} of {task.id} and cannot speak as "{asked.sender}".')
        message = messages.composed(
            task.role,
            to=EVERYBODY if asked.operation == "broadcast" else asked.to,
            kind=asked.kind,
            summary=self._redact(asked.summary),
            data=_object(self._redact.everywhere(asked.data)),
            task=task.id,
        )
        if objection := messages.objection(task.role, message):
            raise Refused(f"This cannot be sent: {objection}.")
        self._tell(message)
        state = self._log.state
        return json_records.message_record(state.messages[-1])

    def _take_back(self, caller: Caller, asked: TeamMsg) -> Document:
        """An agent may take back what it said itself; all the others said is not its own."""
        task = caller.job.task
        _check_session(caller, asked.session_id)
        if asked.operation == "clear":
            raise Refused("Only a person clears the bus; you can delete your own messages.")
        message = known(self._log.state, asked.id)
        if not messages.is_of(message, task.role, task.id):
            raise Refused(f"{message.id} is not yours: it was sent by the {message.sender}.")
        self._log.record(MessageDeleted(message.number))
        self._changed()
        return {"deleted": message.id}

    def _look(self, caller: Caller, asked: TeamMsg) -> Document:
        _check_session(caller, asked.session_id)
        return look(self._log.state, asked)

    async def _add(self, caller: Caller, asked: Board) -> Document:
        discovery = Discovery(asked.kind, _object(self._redact.everywhere(asked.data)))
        return await run_sync(partial(add, self._folder, discovery, worker=caller.job.task.id, at=self._now()))

    def _lock(self, caller: Caller, asked: ResourceLock) -> Document:
        task = caller.job.task
        _check_session(caller, asked.session_id)
        if asked.operation == "list":
            self._catch_up()
            return lock_tools.listed_locks(self._log.state, self._now())
        _check_own(caller, asked.task, asked.role)
        asked = msgspec.structs.replace(asked, resource=self._redact(asked.resource))
        answer = lock_tools.use_lock(self._log, asked, task=task.id, role=task.role)
        self._changed()
        return answer

    def _checkpoint(self, caller: Caller, asked: TaskCheckpoint) -> Document:
        _check_session(caller, asked.session_id)
        if asked.operation == "list":
            self._catch_up()
            return lock_tools.listed_checkpoints(self._log.state, asked.task)
        _check_own(caller, asked.task)
        asked = msgspec.structs.replace(asked, data=_object(self._redact.everywhere(asked.data)))
        answer = lock_tools.use_checkpoint(self._log, self._folder, asked, caller.job.task.id)
        self._changed()
        return answer

    def _catch_up(self) -> None:
        if self._log.refresh():
            self._changed()

    def _accept(self, caller: Caller, result: Document) -> Document:
        task = caller.job.task
        body = json.dumps(self._redact.everywhere(result), ensure_ascii=False)
        try:
            caller.reported = results.decode(body, role=task.role, task=task.id)
        except Misfit as misfit:
            raise Refused(f"The result was not accepted: {misfit}. Mend it and report it again.") from misfit
        return {"accepted": True, "note": f"This is the result of {task.id}. You may end now."}


def look(state: State, asked: TeamMsg) -> Document:
    """The operations that only read."""
    match asked.operation:
        case "list":
            wanted = messages.Wanted(sender=asked.sender, to=asked.to, kind=asked.kind, last=asked.last)
            return {"messages": [json_records.message_record(message) for message in messages.listed(state, wanted)]}
        case "read":
            return json_records.message_record(known(state, asked.id))
        case "status":
            heard = (msgspec.to_builtins(member) for member in messages.members(state))
            return {"members": [member | {"last_seen": ids.moment(member["last_seen"])} for member in heard]}
        case _:
            return _shared(state, asked.role)


def known(state: State, name: str) -> Message:
    message = messages.found(state, name)
    if message is None:
        raise Refused(f'There is no message "{name}"; there are {len(state.messages)}.')
    return message


def discoveries(folder: Path, kind: str = "") -> list[Document]:
    """What is on the board, of one kind or of all."""
    lines = session_folder_discoveries.read(folder / session_folder_discoveries.NAME)
    return [msgspec.to_builtins(line) for line in lines if kind in {"", line.type}]


def add(folder: Path, discovery: Discovery, *, worker: str, at: float) -> Document:
    """Puts a discovery on the board, unless it is there already."""
    if discovery.type not in session_folder_discoveries.KEYS:
        known = ", ".join(session_folder_discoveries.KEYS)
        raise Refused(f'There is no kind of discovery "{discovery.type}"; "type" is one of: {known}.')
    missing = [key for key in session_folder_discoveries.KEYS[discovery.type] if key not in discovery.data]
    if missing:
        raise Refused(f'The "data" of a {discovery.type} needs "{missing[0]}".')
    added = session_folder_discoveries.add(
        folder / session_folder_discoveries.NAME, [discovery], worker=worker, ts=ids.moment(at)
    )
    return {"added": True} if added else {"added": False, "note": "It is on the board already."}


def _shared(state: State, role: str) -> Document:
    shared = json_records.meta(state)
    if not role:
        return shared
    states = _object(shared["role_state"])
    if role not in states:
        raise Refused(f'Nothing is known of "{role}" yet; known: {", ".join(states) or "nobody"}.')
    return {"role": role, "state": states[role]}


def _check_session(caller: Caller, session: str) -> None:
    if session not in {"", caller.job.session}:
        raise Refused(f'You work for the session "{caller.job.session}", not for "{session}".')


def _check_own(caller: Caller, task: str, role: str = "") -> None:
    """Whoever names a task or a role has to name the one that its token stands for."""
    mine = caller.job.task
    if task not in {"", mine.id} or role not in {"", mine.role}:
        other = " of ".join(name for name in (role, task) if name)
        raise Refused(f'You are the {mine.role} of {mine.id} and cannot act as "{other}".')


def _object(value: object) -> Document:
    return value if isinstance(value, dict) else {}
