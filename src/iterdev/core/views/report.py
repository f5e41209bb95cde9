"""context.md: what happened, for a person to read at the end."""

from collections.abc import Iterator, Sequence
from datetime import tzinfo

from iterdev.core.collaboration import feedback, tech_debt
from iterdev.core.formatting import merged, plain
from iterdev.core.ids import ZONE, branch, moment
from iterdev.core.limits.budget import figures
from iterdev.core.results import Usage
from iterdev.core.rules import conflict_tasks
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Progress
from iterdev.core.session.tasks import Task
from iterdev.core.types import Status
from iterdev.core.views.session import open_debt, open_feedback, spending_view, wave_views
from iterdev.core.views.tasks import asked_agent
from iterdev.core.views.team import TeamReport, TeamViews


def report(state: State, team: TeamViews, zone: tzinfo = ZONE, *, timeline: str = "") -> str:
    """The report; `timeline` is the file with the picture of all attempts, if there is one."""
    own = team.report(state)
    parts = (
        _header(state, own, zone),
        _summary(state, own),
        own.overview,
        _rollbacks(state, zone),
        _section("Environments", [f"- {text}" for text in state.environments]),
        _section("Warnings", [f"- {text}" for text in merged(state.warnings)]),
        _left_open(state),
        own.verdicts,
        _spending(state),
        _waves(state),
        f"## Time Line\n\n![All attempts at each task]({timeline})\n" if timeline else "",
        own.details or _details(state, team),
        _deliverables(state, own),
    )
    return "\n---\n\n".join(text for text in parts if text)


def _header(state: State, own: TeamReport, zone: tzinfo) -> str:
    finished_at, accepted = state.lifecycle.finished_at, state.lifecycle.accepted
    facts = (
        ("Session", state.session.id),
        ("Requirement", state.session.requirement),
        *own.header,
        ("Branch", f"{branch(state.session.id)} at {state.branch.tip[:12]}"),
        *((("Accepted", accepted),) if accepted else ()),
        ("Completed", moment(finished_at, zone) if finished_at is not None else "not yet"),
    )
    return f"# {own.title}\n\n" + "".join(f"**{name}**: {text}\n" for name, text in facts)


def _summary(state: State, own: TeamReport) -> str:
    rows = (
        ("Total Tasks", len(state.tasks.plan)),
        ("Completed", state.tasks.count(Status.completed)),
        ("Failed", state.tasks.count(Status.failed)),
        ("Skipped", state.tasks.count(Status.skipped)),
        *own.summary,
    )
    lines = "".join(f"| {name} | {count} |\n" for name, count in rows)
    spent = state.spending.total
    cost = f"\nTokens: {spent.input_tokens} in, {spent.output_tokens} out. Cost: ${spent.cost_usd:.2f}.\n"
    return f"## Summary\n\n| Metric | Count |\n|--------|-------|\n{lines}" + (cost if spent != Usage() else "")


def _rollbacks(state: State, zone: tzinfo) -> str:
    begun = [message for message in state.messages.sent if message.type == "rollback_initiated"]
    lines = [f"- {moment(message.ts, zone)}: {message.summary.removeprefix('[coordinator] ')}" for message in begun]
    return _section("Rollbacks", lines)


def _section(title: str, lines: Sequence[str]) -> str:
    return f"## {title}\n\n" + "".join(f"{line}\n" for line in lines) if lines else ""


def _left_open(state: State) -> str:
    """Urgent feedback and technical debt that are still open."""
    counts = (("Feedback", open_feedback(state)), ("Technical debt", open_debt(state)))
    lines = "".join(f"{name}: {count}.\n" for name, count in counts if count)
    given = ((item.feedback_id, item.severity, item.description) for item in feedback.urgent(state.feedback))
    debts = ((item.debt_id, item.severity, item.description) for item in tech_debt.ranked(state.debt))
    items = "".join(f"- {name} ({severity}): {' '.join(text.split())}\n" for name, severity, text in (*given, *debts))
    return f"## Left open\n\n{lines}\n{items}" if lines else ""


def _spending(state: State) -> str:
    spent = spending_view(state)
    groups = (("Role", spent.roles), ("Task", spent.tasks), ("Agent", spent.agents))
    rows = [f"| {kind} | {name} | {figures(usage)} |" for kind, usages in groups for name, usage in usages.items()]
    return _section("Spending", ["| By | Name | Spent |", "|----|------|-------|", *rows] if rows else [])


def _waves(state: State) -> str:
    waves: dict[int, list[str]] = {}
    for task, progress in state.tasks.rows():
        conflict = conflict_tasks.conflict_note(state, task.id)
        status = f"{progress.status}{f'; {conflict}' if conflict else ''}"
        waves.setdefault(task.wave, []).append(f"- {task.id} ({task.role}): {status}\n")
    return "## Pipeline Execution\n\n" + "\n".join(
        f"### {wave.summary.capitalize()}\n\n{''.join(waves[wave.number])}" for wave in wave_views(state.tasks)
    )


def _details(state: State, team: TeamViews) -> str:
    rows = ("".join(_detail(state, team, task, progress)) for task, progress in state.tasks.rows())
    return "## Task Details\n\n" + "\n".join(rows)


def _detail(state: State, team: TeamViews, task: Task, progress: Progress) -> Iterator[str]:
    yield f"### {task.id}: {task.title}\n\n"
    notes = team.task_notes(state, task.id)
    agent = asked_agent(progress, notes)
    yield f"- Role: {task.role}" + (f", agent: {agent}" if agent else "") + "\n"
    yield f"- Status: {progress.status}, requests: {progress.requests}\n"
    for line in notes.report:
        yield f"- {line}\n"
    if progress.changed:
        yield f"- Changed: {', '.join(progress.changed)}\n"
    if progress.findings:
        yield f"- Findings: {_inside(progress.findings)}\n"
    if progress.error:
        yield f"- Error: {_inside(progress.error)}\n"
    for request in progress.denied:
        yield f"- Asked for, and denied: {request}\n"
    if progress.commit:
        yield f"- Commit: {conflict_tasks.commit_note(state, task.id)}\n"
    if conflict := conflict_tasks.conflict_note(state, task.id):
        yield f"- Conflict: {conflict.removeprefix('conflict ')}\n"
    for commit in progress.unmerged_commits:
        yield f"- Kept, not landed: {commit}\n"


def _deliverables(state: State, own: TeamReport) -> str:
    lines = "".join(
        f"| {name} | {', '.join(f'{state.session.folder}/{file}' for file in files) or '-'} |\n"
        for name, files in own.deliverables
    )
    return f"## Deliverables\n\n| Artifact | Path |\n|----------|------|\n{lines}"


def _inside(text: str) -> str:
    """Text of others as an item of a list: its lines are indented, so that none begins a section of the report."""
    return plain(text).replace("\n", "\n  ")
