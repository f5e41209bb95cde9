"""What the development team adds to the JSON records of a session folder, and what is read back from them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from iterdev.core.collaboration.messages import COORDINATOR
from iterdev.core.ids import number_of
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session.events import Event
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Severity, Status, TaskId
from iterdev.teams.contract import Records
from iterdev.teams.development import critic, sprints
from iterdev.teams.development.documents import decision
from iterdev.teams.development.events import DesignAccepted, RoundStarted, SprintEnded, SprintRecord, SprintStarted
from iterdev.teams.development.fields import WORKERS, Pipeline, Role, fields
from iterdev.teams.development.pipelines import PREFIXES, has_inner_loop
from iterdev.teams.development.requirement_analysis import TEAM_OF
from iterdev.teams.development.results import Design, Review
from iterdev.teams.development.state import development

FROM_TABLE = "as the table says"


def records(state: State) -> Records:
    part = development(state)
    in_sprint = [
        state.tasks.status(task.id) for task in state.tasks.plan.values() if fields(task).sprint == part.sprint
    ]
    return Records(
        session={
            "pipeline": part.pipeline,
            "gc_round": part.round,
            "max_gc_rounds": part.thresholds.rounds,
            "sprint": f"sprint-{part.sprint}",
        },
        ledger={
            "sprint_id": f"sprint-{part.sprint}",
            "sprint_goal": sprints.goal(state, part.sprint),
            "pipeline": part.pipeline,
        },
        metrics={"velocity": in_sprint.count(Status.completed)},
        meta=_meta(state),
        files={"task-analysis.json": analysis_record(state)},
    )


def ledger_entry(state: State, task: TaskId) -> dict[str, object]:
    """The scores that belong to a task: its own, or those of the last task behind it that judged the work."""
    part = development(state)
    judges = (task, *reversed(state.tasks.dependants.get(task, ())))
    scores = (verdict.score for judge in judges if (verdict := part.verdicts.get(judge)))
    rates = (run.verification.pass_rate for judge in judges if (run := part.test_runs.get(judge)))
    return {
        "gc_rounds": fields(state.tasks.plan[task]).round,
        "review_score": next((score for score in scores if score is not None), None),
        "test_pass_rate": next(rates, None),
    }


def analysis_record(state: State) -> dict[str, object]:
    part = development(state)
    pipeline = part.pipeline or part.analysis.pipeline
    team = TEAM_OF[pipeline]
    prefixes = {role: prefix for prefix, role in PREFIXES.items()}
    return {
        "task_description": state.session.requirement,
        "pipeline_type": pipeline,
        "capabilities": [
            {"name": found.role, "role": found.role, "keywords": list(found.keywords)}
            for found in part.analysis.capabilities
        ],
        "roles": [{"name": role, "prefix": prefixes[role], "inner_loop": has_inner_loop(role)} for role in team],
        "complexity": {"score": part.analysis.complexity.score, "level": part.analysis.complexity.level},
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
        "sprint_history": [msgspec.to_builtins(SprintHistory.of(*pair)) for pair in part.sprints.items()],
        "architecture_decisions": [_decision(task, design) for task, design in part.designs.items()],
        "implementation_context": [
            {"task": task.id, "changed_files": list(progress.changed), "is_fix": fields(task).round > 0}
            for task, progress in state.tasks.rows()
            if task.role == Role.developer and progress.status is Status.completed
        ],
        "review_feedback_trends": [_trend(state.tasks.plan[task], review) for task, review in part.reviews.items()],
        "test_patterns": [
            {"task": task, "command": run.verification.command, "pass_rate": run.verification.pass_rate}
            for task, run in part.test_runs.items()
        ],
    }


class SprintHistory(Struct, frozen=True, kw_only=True):
    """One entry of `sprint_history`, as it is written and read back."""

    sprint_id: str
    what_worked: tuple[str, ...] = ()
    what_failed: tuple[str, ...] = ()
    patterns_learned: tuple[str, ...] = ()
    velocity: int
    expected_velocity: int
    mean_review_score: float | None
    gc_rounds: int
    tech_debt: str = ""
    pipeline: Pipeline

    @classmethod
    def of(cls, sprint: int, record: SprintRecord) -> "SprintHistory":
        return cls(
            sprint_id=f"sprint-{sprint}",
            what_worked=record.worked,
            what_failed=record.failed,
            patterns_learned=record.learned,
            velocity=record.velocity,
            expected_velocity=record.expected,
            mean_review_score=record.mean_score,
            gc_rounds=record.rounds,
            tech_debt=record.debt,
            pipeline=record.pipeline,
        )

    def ended(self) -> SprintEnded:
        record = SprintRecord(
            pipeline=self.pipeline,
            expected=self.expected_velocity,
            velocity=self.velocity,
            mean_score=self.mean_review_score,
            rounds=self.gc_rounds,
            worked=self.what_worked,
            failed=self.what_failed,
            learned=self.patterns_learned,
            debt=self.tech_debt,
        )
        return SprintEnded(int(self.sprint_id.removeprefix("sprint-")), record)


def _decision(task: TaskId, design: Design) -> dict[str, object]:
    chosen = decision(design)
    return {
        "design_id": task,
        "approach": chosen["approach"],
        "rationale": chosen["rationale"],
        "components": [component.name for component in design.components],
        "task_count": len(design.tasks),
    }


def _trend(task: Task, review: Review) -> dict[str, object]:
    return {
        "review_id": task.id,
        "score": critic.score(review.scores),
        "critical": critic.critical_count(review),
        "high": sum(issue.grade is Severity.high for issue in review.issues),
        "dimensions": {name: getattr(review.scores, name) for name in critic.WEIGHTS},
        "gc_round": fields(task).round,
    }


def restored(documents: Mapping[str, object], rows: Sequence[TableRow]) -> Iterator[Event]:
    """Designs, sprints and rounds, as the folder of a session and its table tell them. Unreadable parts are skipped."""
    yield from _designs(documents, rows)
    reached = max((fields(row.edit.task).sprint for row in rows), default=1)
    meta = documents.get(".msg/meta.json")
    history = meta.get("sprint_history") if isinstance(meta, dict) else None
    for kept in history if isinstance(history, list) else ():
        if (ended := _sprint_ended(kept)) and ended.sprint < reached:
            yield ended
    if reached > 1:
        yield SprintStarted(reached, FROM_TABLE)
    used: dict[int, int] = {}
    for row in rows:
        own = fields(row.edit.task)
        used[own.sprint] = max(own.round, used.get(own.sprint, 0))
    for sprint, number in sorted(used.items()):
        if number:
            yield RoundStarted(sprint=sprint, number=number, raised_by=(), why=FROM_TABLE)


def _designs(documents: Mapping[str, object], rows: Sequence[TableRow]) -> Iterator[DesignAccepted]:
    """What the architects handed in, and with it the milestones of the sprints to come."""
    for task in (row.edit.task for row in rows if row.edit.task.role == Role.architect):
        kept: Any = documents.get(f"design/design-{number_of(task.id)}.json")
        try:
            yield DesignAccepted(task=task.id, design=msgspec.convert(kept, Design))
        except msgspec.ValidationError:
            continue


def _sprint_ended(kept: object) -> SprintEnded | None:
    try:
        return msgspec.convert(kept, SprintHistory).ended()
    except ValueError:
        return None
