"""The machine-readable records of a session folder: session.json, ledger, analysis, shared state, bus."""

import json

import msgspec

from iterdev.core.collaboration.external_packages import Dependencies
from iterdev.core.ids import PREFIXES, moment
from iterdev.core.results import Design, Review
from iterdev.core.session import conflict_tasks, rollback
from iterdev.core.session.announcements import COORDINATOR
from iterdev.core.session.events import SprintRecord
from iterdev.core.session.state import Message, Progress, Shared, State
from iterdev.core.session.tasks import Task
from iterdev.core.task_description import has_inner_loop
from iterdev.core.types import WORKERS, Phase, Role, Severity, Status, Strategy, TaskId
from iterdev.store.session_folder.collaboration_records import shared as protocols
from iterdev.teams.development import critic, sprints
from iterdev.teams.development.documents import as_json, decision
from iterdev.teams.development.requirement_analysis import TEAM_OF

LEDGER_STATUS = {
    Status.pending: "pending",
    Status.in_progress: "in_progress",
    Status.landing: "in_progress",
    Status.completed: "completed",
    Status.failed: "blocked",
    Status.skipped: "blocked",
}

COORDINATOR_S = ("pipeline_mode", "pipeline_stages", "team_name", "task_description", "roles")
"""What the coordinator alone may tell the team about the session."""


def records(state: State) -> dict[str, str]:
    return {
        "session.json": as_json(session_record(state)),
        "task-ledger.json": as_json(ledger(state)),
        "task-analysis.json": as_json(analysis_record(state)),
        ".msg/meta.json": as_json(meta(state)),
    }


def session_record(state: State) -> dict[str, object]:
    """The run: what was asked, where it stands, and what a rebuild needs to take it up again."""
    session = state.session
    return {
        "session_id": session.id,
        "team_name": session.team_name,
        "engine": session.engine,
        "requirement": session.requirement,
        "pipeline": state.pipeline,
        "status": _status(state),
        "archived_at": _archived_at(state),
        "gc_round": state.round,
        "max_gc_rounds": state.policy.rounds,
        "sprint": f"sprint-{state.sprint}",
        "last_event": {
            "type": type(state.last.event).__name__,
            "task": getattr(state.last.event, "task", None),
            "at": moment(state.last.at),
        },
        "active_tasks": list(state.running),
        "open_gates": list(state.gates),
        "warnings": list(state.warnings),
        "base": session.base,
        "user_branch": session.branch,
        "branch": f"iterdev/{session.id}",
        "tip": state.tip,
        "policy": msgspec.to_builtins(state.policy),
        "agents": dict(session.agents),
        "by_hand": session.by_hand,
        "created_at": moment(state.created_at),
        "updated_at": moment(state.updated_at),
    }


def _status(state: State) -> Phase:
    """A session that was put away is completed, for everybody who reads its files."""
    return Phase.completed if state.phase is Phase.archived else state.phase


def _archived_at(state: State) -> str | None:
    at = state.completion.archived_at
    return None if at is None else moment(at)


def ledger(state: State) -> dict[str, object]:
    tasks = [_entry(state, task, progress) for task, progress in state.rows()]
    statuses = [_ledger_status(state, task, progress) for task, progress in state.progress.items()]
    in_sprint = [state.progress[task.id].status for task in state.tasks.values() if task.sprint == state.sprint]
    return {
        "sprint_id": f"sprint-{state.sprint}",
        "sprint_goal": sprints.goal(state, state.sprint),
        "pipeline": state.pipeline,
        "tasks": tasks,
        "metrics": {
            "total": len(tasks),
            "completed": statuses.count("completed"),
            "in_progress": statuses.count("in_progress"),
            "blocked": statuses.count("blocked"),
            "velocity": in_sprint.count(Status.completed),
        },
    }


def _entry(state: State, task: Task, progress: Progress) -> dict[str, object]:
    return {
        "id": task.id,
        "title": task.title,
        "owner": task.role,
        "status": _ledger_status(state, task.id, progress),
        "started_at": moment(progress.started_at) if progress.started_at else None,
        "completed_at": moment(progress.ended_at) if progress.ended_at and progress.status.is_final else None,
        "gc_rounds": task.round,
        "review_score": _score(state, task.id),
        "test_pass_rate": _pass_rate(state, task.id),
        "changed_files": list(progress.changed),
        "conflict_info": _conflict(state, task.id),
        "rollback_info": _way_back(task.id, progress),
        "external_dependencies": _external_dependencies(state.dependencies, task.id),
    }


def _score(state: State, task: TaskId) -> float | None:
    """The review's own score, or the one that the last review right behind the work gave it."""
    seen = (state.progress[other].score for other in _judges(state, task))
    return next((score for score in seen if score is not None), None)


def _pass_rate(state: State, task: TaskId) -> float | None:
    seen = (state.verifications.get(other) for other in _judges(state, task))
    return next((measured.pass_rate for measured in seen if measured), None)


def _judges(state: State, task: TaskId) -> tuple[TaskId, ...]:
    return task, *reversed(state.dependants.get(task, ()))


def _way_back(task: TaskId, progress: Progress) -> dict[str, object]:
    snapshot = rollback.snapshot(task, progress)
    procedure = rollback.PROCEDURE if snapshot else None
    return {"snapshot_id": snapshot, "rollback_procedure": procedure, "last_successful_state_id": snapshot}


def _conflict(state: State, task: TaskId) -> dict[str, object]:
    """A task's own conflict, or the one for whose sake it was made: that stands in both entries."""
    resolving = (other for other, conflict in state.conflicts.items() if conflict.resolved_by == task)
    collided = task if task in state.conflicts else next(resolving, task)
    conflict = state.conflicts.get(collided)
    if conflict is None:
        return {"status": "none", "conflicting_files": [], "resolution_strategy": None, "resolved_by_task_id": None}
    return {
        "status": "resolved" if conflict_tasks.is_resolved(state, collided) else "detected",
        "conflicting_files": list(conflict.files),
        "resolution_strategy": conflict.strategy or Strategy.manual,
        "resolved_by_task_id": conflict.resolved_by,
    }


def _ledger_status(state: State, task: TaskId, progress: Progress) -> str:
    return "blocked" if state.dependencies.unsolved(task) else LEDGER_STATUS[progress.status]


def _external_dependencies(part: Dependencies, task: TaskId) -> list[dict[str, object]]:
    """What the task declared, as it was last found, and what was found before it began."""
    declared = [(one, part.latest(one)) for one in part.declared.get(task, ())]
    looks = {look.key: look for look in (*(look for _, look in declared if look), *part.checked.get(task, ()))}
    pending = [
        {**msgspec.to_builtins(one), "actual_version": None, "status": "pending"} for one, look in declared if not look
    ]
    return pending + [
        {
            "name": look.name,
            "version_range": look.version_range,
            "actual_version": look.actual_version,
            "source": look.source,
            "status": look.status,
        }
        for look in looks.values()
    ]


def analysis_record(state: State) -> dict[str, object]:
    analysis = state.session.analysis
    pipeline = state.pipeline or analysis.pipeline
    team = TEAM_OF[pipeline]
    prefixes = {role: prefix for prefix, role in PREFIXES.items()}
    return {
        "task_description": state.session.requirement,
        "pipeline_type": pipeline,
        "capabilities": [
            {"name": found.role, "role": found.role, "keywords": list(found.keywords)}
            for found in analysis.capabilities
        ],
        "roles": [{"name": role, "prefix": prefixes[role], "inner_loop": has_inner_loop(role)} for role in team],
        "complexity": {"score": analysis.complexity.score, "level": analysis.complexity.level},
        "needs_architecture": Role.architect in team,
        "needs_testing": Role.tester in team,
        "needs_review": Role.reviewer in team,
    }


def meta(state: State) -> dict[str, object]:
    """What the roles share."""
    workers = [role.value for role in WORKERS]
    told = state.shared[COORDINATOR].data if COORDINATOR in state.shared else {}
    return {
        "status": _status(state),
        "created_at": moment(state.created_at),
        "updated_at": moment(state.updated_at),
        "archived_at": _archived_at(state),
        "pipeline_mode": state.pipeline,
        "pipeline_stages": workers,
        "team_name": state.session.team_name,
        "task_description": state.session.requirement,
        "roles": [COORDINATOR, *workers],
        "role_state": _role_state(state),
        "gc_round": state.round,
        "max_gc_rounds": state.policy.rounds,
        "warnings": list(state.warnings),
        "sprint_history": [_sprint(sprint, record) for sprint, record in state.sprints.items()],
        "architecture_decisions": [_decision(task, design) for task, design in state.designs.items()],
        "implementation_context": _implementation(state),
        "review_feedback_trends": [_trend(state.tasks[task], review) for task, review in state.reviews.items()],
        "test_patterns": [
            {"task": task, "command": measured.command, "pass_rate": measured.pass_rate}
            for task, measured in state.verifications.items()
        ],
        **protocols(state),
        "backlog": [msgspec.to_builtins(update) for update in state.dependencies.backlog],
        **{name: told[name] for name in COORDINATOR_S if name in told},
    }


def _sprint(sprint: int, record: SprintRecord) -> dict[str, object]:
    return {
        "sprint_id": f"sprint-{sprint}",
        "what_worked": list(record.worked),
        "what_failed": list(record.failed),
        "patterns_learned": list(record.learned),
        "velocity": record.velocity,
        "expected_velocity": record.expected,
        "mean_review_score": record.mean_score,
        "gc_rounds": record.rounds,
        "tech_debt": record.debt,
        "pipeline": record.pipeline,
    }


def _role_state(state: State) -> dict[str, object]:
    """What each role is known to have done and what it shares itself; of two words on one thing the newer counts."""
    latest: dict[str, Shared] = {}
    for task, progress in state.rows():
        if progress.status.is_final:
            done: dict[str, object] = {
                "status": progress.status,
                "task_id": task.id,
                "ref": progress.commit,
                "key_findings": progress.findings,
                "files_modified": list(progress.changed),
            }
            latest[task.role] = Shared(at=progress.ended_at or state.updated_at, data=done)
    for sender, shared in state.shared.items():
        older, newer = sorted((latest.get(sender, shared), shared), key=lambda one: one.at)
        latest[sender] = Shared(at=newer.at, data={**older.data, **newer.data})
    return {sender: {**one.data, "_updated_at": moment(one.at)} for sender, one in latest.items()}


def _decision(task: TaskId, design: Design) -> dict[str, object]:
    chosen = decision(design)
    return {
        "design_id": task,
        "approach": chosen["approach"],
        "rationale": chosen["rationale"],
        "components": [component.name for component in design.components],
        "task_count": len(design.tasks),
    }


def _implementation(state: State) -> list[dict[str, object]]:
    return [
        {"task": task.id, "changed_files": list(progress.changed), "is_fix": task.round > 0}
        for task, progress in state.rows()
        if task.role is Role.developer and progress.status is Status.completed
    ]


def _trend(task: Task, review: Review) -> dict[str, object]:
    return {
        "review_id": task.id,
        "score": critic.score(review.scores),
        "critical": critic.critical_count(review),
        "high": sum(issue.grade is Severity.high for issue in review.issues),
        "dimensions": {name: getattr(review.scores, name) for name in critic.WEIGHTS},
        "gc_round": task.round,
    }


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
