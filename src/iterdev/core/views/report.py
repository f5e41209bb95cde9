"""context.md: what happened, for a person to read at the end."""

from collections.abc import Iterator

from iterdev.core.collaboration import feedback, tech_debt
from iterdev.core.ids import branch, moment, number_of
from iterdev.core.limits.spending import figures, spending
from iterdev.core.results import Usage
from iterdev.core.session import conflict_tasks
from iterdev.core.session.state import Progress, State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Role, Status
from iterdev.core.views import team
from iterdev.core.views.session import open_debt, open_feedback
from iterdev.core.views.tasks import asked_agent


def report(state: State) -> str:
    parts = (
        _header, _summary, team.sprints_section, _rollbacks, _warnings, _left_open,
        team.verdicts_section, _spending, _waves, _details, _deliverables,
    )  # fmt: skip
    return "\n---\n\n".join(text for part in parts if (text := part(state)))


def _header(state: State) -> str:
    finished_at = state.completion.finished_at
    ended = moment(finished_at) if finished_at is not None else "not yet"
    accepted = f"**Accepted**: {state.accepted}\n" if state.accepted else ""
    return (
        "# Team IterDev Report\n\n"
        f"**Session**: {state.session.id}\n"
        f"**Requirement**: {state.session.requirement}\n"
        f"**Pipeline**: {state.pipeline or 'not chosen'}\n"
        f"**Branch**: {branch(state.session.id)} at {state.tip[:12]}\n"
        f"{accepted}"
        f"**Completed**: {ended}\n"
    )


def _summary(state: State) -> str:
    rows = (
        ("Total Tasks", len(state.tasks)),
        ("Completed", state.count(Status.completed)),
        ("Failed", state.count(Status.failed)),
        ("Skipped", state.count(Status.skipped)),
        ("GC Rounds", sum(state.rounds.values())),
    )
    lines = "".join(f"| {name} | {count} |\n" for name, count in rows)
    spent = state.spent
    cost = f"\nTokens: {spent.input_tokens} in, {spent.output_tokens} out. Cost: ${spent.cost_usd:.2f}.\n"
    return f"## Summary\n\n| Metric | Count |\n|--------|-------|\n{lines}" + (cost if spent != Usage() else "")


def _rollbacks(state: State) -> str:
    lines = "".join(
        f"- {moment(message.ts)}: {message.summary.removeprefix('[coordinator] ')}\n"
        for message in state.messages
        if message.type == "rollback_initiated"
    )
    return f"## Rollbacks\n\n{lines}" if lines else ""


def _warnings(state: State) -> str:
    return "## Warnings\n\n" + "".join(f"- {text}\n" for text in state.warnings) if state.warnings else ""


def _left_open(state: State) -> str:
    """What the user said and what the team owes, as far as nobody has dealt with it."""
    counts = (("Feedback", open_feedback(state)), ("Technical debt", open_debt(state)))
    lines = "".join(f"{name}: {count}.\n" for name, count in counts if count)
    wishes = ((item.feedback_id, item.severity, item.description) for item in feedback.urgent(state.feedback))
    debts = ((item.debt_id, item.severity, item.description) for item in tech_debt.ranked(state.debt))
    items = "".join(f"- {name} ({grade}): {' '.join(text.split())}\n" for name, grade, text in (*wishes, *debts))
    return f"## Left open\n\n{lines}\n{items}" if lines else ""


def _spending(state: State) -> str:
    spent = spending(state)
    groups = (("Role", spent.roles), ("Task", spent.tasks), ("Agent", spent.agents))
    lines = [f"| {kind} | {name} | {figures(usage)} |\n" for kind, usages in groups for name, usage in usages.items()]
    return f"## Spending\n\n| By | Name | Spent |\n|----|------|-------|\n{''.join(lines)}" if lines else ""


def _waves(state: State) -> str:
    waves: dict[int, list[str]] = {}
    for task, progress in state.rows():
        collision = conflict_tasks.collision(state, task.id)
        standing = f"{progress.status}{f'; {collision}' if collision else ''}"
        waves.setdefault(task.wave, []).append(f"- {task.id} ({task.role}): {standing}\n")
    return "## Pipeline Execution\n\n" + "\n".join(
        f"### Wave {wave}\n\n{''.join(lines)}" for wave, lines in sorted(waves.items())
    )


def _details(state: State) -> str:
    return "## Task Details\n\n" + "\n".join("".join(_detail(state, task, progress)) for task, progress in state.rows())


def _detail(state: State, task: Task, progress: Progress) -> Iterator[str]:
    yield f"### {task.id}: {task.title}\n\n"
    agent = asked_agent(task, progress)
    yield f"- Role: {task.role}" + (f", agent: {agent}" if agent else "") + "\n"
    yield f"- Status: {progress.status}, requests: {progress.requests}\n"
    if progress.score is not None:
        yield f"- Score: {progress.score:g} ({progress.signal})\n"
    if progress.changed:
        yield f"- Changed: {', '.join(progress.changed)}\n"
    if progress.findings:
        yield f"- Findings: {progress.findings}\n"
    if progress.error:
        yield f"- Error: {progress.error}\n"
    for wish in progress.denied:
        yield f"- Asked for, and denied: {wish}\n"
    if progress.commit:
        yield f"- Commit: {conflict_tasks.commit(state, task.id)}\n"
    if collision := conflict_tasks.collision(state, task.id):
        yield f"- Conflict: {collision.removeprefix('conflict ')}\n"
    for commit in progress.unlanded:
        yield f"- Kept, not landed: {commit}\n"


def _deliverables(state: State) -> str:
    def numbered(role: Role, form: str) -> list[str]:
        done = (task for task, progress in state.rows() if progress.status is Status.completed)
        return [form.format(number_of(task.id)) for task in done if task.role is role]

    rows = (
        ("Design Document", numbered(Role.architect, "design/design-{}.md")),
        ("Task Breakdown", ["design/task-breakdown.json"] if state.designs else []),
        ("Dev Log", ["code/dev-log.md"] if numbered(Role.developer, "{}") else []),
        ("Verification", numbered(Role.tester, "verify/verify-{}.json")),
        ("Review Report", numbered(Role.reviewer, "review/review-{}.md")),
        ("Wisdom", ["wisdom/"]),
    )
    lines = "".join(
        f"| {name} | {', '.join(f'{state.session.folder}/{file}' for file in files) or '-'} |\n" for name, files in rows
    )
    return f"## Deliverables\n\n| Artifact | Path |\n|----------|------|\n{lines}"
