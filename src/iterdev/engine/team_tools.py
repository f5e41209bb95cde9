"""The tools of the team: messages, the board of discoveries, locks, checkpoints and results.

Agents call them with the token of their attempt, people by command. Who is calling is known before the call, and
nothing that the call says can change it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
from anyio.to_thread import run_sync
from msgspec import Struct

from iterdev.core import ids
from iterdev.core.collaboration import checkpoints, locks, messages, tool_limits, tool_schemas
from iterdev.core.errors import UserError, did_you_mean
from iterdev.core.results import Discovery
from iterdev.core.session import tasks
from iterdev.core.session.events import Event, Warned
from iterdev.core.session.state import State
from iterdev.core.types import TaskId
from iterdev.execution.tool_server.access import AttemptAccess
from iterdev.host import text_files
from iterdev.host.secrets import Redactor
from iterdev.mcp.tools import CallRejected
from iterdev.store import atomic_files
from iterdev.store.session_folder import discoveries, json_records
from iterdev.store.session_log import Rule, SessionLog

Document: TypeAlias = dict[str, object]


class Person(Struct, frozen=True):
    """A person, who may act for any task but has to name it."""

    name: str = ""
    """The sender of messages and discoveries."""


ToolUser: TypeAlias = AttemptAccess | Person


class TeamTools:
    def __init__(
        self,
        log: SessionLog,
        folder: Path,
        *,
        redact: Redactor,
        engine_alive: Callable[[State], bool] = lambda _: True,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`changed` is called after the tools wrote something or saw that another process did."""
        self._log, self._folder, self._redact = log, folder, redact
        self._engine_alive, self._changed = engine_alive, changed

    def warn(self, text: str) -> None:
        """Records a warning, once."""
        self._write(lambda state, _: [] if text in state.warnings else [Warned(text)])

    def use(self, caller: ToolUser, asked: tool_schemas.ToolArguments) -> Document:
        """Carries out a call, or raises CallRejected."""
        session, team = getattr(asked, "session_id", ""), getattr(asked, "team", "")
        if isinstance(caller, AttemptAccess) and session not in {"", caller.job.session}:
            raise CallRejected(f'You work for the session "{caller.job.session}", not for "{session}".')
        if team not in {"", own := self._log.state.session.team_name}:
            raise CallRejected(f'The team of this session is "{own}", not "{team}".')
        match asked:
            case tool_schemas.TeamMsg():
                return self._message(caller, asked)
            case tool_schemas.Board():
                return self._board(caller, asked)
            case tool_schemas.ResourceLock():
                return self._lock(caller, asked)
            case tool_schemas.TaskCheckpoint():
                return self._checkpoint(caller, asked)
            case tool_schemas.ReportResult(result=result):
                return self._report(caller, result)

    async def used(self, caller: ToolUser, asked: tool_schemas.ToolArguments) -> Document:
        """The same in the event loop."""
        if isinstance(asked, tool_schemas.Board):
            # Several processes may write to the file of discoveries, so this may take a while.
            return await run_sync(partial(self.use, caller, asked))
        return self.use(caller, asked)

    def _message(self, caller: ToolUser, asked: tool_schemas.TeamMsg) -> Document:
        match asked.operation:
            case "log" | "broadcast":
                message = self._composed(caller, asked)
                self._record(message)
                return json_records.message_record(_recorded(self._log.state, message))
            case "delete":
                self._write(lambda state, _: [messages.MessageDeleted(_own_message(state, asked.id, caller).number)])
                return {"deleted": asked.id}
            case "clear":
                if isinstance(caller, AttemptAccess):
                    raise CallRejected("Only a person clears the bus; you can delete your own messages.")
                return {"cleared": self._clear()}
            case "list":
                seen, last = self._seen().messages, asked.last
                found = messages.find(seen, sender=asked.sender, to=asked.to, kind=asked.kind, last=last)
                return {"messages": [json_records.message_record(message) for message in found]}
            case "read":
                return json_records.message_record(_known_message(self._seen(), asked.id))
            case "status":
                members = (msgspec.to_builtins(member) for member in messages.members(self._seen().messages))
                return {"members": [member | {"last_seen": ids.moment(member["last_seen"])} for member in members]}
            case "get_state":
                return self._shared(asked.role)

    def _composed(self, caller: ToolUser, asked: tool_schemas.TeamMsg) -> messages.MessageSent:
        task = caller.job.task if isinstance(caller, AttemptAccess) else None
        if task and asked.sender not in {"", task.role}:
            raise CallRejected(f'You are the {task.role} of {task.id} and cannot speak as "{asked.sender}".')
        message = messages.compose(
            task.role if task else _sender(caller),
            to=messages.EVERYONE if asked.operation == "broadcast" else asked.to,
            kind=asked.kind,
            summary=self._redact(asked.summary),
            data=self._redacted({**asked.data, **({"ref": asked.ref} if asked.ref else {})}),
            task=task.id if task else None,
        )
        if task and (objection := messages.objection(task.role, message, self._log.team.message_types)):
            raise CallRejected(f"This cannot be sent: {objection}.")
        _check_size("summary", message.summary, message.data)
        if task and len(self._log.state.messages.sent) >= tool_limits.MESSAGES:
            raise CallRejected(f"There are {tool_limits.MESSAGES} messages; a person can clear the bus.")
        return message

    def _clear(self) -> int:
        """Deletes all messages, and returns their number; what was done and decided stays."""
        count = 0

        def rule(state: State, _: float) -> Sequence[Event]:
            nonlocal count
            count = len(state.messages.sent)
            return [messages.MessagesCleared()]

        self._write(rule)
        return count

    def _board(self, caller: ToolUser, asked: tool_schemas.Board) -> Document:
        """Reads and extends the file of discoveries; safe in any thread, since the log is not used."""
        path = self._folder / discoveries.NAME
        if asked.operation == "read":
            lines = (line for line in discoveries.read(path) if asked.kind in {"", line.type})
            return {"discoveries": [msgspec.to_builtins(self._redact.struct(line)) for line in lines]}
        sender = _sender(caller)
        found = _checked_discovery(Discovery(asked.kind, self._redacted(asked.data)))
        added = discoveries.add(path, [found], worker=sender, ts=ids.moment(self._log.now()))
        return {"added": True} if added else {"added": False, "note": "It is already on the board."}

    def _lock(self, caller: ToolUser, asked: tool_schemas.ResourceLock) -> Document:
        if asked.operation == "list":
            state = self._seen()
            current = locks.current(state.locks, self._log.now(), self._dead_tasks(state))
            waiting = {task: want.resource for task, want in current.wanted.items()}
            return {"resource_locks": json_records.lock_records(current.held), "waiting": waiting}
        task, role = self._acting_for(caller, asked.task, asked.role)
        if not role and asked.operation == "acquire":
            raise UserError(f"No role is named for {task}", hint="--role ROLE")
        resource = self._redact(asked.resource).strip()
        if not resource:
            raise CallRejected('The name of the resource is empty; use a name such as the path "src/app.py".')
        _check_size("name of the resource", resource)
        if asked.operation == "acquire":
            held = [name for name, lock in self._seen().locks.held.items() if lock.task == task]
            if len(held) >= tool_limits.LOCKS and resource not in held:
                raise CallRejected(f"{task} holds {len(held)} locks; release some first.")
            return self._acquire(locks.LockRequest(resource=resource, task=task, role=role))
        written = self._write(
            lambda state, at: locks.release(state.locks, resource, task, at, dead=self._dead_tasks(state))
        )
        released = locks.LockReleased(resource=resource, task=task) in written
        return {"released": released, "resource": resource, "task": task}

    def _acquire(self, ask: locks.LockRequest) -> Document:
        def rule(state: State, at: float) -> Sequence[Event]:
            dead = self._dead_tasks(state)
            return locks.request(state.locks, ask, at, state.policy, started=state.started, dead=dead)

        aborted = any(isinstance(event, locks.DeadlockBroken) and event.task == ask.task for event in self._write(rule))
        lock = self._log.state.locks.held[ask.resource]
        granted = lock.task == ask.task
        document: Document = {"granted": granted, "resource": ask.resource, **json_records.lock_record(lock)}
        if granted:
            return document | {"until": ids.moment(lock.until)}
        held = f'The lock on "{ask.resource}" is held by {lock.task} ({lock.role}) since {ids.moment(lock.at)}'
        if aborted:
            why = f"{held}, and both waited for each other: {ask.task} is the younger one, and lost its locks"
            return document | {"aborted": True, "why": why, "hint": "begin again when the other one is done"}
        hint = "to wait for it, ask again every minute; if you do not wait, release it"
        return document | {"why": held, "hint": hint}

    def _dead_tasks(self, state: State) -> tuple[TaskId, ...]:
        """Tasks that are recorded as running, but whose agents died with their engine."""
        return () if self._engine_alive(state) else state.attempts.of_engine

    def _checkpoint(self, caller: ToolUser, asked: tool_schemas.TaskCheckpoint) -> Document:
        match asked.operation:
            case "list":
                kept = {name: all_ for name, all_ in self._seen().checkpoints.items() if asked.task in {"", name}}
                return {"task_checkpoints": json_records.checkpoint_records(kept)}
            case "save":
                task, _ = self._acting_for(caller, asked.task)
                return json_records.checkpoint_record(self._save(task, self._redacted(asked.data)))
            case "restore":
                task, _ = self._acting_for(caller, asked.task)
                return self._restore(task)

    def _save(self, task: TaskId, data: Document) -> checkpoints.Checkpoint:
        """Writes the data, then records where it is; files of checkpoints that are not kept any more are deleted."""
        state = self._seen()
        saved = checkpoints.save(state.checkpoints, task, self._log.now(), kept=state.policy.checkpoints_kept)
        text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
        atomic_files.write(self._folder / saved.pointer, text, durable=True)
        self._record(saved)
        for dropped in saved.dropped:
            (self._folder / dropped).unlink(missing_ok=True)
        return self._log.state.checkpoints[task][0]

    def _restore(self, task: TaskId) -> Document:
        stored = stored_checkpoint(self._seen(), self._folder, task)
        if not isinstance(stored, str):
            restored, data = stored
            self._record(restored)
            checkpoint = checkpoints.Checkpoint(at=restored.saved_at, pointer=restored.pointer)
            return {"restored": True, **json_records.checkpoint_record(checkpoint), "data": data}
        if task in self._log.state.checkpoints:
            # A checkpoint was saved, and cannot be read.
            self._record(Warned(stored))
        return {"restored": False, "why": f"Nothing was restored: {stored}", "hint": f"begin {task} at its first step"}

    def _report(self, caller: ToolUser, result: Document) -> Document:
        if isinstance(caller, Person):
            raise UserError("Only the agent of an attempt has a result to report", hint="run it in an attempt")
        return caller.report(result, self._redact)

    def _acting_for(self, caller: ToolUser, task: str, role: str = "") -> tuple[TaskId, str]:
        """The task and the role that are acted for: an agent's own, or those that a person names."""
        if isinstance(caller, Person):
            # A task need not be in the table: a person may act on something that is not.
            if not tasks.NAME.fullmatch(task):
                raise UserError(f'"{task}" cannot name a task' if task else "No task is named", hint="--task DEV-001")
            roles = (messages.COORDINATOR, *self._log.team.roles)
            if role and role not in roles:
                suggestion = did_you_mean(role, roles)
                raise UserError(f'There is no role "{role}"{suggestion}', hint=f"roles: {', '.join(roles)}")
            return TaskId(task), role
        mine = caller.job.task
        if task not in {"", mine.id} or role not in {"", mine.role}:
            other = " of ".join(name for name in (role, task) if name)
            raise CallRejected(f'You are the {mine.role} of {mine.id} and cannot act as "{other}".')
        return mine.id, mine.role

    def _shared(self, role: str) -> Document:
        """What the roles share, of all of them or of one."""
        state = self._seen()
        shared = json_records.meta(state, self._log.team.records(state))
        if not role:
            return shared
        states = msgspec.convert(shared["role_state"], Document)
        if role not in states:
            raise CallRejected(f'"{role}" has shared nothing yet; known: {", ".join(states) or "no role"}.')
        return {"role": role, "state": states[role]}

    def _seen(self) -> State:
        """The newest state."""
        if self._log.refresh():
            self._changed()
        return self._log.state

    def _write(self, rule: Rule) -> Sequence[Event]:
        written = self._log.transact(rule)
        self._changed()
        return written

    def _record(self, event: Event) -> None:
        self._write(lambda _state, _at: [event])

    def _redacted(self, data: Document) -> Document:
        return msgspec.convert(self._redact.everywhere(data), Document)


def stored_checkpoint(state: State, folder: Path, task: TaskId) -> tuple[checkpoints.CheckpointRestored, object] | str:
    """The event of restoring the newest checkpoint of the task, with its data; or why none can be read."""
    newest = checkpoints.newest(state.checkpoints, task)
    if newest is None:
        return f"there is no checkpoint of {task}"
    try:
        data: object = json.loads(text_files.read(folder / newest.pointer))
    except OSError as error:
        return f'the checkpoint "{newest.pointer}" cannot be read: {error.strerror}'
    except (ValueError, RecursionError) as error:
        return f'the checkpoint "{newest.pointer}" is damaged: {error}'
    return checkpoints.CheckpointRestored(task=task, pointer=newest.pointer, saved_at=newest.at), data


def _recorded(state: State, sent: messages.MessageSent) -> messages.Message:
    """The message as it was recorded; announcements may follow it at once."""
    return next(message for message in reversed(state.messages.sent) if message.summary == sent.summary)


def _sender(caller: ToolUser) -> str:
    if isinstance(caller, AttemptAccess):
        return caller.job.task.id
    if not caller.name:
        raise UserError("No sender is named", hint="--from coordinator")
    return caller.name


def _known_message(state: State, name: str) -> messages.Message:
    message = messages.by_id(state.messages, name)
    if message is None:
        raise CallRejected(f'There is no message "{name}"; there are {len(state.messages.sent)}.')
    return message


def _own_message(state: State, name: str, caller: ToolUser) -> messages.Message:
    """A message that the caller may delete: an agent those that it sent, a person every one."""
    message = _known_message(state, name)
    task = caller.job.task if isinstance(caller, AttemptAccess) else None
    if task and (message.sender, message.data.get("task")) != (task.role, task.id):
        raise CallRejected(f"{message.id} is not yours: it was sent by the {message.sender}.")
    return message


def _checked_discovery(found: Discovery) -> Discovery:
    if found.type not in discoveries.KEYS:
        known = ", ".join(discoveries.KEYS)
        raise CallRejected(f'There is no kind of discovery "{found.type}"; "type" is one of: {known}.')
    missing = [key for key in discoveries.KEYS[found.type] if key not in found.data]
    if missing:
        raise CallRejected(f'The "data" of a {found.type} needs "{missing[0]}".')
    _check_size("type", found.type, found.data)
    return found


def _check_size(what: str, text: str, data: Mapping[str, object] | None = None) -> None:
    if excess := tool_limits.excess(what, text, json.dumps(data).encode() if data else b""):
        raise CallRejected(excess)
