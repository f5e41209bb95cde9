"""The texts of the files that the roles leave in a session folder: designs, reviews, verifications, the dev log."""

import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from iterdev.core.ids import moment, number_of
from iterdev.core.rules import conflict_tasks
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Progress
from iterdev.core.types import Mode, Severity, Status, TaskId
from iterdev.teams.development import critic
from iterdev.teams.development.critic import Comparison
from iterdev.teams.development.fields import Role, fields
from iterdev.teams.development.results import Design, Finding, Review, WorkItem
from iterdev.teams.development.sprints import execution_order
from iterdev.teams.development.state import Development, TestRun, development

Value = TypeVar("Value")


def documents(state: State, since: State | None = None) -> dict[str, str]:
    """Path in the session folder to text, for every document that has something to say.

    After an earlier state, only for those that may say something else than they did then.
    """
    files: dict[str, str] = {}
    now, then = development(state), development(since) if since else Development()
    for task, design in _new(now.designs, then.designs):
        files[f"design/design-{number_of(task)}.md"] = design_document(task, design)
        files[f"design/design-{number_of(task)}.json"] = _as_json(msgspec.to_builtins(design))
    for task, review in _new(now.reviews, then.reviews):
        files[f"review/review-{number_of(task)}.md"] = review_document(state, task, review)
    for task, run in _new(now.test_runs, then.test_runs):
        files[f"verify/verify-{number_of(task)}.json"] = verification(state, task, run)
    for task, design in list(now.designs.items())[-1:]:
        files["design/task-breakdown.json"] = breakdown(task, design)
    if log := dev_log(state):
        files["code/dev-log.md"] = log
    files.update(interactive_results(state))
    return files


def _new(now: Mapping[TaskId, Value], then: Mapping[TaskId, Value]) -> Iterator[tuple[TaskId, Value]]:
    """What was put there since. Nothing is changed in place, so what is the same thing says the same."""
    return ((task, value) for task, value in now.items() if then.get(task) is not value)


def design_document(task: TaskId, design: Design) -> str:
    """What the architect wrote, and under their own headings the parts of a design that it does not have yet."""
    chosen = decision(design)
    links = [f"- {part.name} uses {other}" for part in design.components for other in part.dependencies]
    parts = {
        "Decision": [f"- {name.capitalize()}: {text or '-'}" for name, text in chosen.items()],
        "Integration points": links or ["None."],
        "Risks": ["None were named."],
    }
    missing = {title: lines for title, lines in parts.items() if not _has_heading(design.design, title)}
    return "\n".join(
        (
            f"# {task}\n",
            design.design.strip() + "\n",
            *_components(design),
            *_work_items(design.tasks),
            *(line for title, lines in missing.items() for line in (f"## {title}\n", *lines, "")),
        )
    )


def decision(design: Design) -> dict[str, str]:
    """The decision as the architect put it on the board, or else in the first sentence of the design."""
    chosen = [found.data for found in design.discoveries if found.type == "design_decision"]
    first: Mapping[str, object] = chosen[0] if chosen else {}
    lines = [line.strip() for line in design.design.splitlines() if line.strip() and not line.startswith("#")]
    return {
        "approach": str(first.get("approach") or (lines[0] if lines else "")),
        "rationale": str(first.get("rationale") or design.findings),
        "alternatives": str(first.get("alternatives") or ""),
    }


def _has_heading(text: str, title: str) -> bool:
    return re.search(rf"(?im)^#+ .*{title.rstrip('s')}", text) is not None


def _components(design: Design) -> Iterator[str]:
    yield "## Components\n"
    for component in design.components:
        yield f"### {component.name}\n"
        yield f"- Responsibility: {component.responsibility or '-'}"
        yield f"- Dependencies: {', '.join(component.dependencies) or 'none'}"
        yield f"- Files: {', '.join(component.files) or '-'}"
        yield f"- Complexity: {component.complexity or '-'}\n"


def _work_items(items: tuple[WorkItem, ...]) -> Iterator[str]:
    yield "## Tasks\n"
    for item in items:
        yield f"### {item.id}: {item.title}\n"
        yield f"- Files: {', '.join(item.files) or '-'}"
        yield f"- Complexity: {item.complexity or '-'}"
        yield f"- Dependencies: {', '.join(item.dependencies) or 'none'}"
        yield f"- Acceptance criteria: {'; '.join(_criteria(item)) or '-'}\n"


def breakdown(task: TaskId, design: Design) -> str:
    tasks = [
        {
            "id": item.id,
            "title": item.title,
            "files": list(item.files),
            "complexity": item.complexity,
            "dependencies": list(item.dependencies),
            "acceptance_criteria": _criteria(item),
            **({"feedback": list(item.feedback)} if item.feedback else {}),
        }
        for item in design.tasks
    ]
    files = {file for item in design.tasks for file in item.files}
    order = [item.id for item in execution_order(design.tasks)]
    return _as_json(
        {
            "design_id": task,
            "tasks": tasks,
            "total_files": len(files),
            "execution_order": order,
            "milestones": msgspec.to_builtins(design.milestones),
        }
    )


def _criteria(item: WorkItem) -> list[str]:
    criteria = item.acceptance_criteria
    return [criteria] if isinstance(criteria, str) and criteria else list(criteria)


def review_document(state: State, task: TaskId, review: Review) -> str:
    counts = {grade: sum(issue.grade is grade for issue in review.issues) for grade in Severity}
    files = sorted({name for progress in _before(state, task) for name in progress.changed})
    seen, verdict = critic.of_round(state, task), development(state).verdicts[task]
    return "\n".join(
        (
            f"# {task}\n",
            f"**Score**: {verdict.score:g}" if verdict.score is not None else "**Score**: -",
            f"**Signal**: {verdict.signal or '-'}",
            f"**Findings**: {', '.join(f'{grade} {count}' for grade, count in counts.items())}",
            f"**Files reviewed**: {', '.join(files) or '-'}\n",
            "## Dimensions\n",
            *(
                f"- {name}: {getattr(review.scores, name):g} (weight {weight} %)"
                for name, weight in critic.WEIGHTS.items()
            ),
            "\n## Findings\n",
            *([_finding(issue, _standing(seen, issue)) for issue in review.issues] or ["None."]),
            *(["\n## Fixed since the review before\n", *map(_finding, seen.fixed)] if seen and seen.fixed else []),
            "\n## Summary\n",
            review.findings or "-",
            "",
        )
    )


def _before(state: State, review: TaskId) -> Iterator[Progress]:
    """The work that was there when the review began."""
    began = state.tasks.progress[review].started_at
    for progress in state.tasks.progress.values():
        if began is None or (progress.ended_at is not None and progress.ended_at <= began):
            yield progress


def _standing(seen: Comparison | None, issue: Finding) -> str:
    if seen is None:
        return ""
    return ", still there" if issue in seen.still_there else ", new"


def _finding(issue: Finding, standing: str = "") -> str:
    suggestion = f" Suggestion: {issue.suggestion}" if issue.suggestion else ""
    grade = f"{issue.grade.upper()}{standing}"
    return f"- {critic.identity(issue)} [{grade}] {issue.reference}: {issue.description}{suggestion}"


def verification(state: State, task: TaskId, run: TestRun) -> str:
    measured = run.verification
    return _as_json(
        {
            "verify_id": f"verify-{number_of(task)}",
            "command": measured.command,
            "pass_rate": None if measured.pass_rate is None else round(measured.pass_rate * 100, 2),
            "iterations": run.iterations,
            "passed": measured.pass_rate is not None and not run.failed,
            "total": measured.total,
            "failures": list(measured.failures),
            "regressions": list(measured.regressions),
            "known_failures": list(measured.known_failures),
            "regression_passed": not measured.regressions,
            "note": measured.note,
            "output": measured.output,
            "timestamp": moment(state.tasks.progress[task].ended_at or state.updated_at),
        }
    )


def dev_log(state: State) -> str:
    entries = [
        _dev_entry(task.id, progress, conflict_tasks.commit_note(state, task.id), is_fix=fields(task).round > 0)
        for task, progress in state.tasks.rows()
        if task.role == Role.developer and progress.status in {Status.landing, Status.completed}
    ]
    return "# Development log\n\n" + "\n".join(entries) if entries else ""


def _dev_entry(task: TaskId, progress: Progress, commit: str, *, is_fix: bool) -> str:
    files = "".join(f"  - {name}\n" for name in progress.changed)
    return (
        f"## {task}\n\n- Changed files: {len(progress.changed)}\n{files}"
        f"- Fix: {'yes' if is_fix else 'no'}\n- Commit: {commit or '-'}\n- {progress.findings or '-'}\n"
    )


def interactive_results(state: State) -> dict[str, str]:
    """One file per interactive task, and the analyzer's, which ran before the first wave."""
    part = development(state)
    analysis = part.analysis
    pipeline = part.pipeline or analysis.pipeline
    analyzer = {
        "task_id": "task-analysis",
        "status": "completed",
        "pipeline_mode": pipeline,
        "capabilities": [capability.role for capability in analysis.capabilities],
        "complexity_score": analysis.score,
        "roles_needed": list(dict.fromkeys(task.role for task in state.tasks.plan.values())),
        "timestamp": moment(state.created_at),
    }
    files = {"interactive/task-analyzer-result.json": _as_json(analyzer)}
    for task, progress in state.tasks.rows():
        if task.mode is Mode.interactive and progress.status.is_final:
            result: dict[str, object] = {
                "task_id": task.id,
                "status": progress.status,
                "findings": progress.findings,
                "error": progress.error,
                "timestamp": moment(progress.ended_at or state.updated_at),
            }
            if decision := part.decisions.get(task.id):
                result |= {"gc_decision": decision, "gc_round": fields(task).round}
            files[f"interactive/{task.id}-result.json"] = _as_json(result)
    return files


def _as_json(document: object) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
