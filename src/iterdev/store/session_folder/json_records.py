"""The JSON records of a session folder: session.json, task-ledger.json, .msg/meta.json, the messages.

A Struct describes what `rebuild` reads back. Each team adds its own fields.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from iterdev.core.collaboration.checkpoints import Checkpoint
from iterdev.core.collaboration.external_packages import Packages
from iterdev.core.collaboration.feedback import Feedback
from iterdev.core.collaboration.locks import Lock
from iterdev.core.collaboration.messages import COORDINATOR, Message, MessageSent, SharedData
from iterdev.core.collaboration.tech_debt import Debt, Report
from iterdev.core.ids import branch, moment
from iterdev.core.policy import Policy
from iterdev.core.rules import conflict_tasks, rollback
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Progress
from iterdev.core.session.tasks import Task
from iterdev.core.types import FINAL, UNSUCCESSFUL, ConflictStrategy, Phase, Status, TaskId
from iterdev.teams.contract import Records, Team, as_json

Document = dict[str, object]
T = TypeVar("T")

LEDGER_STATUS = {
    **{status: status.value for status in Status},
    Status.landing: "in_progress",
    **dict.fromkeys(UNSUCCESSFUL, "blocked"),
}

FROM_COORDINATOR = ("pipeline_mode", "pipeline_stages", "team_name", "task_description", "roles")
"""Fields that only the coordinator may set."""


NO_TASKS = '\n  "tasks": []'
"""In the JSON of a ledger; no text in quotes contains it, because a line break in one is escaped."""


def records(state: State, team: Team, entries: Iterable[str] | None = None) -> dict[str, str]:
    """The records by name. The entries of the ledger can be given, in the order of the table."""
    own = team.records(state)
    if entries is None:
        entries = (ledger_entry(state, team, task) for task in state.tasks.order)
    return {
        "session.json": as_json(session_record(state, own)),
        "task-ledger.json": _ledger(state, own, ",\n".join(entries)),
        ".msg/meta.json": as_json(meta(state, own)),
        **{name: as_json(document) for name, document in own.files.items()},
    }


class SessionRecord(Struct, frozen=True, kw_only=True):
    """What session.json has for a rebuild."""

    team: str = ""
    team_name: str = ""
    requirement: str = ""
    status: str | None = None
    archived_at: str | None = None
    suffix: str = ""
    former_suffixes: tuple[str, ...] = ()
    base: str = ""
    user_branch: str = ""
    tip: str | None = None
    policy: Policy = Policy()
    agents: Mapping[str, str] = {}
    by_hand: bool = False
    created_at: str = ""


def session_record(state: State, own: Records) -> Document:
    session, last = state.session, state.last
    record = SessionRecord(
        team=session.team,
        team_name=session.team_name,
        requirement=session.requirement,
        status=_status(state),
        archived_at=_moment(state.lifecycle.archived_at),
        suffix=session.suffix,
        former_suffixes=session.former_suffixes,
        base=session.base,
        user_branch=session.branch,
        tip=state.branch.tip,
        policy=state.policy,
        agents=session.agents,
        by_hand=session.by_hand,
        created_at=moment(state.created_at),
    )
    event = {"type": type(last.event).__name__, "task": getattr(last.event, "task", None), "at": moment(last.at)}
    return {
        "session_id": session.id,
        "engine": session.engine,
        **msgspec.to_builtins(record),
        **own.session,
        "branch": branch(session.id),
        "last_event": event,
        "active_tasks": list(state.attempts.running),
        "open_gates": list(state.gates.open),
        "warnings": list(state.warnings),
        "updated_at": moment(state.updated_at),
    }


def read_fields(document: Mapping[str, object], kind: type[T]) -> T:
    """A Struct whose fields all have defaults, which replace what is missing or does not fit."""
    read: Document = {}
    for one in msgspec.structs.fields(kind):  # type: ignore[arg-type]
        with suppress(KeyError, msgspec.ValidationError):
            read[one.name] = msgspec.convert(document[one.encode_name], one.type)
    return kind(**read)


def _status(state: State) -> Phase:
    """An archived session is completed, for every reader of its files."""
    return Phase.completed if state.lifecycle.phase is Phase.archived else state.lifecycle.phase


def _moment(at: float | None) -> str | None:
    return moment(at) if at else None


def _ledger(state: State, own: Records, entries: str) -> str:
    statuses = [_ledger_status(state, task, progress) for task, progress in state.tasks.progress.items()]
    counts = {status: statuses.count(status) for status in ("completed", "in_progress", "blocked")}
    metrics = {"total": len(statuses), **counts, **own.metrics}
    empty = as_json({**own.ledger, "tasks": [], "metrics": metrics})
    before, after = empty.split(NO_TASKS)
    return f'{before}\n  "tasks": [\n{entries}\n  ]{after}' if entries else empty


def ledger_entry(state: State, team: Team, task: TaskId) -> str:
    """The entry of a task, indented as in the ledger."""
    document = _entry(state, team, state.tasks.plan[task], state.tasks.progress[task])
    return "    " + as_json(document).rstrip("\n").replace("\n", "\n    ")


def _entry(state: State, team: Team, task: Task, progress: Progress) -> Document:
    snapshot = rollback.snapshot(task.id, progress)
    return {
        "id": task.id,
        "title": task.title,
        "owner": task.role,
        "status": _ledger_status(state, task.id, progress),
        "started_at": _moment(progress.started_at),
        "completed_at": _moment(progress.ended_at) if progress.status.is_final else None,
        **team.ledger_entry(state, task.id),
        "changed_files": list(progress.changed),
        "conflict_info": _conflict(state, task.id),
        "rollback_info": {
            "snapshot_id": snapshot,
            "rollback_procedure": rollback.PROCEDURE if snapshot else None,
            "last_successful_state_id": snapshot,
        },
        "external_dependencies": _external_dependencies(state.packages, task.id),
    }


def _conflict(state: State, task: TaskId) -> Document:
    """A task's own conflict, or the one that it was made to resolve: both entries have it."""
    conflicting = task if task in state.conflicts.by_task else conflict_tasks.merged_by(state, task) or task
    conflict = state.conflicts.by_task.get(conflicting)
    if conflict is None:
        return {"status": "none", "conflicting_files": [], "resolution_strategy": None, "resolved_by_task_id": None}
    return {
        "status": "resolved" if conflict_tasks.is_resolved(state, conflicting) else "detected",
        "conflicting_files": list(conflict.found.files),
        "resolution_strategy": conflict.strategy or ConflictStrategy.manual,
        "resolved_by_task_id": conflict.resolved_by,
    }


def _ledger_status(state: State, task: TaskId, progress: Progress) -> str:
    return "blocked" if state.packages.blocked and state.packages.unsolved(task) else LEDGER_STATUS[progress.status]


def _external_dependencies(part: Packages, task: TaskId) -> list[Document]:
    """What the task declared, as it was last found, and what was found before it began."""
    if task not in part.declared and task not in part.checked:
        return []
    declared = [(one, part.latest(one)) for one in part.declared.get(task, ())]
    checks = {check.key: check for check in (*(check for _, check in declared if check), *part.checked.get(task, ()))}
    unchecked = [msgspec.to_builtins(one) for one, check in declared if not check]
    pending = [{**one, "actual_version": None, "status": "pending"} for one in unchecked]
    names = ("name", "version_range", "actual_version", "source", "status")
    return pending + [{name: getattr(check, name) for name in names} for check in checks.values()]


class MetaRecord(Struct, frozen=True, kw_only=True):
    """What .msg/meta.json has for a rebuild."""

    status: str | None = None
    task_description: str = ""
    task_checkpoints: Mapping[TaskId, list[object]] = {}
    user_feedback_items: list[object] = []
    tech_debt_items: list[object] = []


def meta(state: State, own: Records) -> Document:
    """What the roles share."""
    shared = state.messages.shared[COORDINATOR].data if COORDINATOR in state.messages.shared else {}
    record = MetaRecord(
        status=_status(state),
        task_description=state.session.requirement,
        task_checkpoints=checkpoint_records(state.checkpoints),
        user_feedback_items=[item_record(item) for item in state.feedback],
        tech_debt_items=[item_record(item) for item in state.debt],
    )
    return {
        **msgspec.structs.asdict(record),
        "created_at": moment(state.created_at),
        "updated_at": moment(state.updated_at),
        "archived_at": _moment(state.lifecycle.archived_at),
        "team_name": state.session.team_name,
        "role_state": _role_state(state),
        "warnings": list(state.warnings),
        **own.meta,
        "resource_locks": lock_records(state.locks.held),
        "backlog": [msgspec.to_builtins(update) for update in state.packages.backlog],
        **{name: shared[name] for name in FROM_COORDINATOR if name in shared},
    }


def _role_state(state: State) -> Document:
    """What each role has done and what it shares itself; of two values for one key the newer counts."""
    last = {task.role: (task, progress) for task, progress in state.tasks.rows() if progress.status in FINAL}
    latest: dict[str, SharedData] = {}
    for role, (task, progress) in last.items():
        done: Document = {
            "status": progress.status,
            "task_id": task.id,
            "ref": progress.commit,
            "key_findings": progress.findings,
            "files_modified": list(progress.changed),
        }
        latest[role] = SharedData(at=progress.ended_at or state.updated_at, data=done)
    for sender, shared in state.messages.shared.items():
        older, newer = sorted((latest.get(sender, shared), shared), key=lambda one: one.at)
        latest[sender] = SharedData(at=newer.at, data={**older.data, **newer.data})
    return {sender: {**one.data, "_updated_at": moment(one.at)} for sender, one in latest.items()}


def lock_records(held: Mapping[str, Lock]) -> Document:
    return {resource: lock_record(lock) for resource, lock in held.items()}


def lock_record(lock: Lock) -> Document:
    return {"locked_by_task_id": lock.task, "timestamp": moment(lock.at), "holder_role": lock.role}


def checkpoint_record(checkpoint: Checkpoint) -> Document:
    return {"timestamp": moment(checkpoint.at), "state_data_pointer": checkpoint.pointer}


def checkpoint_records(kept: Mapping[TaskId, Sequence[Checkpoint]]) -> dict[TaskId, list[object]]:
    return {task: [checkpoint_record(one) for one in all_] for task, all_ in kept.items()}


TIME = {Feedback: "timestamp", Debt: "detection_date"}
"""The field of an item that is a time, written as text."""
Item = TypeVar("Item", Feedback, Debt)


def item_record(item: Feedback | Debt) -> Document:
    record: Document = msgspec.to_builtins(item)
    return record | {TIME[type(item)]: moment(getattr(item, TIME[type(item)]))}


def read_item(record: object, kind: type[Item]) -> Item | None:
    """What `item_record` wrote; None if it does not fit."""
    with suppress(ValueError, OverflowError):
        if isinstance(record, dict):
            at = datetime.fromisoformat(str(record.get(TIME[kind]))).timestamp()
            return msgspec.convert(record | {TIME[kind]: at}, kind)
    return None


def debt_report(report: Report) -> Document:
    record: Document = msgspec.to_builtins(report)
    items = {"open_items": report.open_items, "in_progress_items": report.in_progress_items}
    return record | {name: [item_record(item) for item in of] for name, of in items.items()}


class MessageRecord(Struct, frozen=True, kw_only=True):
    """A message as a line of .msg/messages.jsonl."""

    id: str
    ts: str
    sender: str = field(name="from")
    to: str
    type: str
    summary: str
    data: Mapping[str, object] = {}

    def as_sent(self) -> MessageSent:
        return MessageSent(
            sender=self.sender,
            to=self.to,
            kind=self.type,
            summary=self.summary,
            data=self.data,
            sent_at=datetime.fromisoformat(self.ts).timestamp(),
            number=int(self.id.removeprefix("MSG-")),
        )


def message_record(message: Message) -> Document:
    head = {"id": message.id, "ts": moment(message.ts), "from": message.sender, "to": message.to}
    data = {"data": msgspec.to_builtins(message.data)} if message.data else {}
    return {**head, "type": message.type, "summary": message.summary, **data}


def message_line(message: Message) -> str:
    return json.dumps(message_record(message), ensure_ascii=False, default=str)
