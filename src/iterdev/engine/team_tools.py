"""The tools of the team: messages, the board of discoveries, locks, checkpoints and results.

Agents call them with the token of their attempt, people by command. Who is calling is known before the call, and
nothing that the call says can change it.
"""

import difflib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from iterdev.agents.contract import ToolServer
from iterdev.core import ids, results
from iterdev.core.collaboration import checkpoints, locks, messages
from iterdev.core.collaboration.checkpoints import Checkpoint, CheckpointRestored
from iterdev.core.collaboration.locks import DeadlockBroken, LockReleased, LockRequest
from iterdev.core.collaboration.messages import (
    COORDINATOR,
    EVERYONE,
    Message,
    MessageDeleted,
    MessageQuery,
    MessagesCleared,
    MessageSent,
)
from iterdev.core.collaboration.tool_schemas import (
    Board,
    ReportResult,
    ResourceLock,
    TaskCheckpoint,
    TeamMsg,
    ToolArguments,
)
from iterdev.core.errors import UserError
from iterdev.core.results import Discovery, Misfit, Result
from iterdev.core.session import tasks
from iterdev.core.session.events import Event, Warned
from iterdev.core.session.state import State
from iterdev.core.types import TaskId
from iterdev.execution.contract import Job
from iterdev.host.secrets import Redactor
from iterdev.store import atomic_files
from iterdev.store.session_folder import discoveries, json_records
from iterdev.store.session_log import SessionLog

Document: TypeAlias = dict[str, object]


class CallRejected(Exception):
    """A call that cannot be granted; the text tells the caller what to do about it."""


class Caller:
    """The agent of an attempt. It acts for its own task, and for no other."""

    def __init__(self, job: Job, server: ToolServer) -> None:
        self.job, self.server = job, server
        self.reported: Result | None = None

    async def take_result(self) -> Result | None:
        """What the agent has reported since this was last called."""
        reported, self.reported = self.reported, None
        return reported


class Person(Struct, frozen=True):
    """A person, who may act for any task but has to name it."""

    name: str = ""
    """Signs messages and discoveries."""


class StoredCheckpoint(Struct, frozen=True, kw_only=True):
    checkpoint: Checkpoint
    data: object


class NoCheckpoint(Struct, frozen=True):
    """The task begins at its beginning."""

    why: str


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

    def use(self, caller: Caller | Person, asked: ToolArguments) -> Document:
        """Does what is asked, or raises CallRejected."""
        if isinstance(caller, Caller) and not isinstance(asked, Board | ReportResult):
            _check_session(caller, asked.session_id)
        match asked:
            case TeamMsg():
                return self._message(caller, asked)
            case Board():
                return self._board(caller, asked)
            case ResourceLock():
                return self._lock(caller, asked)
            case TaskCheckpoint():
                return self._checkpoint(caller, asked)
            case ReportResult(result=result):
                return self._report(caller, result)

    def _message(self, caller: Caller | Person, asked: TeamMsg) -> Document:
        match asked.operation:
            case "log" | "broadcast":
                message = self._composed(caller, asked)
                self._write(_always(message))
                return json_records.message_record(_recorded(self._log.state, message))
            case "delete":
                self._write(lambda state, _: [MessageDeleted(_own_message(state, asked.id, caller).number)])
                return {"deleted": asked.id}
            case "clear":
                return self._clear(caller)
            case "list":
                query = MessageQuery(sender=asked.sender, to=asked.to, kind=asked.kind, last=asked.last)
                found = messages.find(self._seen().messages, query)
                return {"messages": [json_records.message_record(message) for message in found]}
            case "read":
                return json_records.message_record(_known_message(self._seen(), asked.id))
            case "status":
                members = (msgspec.to_builtins(member) for member in messages.members(self._seen().messages))
                return {"members": [member | {"last_seen": ids.moment(member["last_seen"])} for member in members]}
            case "get_state":
                return self._shared(asked.role)

    def _composed(self, caller: Caller | Person, asked: TeamMsg) -> MessageSent:
        if isinstance(caller, Person):
            return self._completed(asked, _signature(caller))
        task = caller.job.task
        if asked.sender not in {"", task.role}:
            raise CallRejected(f'You are the {task.role} of {task.id} and cannot speak as "{asked.sender}".')
        message = self._completed(asked, task.role, task.id)
        if objection := messages.objection(task.role, message, self._log.team.message_types):
            raise CallRejected(f"This cannot be sent: {objection}.")
        return message

    def _completed(self, asked: TeamMsg, sender: str, task: TaskId | None = None) -> MessageSent:
        to = EVERYONE if asked.operation == "broadcast" else asked.to
        summary, data = self._redact(asked.summary), self._redacted(asked.data)
        return messages.compose(sender, to=to, kind=asked.kind, summary=summary, data=data, task=task)

    def _clear(self, caller: Caller | Person) -> Document:
        """Deletes all messages; what was done and decided stays."""
        if isinstance(caller, Caller):
            raise CallRejected("Only a person clears the bus; you can delete your own messages.")
        count = 0

        def rule(state: State, _: float) -> Sequence[Event]:
            nonlocal count
            count = len(state.messages.sent)
            return [MessagesCleared()]

        self._write(rule)
        return {"cleared": count}

    def _board(self, caller: Caller | Person, asked: Board) -> Document:
        """Reads and extends the file of discoveries; safe in any thread, since the log is not used."""
        path = self._folder / discoveries.NAME
        if asked.operation == "read":
            lines = (msgspec.to_builtins(line) for line in discoveries.read(path) if asked.kind in {"", line.type})
            return {"discoveries": list(lines)}
        worker = caller.job.task.id if isinstance(caller, Caller) else _signature(caller)
        found = _checked_discovery(Discovery(asked.kind, self._redacted(asked.data)))
        added = discoveries.add(path, [found], worker=worker, ts=ids.moment(self._log.now()))
        return {"added": True} if added else {"added": False, "note": "It is on the board already."}

    def _lock(self, caller: Caller | Person, asked: ResourceLock) -> Document:
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
            raise CallRejected('The name of the resource is empty; a path such as "src/app.py" is a good one.')
        if asked.operation == "acquire":
            return self._acquire(LockRequest(resource=resource, task=task, role=role))
        written = self._write(
            lambda state, at: locks.release(state.locks, resource, task, at, dead=self._dead_tasks(state))
        )
        return {
            "released": LockReleased(resource=resource, task=task) in written,
            "resource": resource,
            "task": task,
        }

    def _acquire(self, ask: LockRequest) -> Document:
        def rule(state: State, at: float) -> Sequence[Event]:
            dead = self._dead_tasks(state)
            return locks.request(state.locks, ask, at, state.policy, started=state.started, dead=dead)

        aborted = any(isinstance(event, DeadlockBroken) and event.task == ask.task for event in self._write(rule))
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
        """Tasks that are called running, but whose agents died with their engine."""
        return () if self._engine_alive(state) else tuple(state.attempts.running)

    def _checkpoint(self, caller: Caller | Person, asked: TaskCheckpoint) -> Document:
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

    def _save(self, task: TaskId, data: Document) -> Checkpoint:
        """Writes the data, then records where it is; files of checkpoints that are not kept any more are deleted."""
        state = self._seen()
        saved = checkpoints.save(state.checkpoints, task, self._log.now(), kept=state.policy.checkpoints_kept)
        text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
        atomic_files.write(self._folder / saved.pointer, text, durable=True)
        self._write(_always(saved))
        for dropped in saved.dropped:
            (self._folder / dropped).unlink(missing_ok=True)
        return self._log.state.checkpoints[task][0]

    def _restore(self, task: TaskId) -> Document:
        stored = stored_checkpoint(self._seen(), self._folder, task)
        if isinstance(stored, StoredCheckpoint):
            self._write(_always(restored_event(stored, task)))
            return {"restored": True, **json_records.checkpoint_record(stored.checkpoint), "data": stored.data}
        if task in self._log.state.checkpoints:
            # There was one, and it cannot be read.
            self._write(_always(Warned(stored.why)))
        return {
            "restored": False,
            "why": f"Nothing was restored: {stored.why}",
            "hint": f"begin {task} at its first step",
        }

    def _report(self, caller: Caller | Person, result: Document) -> Document:
        if isinstance(caller, Person):
            raise UserError("Only the agent of an attempt has a result to report", hint="run it in an attempt")
        task = caller.job.task
        body = json.dumps(self._redact.everywhere(result), ensure_ascii=False)
        try:
            caller.reported = results.decode(body, kind=caller.job.role.result, task=task.id)
        except Misfit as misfit:
            raise CallRejected(f"The result was not accepted: {misfit}. Fix it and report it again.") from misfit
        return {"accepted": True, "note": f"This is the result of {task.id}. You may end now."}

    def _acting_for(self, caller: Caller | Person, task: str, role: str = "") -> tuple[TaskId, str]:
        """The task and the role that are acted for: an agent's own, or those that a person names."""
        if isinstance(caller, Person):
            return _named_task(task), _named_role(role, (COORDINATOR, *self._log.team.roles))
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
        states = shared["role_state"]
        if not isinstance(states, dict) or role not in states:
            known = ", ".join(states) if isinstance(states, dict) else ""
            raise CallRejected(f'"{role}" has shared nothing yet; known: {known or "no role"}.')
        return {"role": role, "state": states[role]}

    def _seen(self) -> State:
        """The newest state."""
        if self._log.refresh():
            self._changed()
        return self._log.state

    def _write(self, rule: Callable[[State, float], Sequence[Event]]) -> Sequence[Event]:
        written = self._log.transact(rule)
        self._changed()
        return written

    def _redacted(self, data: Document) -> Document:
        redacted: Document = msgspec.convert(self._redact.everywhere(data), Document)
        return redacted


def stored_checkpoint(state: State, folder: Path, task: TaskId) -> StoredCheckpoint | NoCheckpoint:
    """What the newest checkpoint of the task holds."""
    newest = checkpoints.newest(state.checkpoints, task)
    if newest is None:
        return NoCheckpoint(f"there is no checkpoint of {task}")
    try:
        data: object = json.loads((folder / newest.pointer).read_text(encoding="utf-8"))
    except OSError as error:
        return NoCheckpoint(f'the checkpoint "{newest.pointer}" cannot be read: {error.strerror}')
    except (ValueError, RecursionError) as error:
        return NoCheckpoint(f'the checkpoint "{newest.pointer}" is damaged: {error}')
    return StoredCheckpoint(checkpoint=newest, data=data)


def restored_event(stored: StoredCheckpoint, task: TaskId) -> CheckpointRestored:
    return CheckpointRestored(task=task, pointer=stored.checkpoint.pointer, saved_at=stored.checkpoint.at)


def _recorded(state: State, sent: MessageSent) -> Message:
    """The message as it was recorded; announcements may follow it at once."""
    return next(message for message in reversed(state.messages.sent) if message.summary == sent.summary)


def _always(event: Event) -> Callable[[State, float], Sequence[Event]]:
    return lambda _state, _at: [event]


def _check_session(caller: Caller, session: str) -> None:
    if session not in {"", caller.job.session}:
        raise CallRejected(f'You work for the session "{caller.job.session}", not for "{session}".')


def _named_task(name: str) -> TaskId:
    """A task need not be in the table: a person may act on something that is not."""
    if not name:
        raise UserError("No task is named", hint="--task DEV-001")
    if not tasks.NAME.fullmatch(name):
        raise UserError(f'"{name}" cannot name a task', hint="--task DEV-001")
    return TaskId(name)


def _named_role(name: str, roles: Sequence[str]) -> str:
    if name and name not in roles:
        near = difflib.get_close_matches(name, roles, 1)
        suggestion = f' (did you mean "{near[0]}"?)' if near else ""
        raise UserError(f'There is no role "{name}"{suggestion}', hint=f"roles: {', '.join(roles)}")
    return name


def _signature(person: Person) -> str:
    if not person.name:
        raise UserError("No sender is named", hint="--from coordinator")
    return person.name


def _known_message(state: State, name: str) -> Message:
    message = messages.by_id(state.messages, name)
    if message is None:
        raise CallRejected(f'There is no message "{name}"; there are {len(state.messages.sent)}.')
    return message


def _own_message(state: State, name: str, caller: Caller | Person) -> Message:
    """A message that the caller may delete: an agent those that it sent, a person every one."""
    message = _known_message(state, name)
    if isinstance(caller, Caller) and not messages.is_of_task(message, caller.job.task.role, caller.job.task.id):
        raise CallRejected(f"{message.id} is not yours: it was sent by the {message.sender}.")
    return message


def _checked_discovery(found: Discovery) -> Discovery:
    if found.type not in discoveries.KEYS:
        known = ", ".join(discoveries.KEYS)
        raise CallRejected(f'There is no kind of discovery "{found.type}"; "type" is one of: {known}.')
    missing = [key for key in discoveries.KEYS[found.type] if key not in found.data]
    if missing:
        raise CallRejected(f'The "data" of a {found.type} needs "{missing[0]}".')
    return found
