"""What the issue team adds to the JSON records of a session folder."""

from collections.abc import Collection, Mapping

from iterdev.core.collaboration.messages import COORDINATOR
from iterdev.core.ids import moment
from iterdev.core.session.state import State
from iterdev.core.types import Status, TaskId
from iterdev.teams.contract import Records
from iterdev.teams.issues.roles import ROLES, WORKERS, Role, fields
from iterdev.teams.issues.state import issue_part, issues_of


def records(state: State) -> Records:
    part = issue_part(state)
    own = {
        "session_id": state.session.id,
        "pipeline_mode": part.pipeline,
        "issue_ids": list(part.issues),
        "execution_method": part.method,
        "fix_cycles": part.cycles,
        "max_fix_cycles": part.thresholds.cycles,
        "created_at": moment(state.created_at),
    }
    goal = f"Resolve {', '.join(part.issues)}"
    return Records(
        session=own,
        ledger={"sprint_id": "sprint-1", "sprint_goal": goal, "pipeline": part.pipeline},
        metrics={"velocity": state.tasks.count(Status.completed)},
        meta=_meta(state),
        files={"task-analysis.json": _analysis(state)},
    )


def _meta(state: State) -> dict[str, object]:
    part = issue_part(state)
    return {
        "pipeline_mode": part.pipeline,
        "pipeline_stages": list(WORKERS),
        "roles": [COORDINATOR, *WORKERS],
        "fix_cycles": part.cycles,
        "max_fix_cycles": part.thresholds.cycles,
        "issue_ids": list(part.issues),
    }


def _analysis(state: State) -> dict[str, object]:
    part = issue_part(state)
    used = dict.fromkeys(task.role for task in state.tasks.plan.values())
    return {
        "task_description": state.session.requirement,
        "pipeline_type": part.pipeline,
        "issue_ids": list(part.issues),
        "roles": [{"name": role, "prefix": ROLES[role].prefix, "inner_loop": ROLES[role].loops} for role in used],
        "dependency_graph": {
            task.id: {"role": task.role, "blockedBy": list(task.deps), "priority": _priority(state, task.id)}
            for task in state.tasks.plan.values()
        },
        "parallel_explorers": len(state.tasks.of_role(Role.explorer)),
        "parallel_builders": len(state.tasks.of_role(Role.implementer)),
        "needs_review": Role.reviewer in used,
    }


def _priority(state: State, task: TaskId) -> str:
    """P0 for urgent issues, P2 for those that can wait."""
    part = issue_part(state)
    known = [part.issues[name] for name in issues_of(state, state.tasks.plan[task])]
    highest = max((issue.description.priority for issue in known), default=3)
    return "P0" if highest >= 4 else "P1" if highest == 3 else "P2"


def ledger_entry(state: State, task: TaskId) -> Mapping[str, object]:
    return {"issue_ids": list(fields(state.tasks.plan[task]).issues)}


def shown_otherwise(state: State, since: State) -> Collection[TaskId]:
    """Artifacts of any task may follow from what the team knows of its issues."""
    return () if state.team is since.team else state.tasks.plan.keys()
