"""What the development team adds to the JSON records of a session folder, and what is read back from them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from iterdev.core.collaboration.messages import COORDINATOR
from iterdev.core.draft import differing
from iterdev.core.ids import number_of
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session.events import Event
from iterdev.core.session.state import State
from iterdev.core.types import Severity, Status, TaskId
from iterdev.teams.contract import Records
from iterdev.teams.development import critic, sprints
from iterdev.teams.development.documents import decision, pass_percent
from iterdev.teams.development.events import DesignAccepted, RoundStarted, SprintEnded, SprintRecord, SprintStarted
from iterdev.teams.development.requirement_analysis import TEAM_OF
from iterdev.teams.development.results import Design
from iterdev.teams.development.roles import ROLES, WORKERS, Role, fields
from iterdev.teams.development.state import development

FROM_TABLE = "as the table says"
SPRINT_HISTORY = {
    "worked": "what_worked",
    "failed": "what_failed",
    "learned": "patterns_learned",
    "velocity": "velocity",
    "expected": "expected_velocity",
    "mean_score": "mean_review_score",
    "rounds": "gc_rounds",
    "debt": "tech_debt",
    "pipeline": "pipeline",
}
"""The fields of a sprint's record, and their names in `sprint_history`."""


def records(state: State) -> Records:
    part = development(state)
    sprint, rounds = f"sprint-{part.sprint}", {"gc_round": part.round, "max_gc_rounds": part.thresholds.rounds}
    completed = (task for task, progress in state.tasks.rows() if progress.status is Status.completed)
    goal = sprints.goal(state, part.sprint)
    return Records(
        session={"pipeline": part.pipeline, **rounds, "sprint": sprint},
        ledger={"sprint_id": sprint, "sprint_goal": goal, "pipeline": part.pipeline},
        metrics={"velocity": sum(fields(task).sprint == part.sprint for task in completed)},
        meta=_meta(state),
        files={"task-analysis.json": analysis_record(state)},
    )


def ledger_entry(state: State, task: TaskId) -> dict[str, object]:
    """The scores that belong to a task: its own, or those of the last task behind it that judged the work."""
    part = development(state)
    judges = (task, *reversed(state.tasks.dependants.get(task, ())))
    scores = (verdict.score for judge in judges if (verdict := part.verdicts.get(judge)))
    rates = (pass_percent(run.verification) for judge in judges if (run := part.test_runs.get(judge)))
    return {
        "gc_rounds": fields(state.tasks.plan[task]).round,
        "review_score": next((score for score in scores if score is not None), None),
        "test_pass_rate": next(rates, None),
    }


def shown_otherwise(state: State, since: State) -> set[TaskId]:
    """Tasks with another verdict or test run, and the work that these judge."""
    now, then, plan = development(state), development(since), state.tasks.plan
    judges = differing(now.verdicts, then.verdicts) | differing(now.test_runs, then.test_runs)
    return judges | {work for judge in judges if judge in plan for work in plan[judge].deps}


def analysis_record(state: State) -> dict[str, object]:
    part = development(state)
    pipeline = part.pipeline or part.analysis.pipeline
    team = TEAM_OF[pipeline]
    return {
        "task_description": state.session.requirement,
        "pipeline_type": pipeline,
        "capabilities": [
            {"name": found.role, "role": found.role, "keywords": list(found.keywords)}
            for found in part.analysis.capabilities
        ],
        "roles": [{"name": role, "prefix": ROLES[role].prefix, "inner_loop": ROLES[role].loops} for role in team],
        "complexity": msgspec.to_builtins(part.analysis.complexity),
        "needs_architecture": Role.architect in team,
        "needs_testing": Role.tester in team,
        "needs_review": Role.reviewer in team,
    }


def _meta(state: State) -> dict[str, object]:
    part = development(state)
    return {
        "pipeline_mode": part.pipeline,
        "pipeline_stages": list(WORKERS),
        "roles": [COORDINATOR, *WORKERS],
        "gc_round": part.round,
        "max_gc_rounds": part.thresholds.rounds,
        "sprint_history": [
            {"sprint_id": f"sprint-{sprint}"} | {name: getattr(record, own) for own, name in SPRINT_HISTORY.items()}
            for sprint, record in part.sprints.items()
        ],
        "architecture_decisions": [
            {
                "design_id": task,
                **{name: text for name, text in decision(design).items() if name != "alternatives"},
                "components": [component.name for component in design.components],
                "task_count": len(design.tasks),
            }
            for task, design in part.designs.items()
        ],
        "implementation_context": [
            {
                "task": task.id,
                "changed_files": list(progress.changed),
                "is_fix": fields(task).round > 0,
                "syntax_clean": progress.syntax_clean,
            }
            for task, progress in state.tasks.rows()
            if progress.status is Status.completed and task.role == Role.developer
        ],
        "review_feedback_trends": [
            {
                "review_id": task,
                "score": critic.score(review.scores),
                "critical": critic.critical_count(review),
                "high": sum(issue.grade is Severity.high for issue in review.issues),
                "dimensions": msgspec.structs.asdict(review.scores),
                "gc_round": fields(state.tasks.plan[task]).round,
            }
            for task, review in part.reviews.items()
        ],
        "test_patterns": [
            {"task": task, "command": run.verification.command, "pass_rate": pass_percent(run.verification)}
            for task, run in part.test_runs.items()
        ],
    }


def restored(documents: Mapping[str, object], rows: Sequence[TableRow]) -> Iterator[Event]:
    """Designs, sprints and rounds, as the folder of a session and its table tell them. Unreadable parts are skipped."""
    for task in (row.edit.task for row in rows if row.edit.task.role == Role.architect):
        # With the designs come the milestones of the sprints to come.
        with suppress(msgspec.ValidationError):
            kept = msgspec.convert(documents.get(f"design/design-{number_of(task.id)}.json"), Design)
            yield DesignAccepted(task=task.id, design=kept)
    used: dict[int, int] = {1: 0}
    for own in (fields(row.edit.task) for row in rows):
        used[own.sprint] = max(own.round, used.get(own.sprint, 0))
    reached = max(used)
    meta = documents.get(".msg/meta.json")
    history = meta.get("sprint_history") if isinstance(meta, dict) else None
    for entry in history if isinstance(history, list) else ():
        with suppress(ValueError):
            if (ended := _sprint_ended(entry)).sprint < reached:
                yield ended
    if reached > 1:
        yield SprintStarted(reached, FROM_TABLE)
    for sprint, number in sorted(used.items()):
        if number:
            yield RoundStarted(sprint=sprint, number=number, raised_by=(), why=FROM_TABLE)


def _sprint_ended(entry: object) -> SprintEnded:
    document = msgspec.convert(entry, dict[str, object])
    record = {own: document[name] for own, name in SPRINT_HISTORY.items() if name in document}
    number = int(str(document.get("sprint_id")).removeprefix("sprint-"))
    return SprintEnded(number, msgspec.convert(record, SprintRecord))
