"""The JSON records of a session folder: session.json, task-ledger.json, .msg/meta.json, the messages.

What the team knows, it adds itself.
"""

import json
from datetime import datetime

import msgspec
from msgspec import Struct, field

from iterdev.core.collaboration.external_packages import Packages
from iterdev.core.collaboration.messages import COORDINATOR, Message, MessageSent, SharedData
from iterdev.core.ids import branch, moment
from iterdev.core.rules import conflict_tasks, rollback
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Progress
from iterdev.core.session.tasks import Task
from iterdev.core.types import ConflictStrategy, Phase, Status, TaskId
from iterdev.store.session_folder.collaboration_records import shared
from iterdev.teams.contract import Records, Team

LEDGER_STATUS = {
    Status.pending: "pending",
    Status.in_progress: "in_progress",
    Status.landing: "in_progress",
    Status.completed: "completed",
    Status.failed: "blocked",
    Status.skipped: "blocked",
}

FROM_COORDINATOR = ("pipeline_mode", "pipeline_stages", "team_name", "task_description", "roles")
"""What the coordinator alone may tell the team about the session."""


def records(state: State, team: Team) -> dict[str, str]:
    own = team.records(state)
    documents = {
        "session.json": session_record(state, own),
        "task-ledger.json": ledger(state, team, own),
        ".msg/meta.json": meta(state, own),
        **own.files,
    }
    return {name: as_json(document) for name, document in documents.items()}


def as_json(document: object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def session_record(state: State, own: Records) -> dict[str, object]:
    """The run: what was asked, where it stands, and what is needed to make a lost journal again."""
    session, last = state.session, state.last
    return {
        "session_id": session.id,
        "team": session.team,
        "team_name": session.team_name,
        "engine": session.engine,
        "requirement": session.requirement,
        "status": _status(state),
        "archived_at": _archived_at(state),
        **own.session,
        "last_event": {
            "type": type(last.event).__name__,
            "task": getattr(last.event, "task", None),
            "at": moment(last.at),
        },
        "active_tasks": list(state.attempts.running),
        "open_gates": list(state.gates.open),
        "warnings": list(state.warnings),
        "base": session.base,
        "user_branch": session.branch,
        "branch": branch(session.id),
        "tip": state.branch.tip,
        "policy": msgspec.to_builtins(state.policy),
        "agents": dict(session.agents),
        "by_hand": session.by_hand,
        "created_at": moment(state.created_at),
        "updated_at": moment(state.updated_at),
    }


def _status(state: State) -> Phase:
    """An archived session is completed, for every reader of its files."""
    return Phase.completed if state.lifecycle.phase is Phase.archived else state.lifecycle.phase


def _archived_at(state: State) -> str | None:
    at = state.lifecycle.archived_at
    return None if at is None else moment(at)


def ledger(state: State, team: Team, own: Records) -> dict[str, object]:
    tasks = [_entry(state, team, task, progress) for task, progress in state.tasks.rows()]
    statuses = [_ledger_status(state, task, progress) for task, progress in state.tasks.progress.items()]
    counts = {status: statuses.count(status) for status in ("completed", "in_progress", "blocked")}
    return {**own.ledger, "tasks": tasks, "metrics": {"total": len(tasks), **counts, **own.metrics}}


def _entry(state: State, team: Team, task: Task, progress: Progress) -> dict[str, object]:
    return {
        "id": task.id,
        "title": task.title,
        "owner": task.role,
        "status": _ledger_status(state, task.id, progress),
        "started_at": moment(progress.started_at) if progress.started_at else None,
        "completed_at": moment(progress.ended_at) if progress.ended_at and progress.status.is_final else None,
        **team.ledger_entry(state, task.id),
        "changed_files": list(progress.changed),
        "conflict_info": _conflict(state, task.id),
        "rollback_info": _rollback(task.id, progress),
        "external_dependencies": _external_dependencies(state.packages, task.id),
    }


def _rollback(task: TaskId, progress: Progress) -> dict[str, object]:
    snapshot = rollback.snapshot(task, progress)
    procedure = rollback.PROCEDURE if snapshot else None
    return {"snapshot_id": snapshot, "rollback_procedure": procedure, "last_successful_state_id": snapshot}


def _conflict(state: State, task: TaskId) -> dict[str, object]:
    """A task's own conflict, or the one that it was made to resolve: that stands in both entries."""
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
    return "blocked" if state.packages.unsolved(task) else LEDGER_STATUS[progress.status]


def _external_dependencies(part: Packages, task: TaskId) -> list[dict[str, object]]:
    """What the task declared, as it was last found, and what was found before it began."""
    declared = [(one, part.latest(one)) for one in part.declared.get(task, ())]
    checks = {check.key: check for check in (*(check for _, check in declared if check), *part.checked.get(task, ()))}
    pending = [
        {**msgspec.to_builtins(one), "actual_version": None, "status": "pending"}
        for one, check in declared
        if not check
    ]
    return pending + [
        {
            "name": check.name,
            "version_range": check.version_range,
            "actual_version": check.actual_version,
            "source": check.source,
            "status": check.status,
        }
        for check in checks.values()
    ]


def meta(state: State, own: Records) -> dict[str, object]:
    """What the roles share."""
    told = state.messages.shared[COORDINATOR].data if COORDINATOR in state.messages.shared else {}
    return {
        "status": _status(state),
        "created_at": moment(state.created_at),
        "updated_at": moment(state.updated_at),
        "archived_at": _archived_at(state),
        "team_name": state.session.team_name,
        "task_description": state.session.requirement,
        "role_state": _role_state(state),
        "warnings": list(state.warnings),
        **own.meta,
        **shared(state),
        "backlog": [msgspec.to_builtins(update) for update in state.packages.backlog],
        **{name: told[name] for name in FROM_COORDINATOR if name in told},
    }


def _role_state(state: State) -> dict[str, object]:
    """What each role is known to have done and what it shares itself; of two values for one key the newer counts."""
    latest: dict[str, SharedData] = {}
    for task, progress in state.tasks.rows():
        if progress.status.is_final:
            done: dict[str, object] = {
                "status": progress.status,
                "task_id": task.id,
                "ref": progress.commit,
                "key_findings": progress.findings,
                "files_modified": list(progress.changed),
            }
            latest[task.role] = SharedData(at=progress.ended_at or state.updated_at, data=done)
    for sender, told in state.messages.shared.items():
        older, newer = sorted((latest.get(sender, told), told), key=lambda one: one.at)
        latest[sender] = SharedData(at=newer.at, data={**older.data, **newer.data})
    return {sender: {**one.data, "_updated_at": moment(one.at)} for sender, one in latest.items()}


def message_line(message: Message) -> str:
    return json.dumps(message_record(message), ensure_ascii=False, default=str)


def message_record(message: Message) -> dict[str, object]:
    document: dict[str, object] = {
        "id": message.id,
        "ts": moment(message.ts),
        "from": message.sender,
        "to": message.to,
        "type": message.type,
        "summary": message.summary,
    }
    if message.data:
        document["data"] = dict(message.data)
    return document


class MessageLine(Struct, frozen=True, kw_only=True):
    """A message as `message_line` wrote it."""

    id: str
    ts: datetime
    sender: str = field(name="from")
    to: str
    type: str
    summary: str
    data: dict[str, object] = {}

    def as_sent(self) -> MessageSent:
        return MessageSent(
            sender=self.sender,
            to=self.to,
            kind=self.type,
            summary=self.summary,
            data=self.data,
            sent_at=self.ts.timestamp(),
            number=int(self.id.removeprefix("MSG-")),
        )
