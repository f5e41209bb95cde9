"""The texts of the files that the roles leave in a session folder: designs, reviews, verifications, the dev log."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec

from iterdev.core.formatting import percent
from iterdev.core.ids import moment, number_of
from iterdev.core.rules import conflict_tasks
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Progress
from iterdev.core.session.tasks import Task
from iterdev.core.types import Severity, Status, TaskId
from iterdev.core.verification import Verification
from iterdev.teams.contract import as_json
from iterdev.teams.development import critic
from iterdev.teams.development.critic import Comparison
from iterdev.teams.development.events import TestsMeasured
from iterdev.teams.development.requirement_analysis import TEAM_OF
from iterdev.teams.development.results import Component, Design, Finding, Review, WorkItem
from iterdev.teams.development.roles import Role, fields
from iterdev.teams.development.sprints import execution_order
from iterdev.teams.development.state import Development, development

Value = TypeVar("Value")


ARTIFACTS: dict[str, str] = {
    Role.architect: "design/design-{}.md",
    Role.developer: "code/dev-log.md",
    Role.tester: "verify/verify-{}.json",
    Role.reviewer: "review/review-{}.md",
}
BREAKDOWN = "design/task-breakdown.json"
VERIFIED = ("total", "failures", "regressions", "missing", "known_failures", "flaky")


def artifact(task: Task) -> str:
    """The file that the task leaves, relative to the session folder."""
    form = ARTIFACTS.get(task.role)
    return form.format(number_of(task.id)) if form else f"interactive/{task.id}-result.json"


def documents(state: State, since: State | None = None) -> dict[str, str]:
    """Path in the session folder to text, for every document that has something to say.

    After an earlier state, only for those that may say something else than they did then.
    """
    now, then, plan = development(state), development(since) if since else Development(), state.tasks.plan
    files = interactive_results(state)
    for task, design in _new(now.designs, then.designs):
        files[artifact(plan[task])] = design_document(task, design)
        files[f"design/design-{number_of(task)}.json"] = as_json(design)
    for task, review in _new(now.reviews, then.reviews):
        files[artifact(plan[task])] = review_document(state, task, review)
    for task, run in _new(now.test_runs, then.test_runs):
        files[artifact(plan[task])] = verification(state, task, run)
    for task, design in list(now.designs.items())[-1:]:
        files[BREAKDOWN] = breakdown(task, design)
    if log := dev_log(state):
        files[ARTIFACTS[Role.developer]] = log
    return files


def _new(now: Mapping[TaskId, Value], then: Mapping[TaskId, Value]) -> Iterator[tuple[TaskId, Value]]:
    """What was put there since. Nothing is changed in place, so what is the same thing says the same."""
    return ((task, value) for task, value in now.items() if then.get(task) is not value)


def design_document(task: TaskId, design: Design) -> str:
    """What the architect wrote, and under their own headings the parts of a design that it does not have yet."""
    chosen = decision(design)
    links = [f"- {part.name} uses {other}" for part in design.components for other in part.dependencies]
    named = [f"- {point}" for point in design.integration_points]
    parts = {
        "Decision": [f"- {name.capitalize()}: {text or '-'}" for name, text in chosen.items()],
        "Integration points": named or links or ["None."],
        "Risks": ["None were named."],
    }
    own = {"Integration points"} if named else set()
    missing = {title: lines for title, lines in parts.items() if title in own or not _has_heading(design.design, title)}
    return "\n".join(
        (
            f"# {task}\n",
            *([f"**Strategy**: {design.strategy}\n"] if design.strategy else []),
            design.design.strip() + "\n",
            *_section("Components", map(_component, design.components)),
            *_section("Tasks", map(_work_item, design.tasks)),
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


def _section(title: str, entries: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[str]:
    yield f"## {title}\n"
    for name, facts in entries:
        yield f"### {name}\n"
        yield "\n".join(f"- {label}: {text}" for label, text in facts.items()) + "\n"


def _component(component: Component) -> tuple[str, dict[str, str]]:
    return component.name, {
        "Responsibility": component.responsibility or "-",
        "Dependencies": ", ".join(component.dependencies) or "none",
        "Files": ", ".join(component.files) or "-",
        "Complexity": component.complexity or "-",
    }


def _work_item(item: WorkItem) -> tuple[str, dict[str, str]]:
    return f"{item.id}: {item.title}", {
        "Files": ", ".join(item.files) or "-",
        "Complexity": item.complexity or "-",
        "Dependencies": ", ".join(item.dependencies) or "none",
        "Acceptance criteria": "; ".join(item.criteria) or "-",
    }


def breakdown(task: TaskId, design: Design) -> str:
    tasks = [msgspec.structs.asdict(item) | {"acceptance_criteria": item.criteria} for item in design.tasks]
    return as_json(
        {
            "design_id": task,
            "tasks": [{name: cell for name, cell in one.items() if cell or name != "feedback"} for one in tasks],
            "total_files": len({file for item in design.tasks for file in item.files}),
            "execution_order": [item.id for item in execution_order(design.tasks)],
            "milestones": design.milestones,
        }
    )


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
            *(f"- {name}: {getattr(review.scores, name):g} (weight {part} %)" for name, part in critic.WEIGHTS.items()),
            "\n## Design alignment\n",
            review.design_alignment.strip() or "The reviewer did not say.",
            "\n## Findings\n",
            *([_finding(issue, seen) for issue in review.issues] or ["None."]),
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


def _finding(issue: Finding, since: Comparison | None = None) -> str:
    suggestion = f" Suggestion: {issue.suggestion}" if issue.suggestion else ""
    standing = "" if since is None else ", still there" if issue in since.still_there else ", new"
    grade = f"{issue.grade.upper()}{standing}"
    return f"- {critic.identity(issue)} [{grade}] {issue.reference}: {issue.description}{suggestion}"


def pass_percent(measured: Verification) -> float | None:
    """The pass rate as files have it; None if nothing was verified."""
    return None if measured.pass_rate is None else percent(measured.pass_rate)


def verification(state: State, task: TaskId, run: TestsMeasured) -> str:
    measured = run.verification
    return as_json(
        {
            "verify_id": f"verify-{number_of(task)}",
            "command": measured.command,
            "pass_rate": pass_percent(measured),
            "iterations": run.iterations,
            "passed": measured.pass_rate is not None and not run.failed,
            **{name: getattr(measured, name) for name in VERIFIED},
            "regression_passed": measured.pass_rate is not None and not measured.regressed,
            "note": measured.note,
            "output": measured.output,
            "timestamp": moment(state.tasks.progress[task].ended_at or state.updated_at),
        }
    )


def dev_log(state: State) -> str:
    entries = []
    for task, progress in state.tasks.rows():
        if task.role == Role.developer and progress.status in {Status.landing, Status.completed}:
            files = "".join(f"  - {name}\n" for name in progress.changed)
            syntax = "clean" if progress.syntax_clean else "not clean"
            fix, commit = "yes" if fields(task).round else "no", conflict_tasks.commit_note(state, task.id) or "-"
            entries.append(
                f"## {task.id}\n\n- Changed files: {len(progress.changed)}\n{files}"
                f"- Syntax: {syntax}\n- Fix: {fix}\n- Commit: {commit}\n- {progress.findings or '-'}\n"
            )
    return "# Development log\n\n" + "\n".join(entries) if entries else ""


def interactive_results(state: State) -> dict[str, str]:
    """One file per interactive task, and the analyzer's, which ran before the first wave."""
    part, analysis = development(state), development(state).analysis
    planned = dict.fromkeys(task.role for task in state.tasks.plan.values())
    analyzer = {
        "task_id": "task-analysis",
        "status": "completed",
        "pipeline_mode": part.pipeline or analysis.pipeline,
        "capabilities": [capability.role for capability in analysis.capabilities],
        "complexity_score": analysis.score,
        "files": analysis.files,
        "roles_needed": list(planned or TEAM_OF[part.pipeline or analysis.pipeline]),
        "timestamp": moment(state.created_at),
    }
    files = {"interactive/task-analyzer-result.json": as_json(analyzer)}
    for task, progress in state.tasks.rows():
        if task.mode.is_conversation and progress.status.is_final:
            result: dict[str, object] = {
                "task_id": task.id,
                "status": progress.status,
                "findings": progress.findings,
                "error": progress.error,
                "timestamp": moment(progress.ended_at or state.updated_at),
            }
            if decision := part.decisions.get(task.id):
                result |= {"gc_decision": decision, "gc_round": fields(task).round}
            files[f"interactive/{task.id}-result.json"] = as_json(result)
    return files
