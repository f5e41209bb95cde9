"""What the views and the report say about the development team."""

import re
from collections.abc import Iterable

import msgspec

from iterdev.core.formatting import counted, percent
from iterdev.core.session.events import Gate, TeamEvent
from iterdev.core.session.gates import UnverifiedChoice
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Severity, Status, TaskId
from iterdev.core.views.team import FindingView, ReviewView, TaskNotes, TeamReport, TeamView, TestRunView
from iterdev.teams.development import critic, sprints
from iterdev.teams.development.documents import BREAKDOWN, artifact, pass_percent, review_document
from iterdev.teams.development.events import RoundStarted, SprintRecord, SprintStarted, TestsMeasured
from iterdev.teams.development.roles import Pipeline, Role, Signal, fields
from iterdev.teams.development.rules import (
    APPROVE,
    PIPELINE_GATE,
    UNTESTED,
    UNVERIFIED_GATE,
    is_tested,
    last_test_run,
    shortcomings,
)
from iterdev.teams.development.state import Verdict, development, rows_of

PIPELINES = {
    Pipeline.patch.value: "Simple fix: DEV -> VERIFY (2 tasks)",
    Pipeline.sprint.value: "Standard: DESIGN -> DEV -> VERIFY + REVIEW (4 tasks)",
    Pipeline.multi_sprint.value: "Complex: several sprints, each with a design and a review of its own",
}
SPRINT_CHOICES = {
    sprints.SprintChoice.go_on.value: "Start the next sprint",
    sprints.SprintChoice.downgrade.value: "Start the next sprint as a plain one",
    sprints.SprintChoice.stop.value: "End the session here; what landed stays",
}
UNVERIFIED_CHOICES = {
    UnverifiedChoice.reject.value: "The work stays on its branch, and the session counts as not verified",
    UnverifiedChoice.accept.value: "The work counts as done",
}


def task_notes(state: State, task: TaskId) -> TaskNotes:
    part = development(state)
    verdict, run, row = part.verdicts.get(task, Verdict()), part.test_runs.get(task), state.tasks.plan[task]
    score = "" if verdict.score is None else f"score {verdict.score:g}"
    return TaskNotes(
        artifact=artifact(row) + _measure(row, score, run),
        verdict=f"{score}, {verdict.signal}" if score else "",
        unfavourable=verdict.signal is Signal.revision_needed or (run is not None and run.failed),
        asks_agent=row.role != Role.tester,
        report=(f"Score: {verdict.score:g} ({verdict.signal})",) if score else (),
        fields={
            "sprint": fields(row).sprint,
            "round": fields(row).round,
            "score": verdict.score,
            "pass_rate": pass_percent(run.verification) if run else None,
        },
    )


def _measure(row: Task, score: str, run: TestsMeasured | None) -> str:
    """The number that a review or a test run ended with, to follow its file."""
    if run and row.role == Role.tester:
        rate = run.verification.pass_rate
        return " (nothing was verified)" if rate is None else f" (pass rate {percent(rate):.1f}%)"
    return f" ({score})" if score and row.role == Role.reviewer else ""


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
        verdicts=tuple(_last_verdicts(state)),
        shortcomings=shortcomings(state) if state.lifecycle.is_finished else (),
        fields={"round": part.round, "rounds": rounds, "sprint": sprint, "sprints": total, "goals": list(goals)},
    )


def milestone(event: TeamEvent) -> str:
    match event:
        case RoundStarted(number=number):
            return f"fix round {number}"
        case SprintStarted(sprint=sprint):
            return f"sprint {sprint}"
        case _:
            return ""


def findings(state: State) -> tuple[FindingView, ...]:
    views = (
        FindingView(
            id=critic.identity(finding),
            severity=finding.grade,
            dimension=finding.dimension,
            file=finding.file,
            line=_line_number(finding.line),
            text=finding.description,
            suggestion=finding.suggestion,
            reported_by=reviews,
            fixed_in=fixed_in,
        )
        for finding, reviews, fixed_in in critic.reported_findings(state)
    )
    return tuple(sorted(views, key=lambda view: list(Severity).index(view.severity)))


def reviews(state: State) -> tuple[ReviewView, ...]:
    part = development(state)
    return tuple(_review_view(state, task, part.verdicts[task]) for task in _in_order(state, part.verdicts))


def _review_view(state: State, task: TaskId, verdict: Verdict) -> ReviewView:
    since, review = critic.of_round(state, task), verdict.review
    return ReviewView(
        task=task,
        score=verdict.score,
        passed=verdict.signal is not Signal.revision_needed,
        verdict=verdict.signal or "",
        scores=tuple(msgspec.structs.asdict(review.scores).items()) if review else (),
        fixed=len(since.fixed) if since else None,
        still_there=len(since.still_there) if since else None,
        new=len(since.new) if since else len(review.issues) if review else 0,
    )


def test_runs(state: State) -> tuple[TestRunView, ...]:
    runs = development(state).test_runs
    return tuple(_run_view(task, runs[task]) for task in _in_order(state, runs))


def _run_view(task: TaskId, run: TestsMeasured) -> TestRunView:
    found = run.verification
    return TestRunView(
        task=task,
        command=found.command or "",
        percent=pass_percent(found),
        total=found.total,
        passed=not run.failed and found.pass_rate is not None,
        failures=found.failures,
        regressions=found.regressions,
        missing=found.missing,
        known_failures=found.known_failures,
        flaky=found.flaky,
        note=found.note,
        output=found.output,
    )


def _in_order(state: State, tasks: Iterable[TaskId]) -> list[TaskId]:
    return sorted((task for task in tasks if task in state.tasks.order), key=state.tasks.order.__getitem__)


def _line_number(line: int | str | None) -> int | None:
    """The first number of what an agent gave as the line, such as 12-15."""
    found = re.search("[0-9]{1,9}", str(line or ""))
    return int(found[0]) if found else None


def listed_choices(gate: Gate) -> int:
    """Other pipelines are variants of the approval."""
    return 1 if gate.kind == PIPELINE_GATE else len(gate.choices)


def choice_descriptions(gate: Gate, state: State) -> dict[str, str]:
    if gate.kind == PIPELINE_GATE:
        return {APPROVE: f"Use the {development(state).analysis.pipeline} pipeline", **PIPELINES}
    return {sprints.SPRINT_GATE: SPRINT_CHOICES, UNVERIFIED_GATE: UNVERIFIED_CHOICES}.get(gate.kind, {})


def _last_verdicts(state: State) -> list[str]:
    """The newest test run and the newest review, in one line each."""
    runs, reviewed = last_test_run(state), [item for item in development(state).verdicts.items() if item[1].review]
    lines = [f"Tests: {_test_line(runs)}" if runs else "Tests: not run"]
    return lines + [f"Review: {_review_line(state, *item)}" for item in reviewed[-1:]]


def _steps(state: State) -> list[str]:
    """The milestones that were planned, the sprints that began, and the fix rounds."""
    part, goals = development(state), sprints.goals(state)
    steps = []
    if len(goals) > 1:
        steps.append(f"{len(goals)} sprints: " + "; ".join(f"{number}. {goal}" for number, goal in enumerate(goals, 1)))
    for sprint in range(1, part.sprint + 1):
        if sprint > 1:
            plain = sprint == part.sprint and sprints.is_plain(state)
            note = " (plain, since the one before went well)" if plain else ""
            steps.append(f"sprint {sprint} of {sprints.total(state)}: {sprints.goal(state, sprint)}{note}")
        rounds = range(1, part.rounds.get(sprint, 0) + 1)
        steps += [f"fix round {number} of {part.thresholds.rounds}" for number in rounds]
        steps += [_latest_review(state, review) for review in _left_by_force(state, sprint)]
    return steps


def _left_by_force(state: State, sprint: int) -> list[TaskId]:
    """The latest review of a sprint whose convergence was forced."""
    part = development(state)
    reviews = [row.id for row in rows_of(state, Role.reviewer, sprint) if row.id in part.reviews]
    return reviews[-1:] if sprint in part.forced else []


def _latest_review(state: State, task: TaskId) -> str:
    verdict, path = development(state).verdicts[task], f"{state.session.folder}/{artifact(state.tasks.plan[task])}"
    dimensions = msgspec.structs.asdict(verdict.review.scores) if verdict.review else {}
    scores = ", ".join(f"{name} {score:g}" for name, score in dimensions.items())
    return f"the latest review is {task}: score {verdict.score or 0:g} ({scores}), {path}"


def _reservations(state: State) -> list[str]:
    part, total = development(state), sprints.total(state)
    forced = ", ".join(f"sprint-{number}" for number in part.forced)
    found = [f"with convergence forced in {forced}"] if forced else []
    run = last_test_run(state)
    if run and run.verification.pass_rate is None:
        found.append("nothing could be verified")
    elif run and run.failed and not forced:
        found.append("tests fail")
    elif run and run.verification.first:
        found.append("nothing was verified before the change, which brought the first tests")
    if run and state.session.by_hand and not is_tested(state):
        found.append(UNTESTED)
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
    known = ((number, record.debt) for number, record in part.sprints.items() if record.debt)
    debts = "".join(f"\nTechnical debt after sprint-{number}: {debt}.\n" for number, debt in known)
    return f"## Sprints\n\n{head}{lines}{debts}"


def _figures(record: SprintRecord | None) -> str:
    if record is None:
        return "- | - | -"
    score = "-" if record.mean_score is None else f"{record.mean_score:g}"
    return f"{record.velocity} of {record.expected} | {score} | {record.rounds}"


def _verdicts(state: State) -> str:
    part = development(state)
    lines = [_test_line(run) for run in part.test_runs.values()]
    lines += [_review_line(state, task, verdict) for task, verdict in part.verdicts.items() if verdict.review]
    reviews = (review for sprint in part.forced for review in _left_by_force(state, sprint))
    shown = "".join(f"\n{_shown_review(state, review)}" for review in dict.fromkeys(reviews))
    return "## Verdicts\n\n" + "".join(f"- {line}\n" for line in lines) + shown if lines else ""


def _test_line(run: TestsMeasured) -> str:
    measured = run.verification
    if measured.pass_rate is None:
        return f"{run.task}: nothing was verified: {measured.note}"
    total = f" of {counted(measured.total, 'test')}" if measured.total else ""
    known = f", {len(measured.known_failures)} failed before too" if measured.known_failures else ""
    lists = (("failing", measured.failures), ("missing", measured.missing), ("flaky", measured.flaky))
    named = "".join(f", {word}: {critic.named(tests)}" for word, tests in lists if tests)
    note = f" ({measured.note})" if measured.note else ""
    return f"{run.task}: {percent(measured.pass_rate):.1f}%{total} passed{named}{known}, `{measured.command}`{note}"


def _review_line(state: State, task: TaskId, verdict: Verdict) -> str:
    review, seen = verdict.review, critic.of_round(state, task)
    since = f" ({len(seen.fixed)} fixed, {len(seen.still_there)} still there, {len(seen.new)} new)" if seen else ""
    found = f"{critic.critical_count(review)} critical, {counted(len(review.issues), 'finding')}" if review else ""
    return f"{task}: score {verdict.score or 0:g}, {found}, {verdict.signal}{since}"


def _shown_review(state: State, task: TaskId) -> str:
    """The report of a review as a part of another document."""
    text = review_document(state, task, development(state).reviews[task])
    return re.sub(r"(?m)^## ", "#### ", text).replace(f"# {task}\n", f"### The latest review, {task}\n", 1)


def _deliverables(state: State) -> tuple[tuple[str, tuple[str, ...]], ...]:
    def left_by(role: Role) -> tuple[str, ...]:
        done = (task for task, progress in state.tasks.rows() if progress.status is Status.completed)
        return tuple(dict.fromkeys(artifact(task) for task in done if task.role == role))

    return (
        ("Design Document", left_by(Role.architect)),
        ("Task Breakdown", (BREAKDOWN,) if development(state).designs else ()),
        ("Dev Log", left_by(Role.developer)),
        ("Verification", left_by(Role.tester)),
        ("Review Report", left_by(Role.reviewer)),
        ("Wisdom", ("wisdom/",)),
    )
