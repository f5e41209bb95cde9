"""What the views and the report say about the development team."""

from iterdev.core.ids import number_of
from iterdev.core.session.events import Gate
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Status, TaskId
from iterdev.core.views.team import TaskNotes, TeamReport, TeamView
from iterdev.teams.development import critic, sprints
from iterdev.teams.development.events import SprintRecord
from iterdev.teams.development.fields import Role, Signal
from iterdev.teams.development.rules import PIPELINE_GATE
from iterdev.teams.development.state import development


def task_notes(state: State, task: TaskId) -> TaskNotes:
    part = development(state)
    verdict, run = part.verdicts.get(task), part.test_runs.get(task)
    score = verdict.score if verdict else None
    revision = verdict is not None and verdict.signal is Signal.revision_needed
    return TaskNotes(
        artifact=_artifact(state.tasks.plan[task], score),
        verdict=f"score {score:g}, {verdict.signal}" if verdict and score is not None else "",
        unfavourable=revision or (run is not None and run.failed),
        asks_agent=state.tasks.plan[task].role != Role.tester,
        report=(f"Score: {score:g} ({verdict.signal})",) if verdict and score is not None else (),
        fields={"score": score},
    )


def _artifact(task: Task, score: float | None) -> str:
    number = task.id.rsplit("-", 1)[-1]
    match task.role:
        case Role.architect:
            return f"design/design-{number}.md"
        case Role.developer:
            return "code/dev-log.md"
        case Role.tester:
            return f"verify/verify-{number}.json"
        case Role.reviewer:
            return f"review/review-{number}.md" + (f" (score {score:g})" if score is not None else "")
        case _:
            return f"interactive/{task.id}-result.json"


def team_view(state: State) -> TeamView:
    part, total, goals = development(state), sprints.total(state), sprints.goals(state)
    rounds = part.thresholds.rounds
    sprint = f"sprint-{part.sprint}"
    listed = "; ".join(f"{number}. {goal}" for number, goal in enumerate(goals, 1))
    return TeamView(
        pipeline=part.pipeline or "",
        position=f"sprint {part.sprint} of {total}" if total > 1 else "",
        facts=(
            ("GC Rounds", f"{part.round}/{rounds}"),
            ("Sprint", sprint if total == 1 else f"{sprint} of {total} ({listed})"),
        ),
        steps=tuple(_steps(state)),
        note=f"fix rounds: {part.round} of {rounds}" if part.round else "",
        reservations=tuple(_reservations(state)),
        forced=bool(part.forced),
        fields={
            "round": part.round,
            "rounds": rounds,
            "sprint": sprint,
            "sprints": total,
            "goals": list(goals),
        },
    )


def listed_choices(gate: Gate) -> int:
    """Other pipelines are variants of the approval."""
    return 1 if gate.kind == PIPELINE_GATE else len(gate.choices)


def _steps(state: State) -> list[str]:
    """The milestones that were planned, the sprints that began, and the fix rounds."""
    part, goals = development(state), sprints.goals(state)
    steps = []
    if len(goals) > 1:
        steps.append(f"{len(goals)} sprints: " + "; ".join(f"{number}. {goal}" for number, goal in enumerate(goals, 1)))
    for sprint in range(1, part.sprint + 1):
        if sprint > 1:
            plain = (
                " (plain, since the one before went well)" if sprint == part.sprint and sprints.is_plain(state) else ""
            )
            steps.append(f"sprint {sprint} of {sprints.total(state)}: {sprints.goal(state, sprint)}{plain}")
        steps += [
            f"fix round {number} of {part.thresholds.rounds}" for number in range(1, part.rounds.get(sprint, 0) + 1)
        ]
    return steps


def _reservations(state: State) -> list[str]:
    part, total = development(state), sprints.total(state)
    forced = ", ".join(f"sprint-{number}" for number in part.forced)
    found = [f"with convergence forced in {forced}"] if forced else []
    return found + ([f"stopped after sprint {part.sprint} of {total}"] if part.sprint < total else [])


def team_report(state: State) -> TeamReport:
    part = development(state)
    return TeamReport(
        title="Team IterDev Report",
        header=(("Pipeline", part.pipeline or "not chosen"),),
        summary=(("GC Rounds", sum(part.rounds.values())),),
        overview=_overview(state),
        verdicts=_verdicts(state),
        deliverables=_deliverables(state),
    )


def _overview(state: State) -> str:
    """The sprints that are over, and what the others are for."""
    part, total = development(state), sprints.total(state)
    if not part.sprints and total == 1:
        return ""
    lines = "".join(
        f"| sprint-{number} | {sprints.goal(state, number)} | {_figures(part.sprints.get(number))} |\n"
        for number in range(1, total + 1)
    )
    head = (
        "| Sprint | Goal | Velocity | Mean Score | GC Rounds |\n|--------|------|----------|------------|-----------|\n"
    )
    debts = "".join(
        f"\nTechnical debt after sprint-{number}: {record.debt}.\n"
        for number, record in part.sprints.items()
        if record.debt
    )
    return f"## Sprints\n\n{head}{lines}{debts}"


def _figures(record: SprintRecord | None) -> str:
    if record is None:
        return "- | - | -"
    score = "-" if record.mean_score is None else f"{record.mean_score:g}"
    return f"{record.velocity} of {record.expected} | {score} | {record.rounds}"


def _verdicts(state: State) -> str:
    lines = []
    for task, run in development(state).test_runs.items():
        measured = run.verification
        rate = "nothing was verified" if measured.pass_rate is None else f"{measured.pass_rate:.1%} passed"
        known = f", {len(measured.known_failures)} failed before too" if measured.known_failures else ""
        note = f" ({measured.note})" if measured.note else ""
        failing = f", failing: {', '.join(measured.failures[:5])}" if measured.failures else ""
        lines.append(f"- {task}: {rate}{failing}{known}, `{measured.command}`{note}\n")
    for task, verdict in development(state).verdicts.items():
        if verdict.review:
            lines.append(
                f"- {task}: score {verdict.score or 0:g}, "
                f"{critic.critical_count(verdict.review)} critical, {len(verdict.review.issues)} findings, "
                f"{verdict.signal}{_since(state, task)}\n"
            )
    return f"## Verdicts\n\n{''.join(lines)}" if lines else ""


def _since(state: State, task: TaskId) -> str:
    """What a later round did to the findings of the one before."""
    seen = critic.of_round(state, task)
    return f" ({len(seen.fixed)} fixed, {len(seen.still_there)} still there, {len(seen.new)} new)" if seen else ""


def _deliverables(state: State) -> tuple[tuple[str, tuple[str, ...]], ...]:
    def numbered(role: Role, form: str) -> tuple[str, ...]:
        done = (task for task, progress in state.tasks.rows() if progress.status is Status.completed)
        return tuple(form.format(number_of(task.id)) for task in done if task.role == role)

    return (
        ("Design Document", numbered(Role.architect, "design/design-{}.md")),
        ("Task Breakdown", ("design/task-breakdown.json",) if development(state).designs else ()),
        ("Dev Log", ("code/dev-log.md",) if numbered(Role.developer, "{}") else ()),
        ("Verification", numbered(Role.tester, "verify/verify-{}.json")),
        ("Review Report", numbered(Role.reviewer, "review/review-{}.md")),
        ("Wisdom", ("wisdom/",)),
    )
