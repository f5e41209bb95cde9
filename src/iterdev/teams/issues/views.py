"""What the views and the report say about the issue team."""

from iterdev.core.formatting import counted, one_line, percent
from iterdev.core.results import shortened
from iterdev.core.rules import conflict_tasks
from iterdev.core.session.events import Gate, TeamEvent
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import UNSUCCESSFUL, Status, TaskId
from iterdev.core.verification import Verification
from iterdev.core.views.team import TaskNotes, TeamReport, TeamView
from iterdev.teams.issues import marshal
from iterdev.teams.issues.documents import AUDIT_REPORT, QUEUE, artifact, written
from iterdev.teams.issues.events import AuditScored, CycleStarted
from iterdev.teams.issues.roles import Role, Verdict, fields
from iterdev.teams.issues.rules import PROCEED, REJECTION_GATE, REVISE, SOLUTION_GATE, STOP
from iterdev.teams.issues.state import issue_part, last_audit

MARKS = {Status.completed: "[OK]", Status.failed: "[FAIL]", Status.skipped: "[SKIP]"}
FINDINGS_SHOWN, WHY_SHOWN = 200, 80
REJECTION_CHOICES = {
    PROCEED: "Build the rejected solutions, with a warning and an entry of technical debt",
    REVISE: "Have them revised and audited once more",
    STOP: "End the session; nothing is built",
}


def team_view(state: State) -> TeamView:
    part = issue_part(state)
    cycles = f"{part.cycles}/{part.thresholds.cycles}"
    return TeamView(
        pipeline=part.pipeline,
        facts=(("Issues", ", ".join(part.issues)), ("Fix Cycles", cycles)),
        steps=tuple(_steps(state)),
        note=f"fix cycles: {part.cycles} of {part.thresholds.cycles}" if part.cycles else "",
        reservations=("with rejected solutions built",) if part.forced else (),
        verdicts=tuple(_verdicts(state)),
        shortcomings=_shortcomings(state) if state.lifecycle.is_finished else (),
        fields={
            "issues": list(part.issues),
            "execution_method": part.method,
            "fix_cycles": part.cycles,
            "max_fix_cycles": part.thresholds.cycles,
        },
    )


def _steps(state: State) -> list[str]:
    part = issue_part(state)
    cycles = [f"fix cycle {number} of {part.thresholds.cycles}" for number in range(1, part.cycles + 1)]
    if part.queue is None:
        return cycles
    summary = marshal.summary(part.queue.order)
    # Without an integrator, the task says the same.
    return cycles if state.tasks.progress[part.queue.task].findings == summary else [*cycles, summary]


def _verdicts(state: State) -> list[str]:
    last = last_audit(state)
    runs = issue_part(state).tests.items()
    # What was said of work that did not land in the end would read as praise.
    tests = [_test_line(task, run) for task, run in runs if state.tasks.status(task) is not Status.failed]
    return [*([_audit_line(last)] if last else []), *tests]


def _test_line(task: TaskId, run: Verification) -> str:
    if run.pass_rate is None:
        return f"Tests: {task}: nothing was verified: {run.note}"
    known = f", {len(run.known_failures)} failed before too" if run.known_failures else ""
    return (
        f"Tests: {task}: {percent(run.pass_rate):.1f}% of {counted(run.total, 'test')} passed{known}, `{run.command}`"
    )


def _audit_line(found: AuditScored) -> str:
    scores = ", ".join(f"{one.issue_id} {one.verdict} ({one.score})" for one in found.verdicts)
    return f"Audit: {found.verdict}, {found.score} of 100: {scores}"


def _shortcomings(state: State) -> tuple[str, ...]:
    part = issue_part(state)
    forced = ["solutions were built that the audit had rejected"] if part.forced else []
    unresolved = [
        f"{', '.join(issues)} {'is' if len(issues) == 1 else 'are'} not resolved: {why}"
        for why, issues in _unresolved(state).items()
    ]
    unverified = [f"{task}: nothing could be verified: {why}" for task, why in _unverified(state).items()]
    return (*unresolved, *forced, *unverified)


def _unresolved(state: State) -> dict[str, list[str]]:
    """The issues that are not resolved because a task failed, by what became of it: their own, or else the first."""
    part, rows = issue_part(state), list(state.tasks.rows())
    failed = [row for row in rows if row[1].status is Status.failed and row[0].id not in part.judged]
    found: dict[str, list[str]] = {}
    for issue in part.issues if failed else ():
        own = [one for one in rows if one[0].role == Role.implementer and issue in fields(one[0]).issues]
        if not own or any(progress.status in UNSUCCESSFUL for _, progress in own):
            task, progress = next((row for row in failed if issue in fields(row[0]).issues), failed[0])
            why = f"{task.id} failed: {shortened(one_line(progress.error), WHY_SHOWN)}"
            found.setdefault(why, []).append(issue)
    return found


def _unverified(state: State) -> dict[TaskId, str]:
    """Why nothing is known about work that has landed, by its task."""
    tests, done = issue_part(state).tests, (task.id for task in state.tasks.of_role(Role.implementer))
    landed = [
        task for task in done if state.tasks.status(task) is Status.completed and state.tasks.progress[task].commit
    ]
    runs = {task: tests.get(task) for task in landed}
    return {
        task: run.note if run else "the tests were not run"
        for task, run in runs.items()
        if run is None or run.pass_rate is None
    }


def task_notes(state: State, task: TaskId) -> TaskNotes:
    row, found = state.tasks.plan[task], issue_part(state).audits.get(task)
    score = f"{found.score} of 100" if found else ""
    return TaskNotes(
        artifact=artifact(row),
        verdict=f"{found.verdict}, {score}" if found else "",
        unfavourable=found is not None and found.verdict is Verdict.rejected,
        report=(f"Issues: {', '.join(fields(row).issues)}", *((f"Audit: {found.verdict}, {score}",) if found else ())),
        fields={"issues": list(fields(row).issues), "score": found.score if found else None},
    )


def milestone(event: TeamEvent) -> str:
    return f"fix cycle {event.number}" if isinstance(event, CycleStarted) else ""


def choice_descriptions(gate: Gate, state: State) -> dict[str, str]:
    if gate.kind == SOLUTION_GATE:
        planned = issue_part(state).solutions.get(gate.subject, ())
        return {one.id: f"{one.approach} ({counted(len(one.tasks), 'task')})" for one in planned}
    return REJECTION_CHOICES if gate.kind == REJECTION_GATE else {}


def team_report(state: State) -> TeamReport:
    part, lines = issue_part(state), _verdicts(state)
    return TeamReport(
        title="Issue Resolution Report",
        header=(
            ("Pipeline", part.pipeline),
            ("Issues", ", ".join(part.issues)),
            ("Fix Cycles", f"{part.cycles}/{part.thresholds.cycles}"),
        ),
        verdicts="".join(["## Verdicts\n\n", *(f"- {line}\n" for line in lines)]) if lines else "",
        details="## Task Details\n\n" + "\n".join(_detail(state, task) for task in state.tasks.plan.values()),
        deliverables=(
            ("Context Reports", _folder(state, Role.explorer, "explorations/")),
            ("Solution Plans", _folder(state, Role.planner, "solutions/")),
            ("Audit Report", (AUDIT_REPORT,) if part.audits else ()),
            ("Execution Queue", (QUEUE,) if part.queue else ()),
            ("Build Results", _folder(state, Role.implementer, "builds/")),
        ),
    )


def _detail(state: State, task: Task) -> str:
    progress = state.tasks.progress[task.id]
    lines = [f"{MARKS.get(progress.status, '[    ]')} **{task.id}**: {task.title} ({task.role})"]
    if progress.findings:
        lines.append(f"   Findings: {shortened(progress.findings, FINDINGS_SHOWN)}")
    if left := written(state, task):
        lines.append(f"   Artifact: {state.session.folder}/{left}")
    if progress.commit:
        lines.append(f"   Commit: {conflict_tasks.commit_note(state, task.id)}")
    if conflict := conflict_tasks.conflict_note(state, task.id):
        lines.append(f"   Conflict: {conflict.removeprefix('conflict ')}")
    lines += [f"   Kept, not landed: {commit}" for commit in progress.unmerged_commits]
    if progress.error:
        lines.append(f"   Error: {progress.error}")
    return "\n".join(lines) + "\n"


def _folder(state: State, role: Role, folder: str) -> tuple[str, ...]:
    done = any(state.tasks.status(task.id) is Status.completed for task in state.tasks.of_role(role))
    return (folder,) if done else ()
