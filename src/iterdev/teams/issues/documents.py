"""The documents that the issue team leaves in the session folder."""

import re
from collections.abc import Mapping

from iterdev.core.ids import moment
from iterdev.core.results import shortened
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Status
from iterdev.teams.contract import as_json
from iterdev.teams.issues import audit
from iterdev.teams.issues.events import AuditScored
from iterdev.teams.issues.roles import Role, fields
from iterdev.teams.issues.state import Issues, issue_part, issues_of, last_audit
from iterdev.tracker.issues import Description
from iterdev.tracker.solutions import files_touched

AUDIT_REPORT, QUEUE = "audits/audit-report.json", "queue/execution-queue.json"
FOLDERS = {Role.explorer: "explorations/", Role.planner: "solutions/", Role.implementer: "builds/"}
SIGNALS = (
    (("refactor", "architect", "restructure", "module", "system"), 2),
    (("multiple", "across", "cross"), 2),
    (("integrate", "api", "database"), 1),
)
"""Words about the structure, about several places, and about the outside, with the points that each kind counts."""
URGENT = 4
TITLE_LENGTH = 100
"""Characters of an issue's title in the message of a commit."""
LEVELS = ((4, "High"), (2, "Medium"), (0, "Low"))
"""The least points of each complexity."""


def artifact(task: Task) -> str:
    """What a completed task leaves: a file, or a folder if it is about several issues."""
    match task.role:
        case Role.reviewer:
            return AUDIT_REPORT
        case Role.integrator:
            return QUEUE
        case _:
            issues = fields(task).issues
            return file_of(Role(task.role), issues[0]) if len(issues) == 1 else FOLDERS[Role(task.role)]


def written(state: State, task: Task) -> str:
    """The artifact of a completed task; empty if it left none, as one that a person completed in the table."""
    part, names = issue_part(state), issues_of(state, task)
    match task.role:
        case Role.explorer:
            is_there = any(name in part.contexts for name in names)
        case Role.planner:
            is_there = any(name in part.solutions for name in names)
        case Role.reviewer:
            is_there = bool(part.audits)
        case Role.integrator:
            is_there = part.queue is not None
        case _:
            is_there = True
    return artifact(task) if is_there and state.tasks.status(task.id) is Status.completed else ""


def file_of(role: Role, issue: str) -> str:
    match role:
        case Role.explorer:
            return f"explorations/context-{issue}.json"
        case Role.planner:
            return f"solutions/solution-{issue}.json"
        case _:
            return f"builds/build-{issue}.json"


def complexity(described: Description) -> str:
    """How deeply an issue has to be explored, by the beginnings of its words and its priority."""
    words = re.findall(r"[a-z]+", f"{described.title} {described.context}".lower())
    points = sum(count for starts, count in SIGNALS if any(word.startswith(starts) for word in words))
    points += described.priority >= URGENT
    return next(level for least, level in LEVELS if points >= least)


def commit_body(state: State, task: Task) -> tuple[str, ...]:
    """The issues that a BUILD task resolves; its title names none."""
    named = (issue_part(state).issues[name] for name in issues_of(state, task))
    return tuple(f"- {one.id}: {shortened(one.description.title, TITLE_LENGTH)}" for one in named)


def documents(state: State, since: State | None = None) -> dict[str, str]:
    part = issue_part(state)
    before = issue_part(since) if since else None
    found: dict[str, str] = {}
    for issue, context in part.contexts.items():
        if before is None or before.contexts.get(issue) is not context:
            found[file_of(Role.explorer, issue)] = as_json(_context(part, issue))
    for issue in part.solutions:
        if before is None or _plan_of(before, issue) != _plan_of(part, issue):
            found[file_of(Role.planner, issue)] = as_json(_solution(part, issue))
    last = last_audit(state)
    if last and (before is None or before.audits is not part.audits):
        found[AUDIT_REPORT] = as_json(_audit_report(state, last))
    if part.queue and (before is None or before.queue is not part.queue):
        found[QUEUE] = as_json(_queue(part))
    return found | _conversations(state, since) | _builds(state, since)


def _plan_of(part: Issues, issue: str) -> tuple[object, ...]:
    return part.solutions.get(issue, ()), part.chosen.get(issue)


def _context(part: Issues, issue: str) -> dict[str, object]:
    context, facts = part.contexts[issue], part.issues[issue]
    described = facts.description
    return {
        "issue_id": issue,
        "issue": {
            "id": issue,
            "title": described.title,
            "priority": described.priority,
            "status": facts.status,
            "labels": described.tags,
            "context": described.context,
            "feedback": facts.feedback,
        },
        "relevant_files": context.files,
        "dependencies": context.dependencies,
        "impact_scope": context.impact_scope or "low",
        "existing_patterns": context.existing_patterns,
        "related_changes": context.related_changes,
        "key_findings": context.key_findings,
        "complexity_assessment": complexity(described),
    }


def _solution(part: Issues, issue: str) -> dict[str, object]:
    planned, chosen = part.solutions[issue], part.solution(issue)
    shown = chosen or planned[0]
    document: dict[str, object] = {
        "issue_id": issue,
        "solution_id": shown.id,
        "approach": shown.approach,
        "tasks": shown.tasks,
        "estimated_files": files_touched(shown),
        "dependencies": shown.dependencies,
        "bound": chosen is not None,
    }
    return document | ({"alternatives": [one for one in planned if one is not shown]} if len(planned) > 1 else {})


def _audit_report(state: State, last: AuditScored) -> dict[str, object]:
    part = issue_part(state)
    by_issue = {one.issue_id: one for found in part.audits.values() for one in found.audit.audits}
    return {
        "session_id": state.session.id,
        "review_timestamp": moment(state.tasks.progress[last.task].ended_at or state.updated_at),
        "issues_reviewed": [
            {
                "issue_id": one.issue_id,
                "solution_id": one.solution_id,
                "total_score": one.score,
                "verdict": one.verdict,
                **{name: _dimension(by_issue[one.issue_id], name) for name in audit.WEIGHTS},
            }
            for one in last.verdicts
        ],
        "overall_verdict": last.verdict,
        "overall_score": last.score,
        "review_count": len(part.audits),
        "rejection_reasons": audit.objections(last) if audit.rejected(last) else (),
        "actionable_feedback": last.audit.actionable_feedback,
    }


def _dimension(found: object, name: str) -> Mapping[str, object]:
    dimension = getattr(found, name)
    return {"score": dimension.score, "findings": dimension.texts}


def _queue(part: Issues) -> dict[str, object]:
    order = part.queue.order if part.queue else None
    entries = order.entries if order else ()
    return {
        "queue": [
            {
                "issue_id": entry.candidate.issue_id,
                "solution_id": entry.candidate.solution_id,
                "order": entry.order,
                "depends_on": entry.depends_on,
                "estimated_files": entry.candidate.files,
            }
            for entry in entries
        ],
        "conflicts": [
            {"issues": one.issues, "files": one.files, "resolution": one.resolution, "rationale": one.rationale}
            for one in (order.conflicts if order else ())
        ],
        "parallel_groups": [
            {"group": number, "issues": issues, "waits_for": order.waits_for(number) if order else ()}
            for number, issues in enumerate(order.groups if order else (), 1)
        ],
    }


def _conversations(state: State, since: State | None) -> dict[str, str]:
    """The results of audits that have ended, one file each."""
    found: dict[str, str] = {}
    for task in state.tasks.of_role(Role.reviewer):
        progress, scored = state.tasks.progress[task.id], issue_part(state).audits.get(task.id)
        known = since.tasks.progress.get(task.id) if since else None
        if progress.status.is_final and known is not progress:
            found[f"interactive/{task.id}-result.json"] = as_json(
                {
                    "task_id": task.id,
                    "status": progress.status,
                    "verdict": scored.verdict if scored else None,
                    "findings": progress.findings,
                    "error": progress.error,
                    "timestamp": moment(progress.ended_at or state.updated_at),
                }
            )
    return found


def _builds(state: State, since: State | None) -> dict[str, str]:
    """What became of each issue whose BUILD task has ended."""
    found: dict[str, str] = {}
    for task in state.tasks.of_role(Role.implementer):
        progress = state.tasks.progress[task.id]
        known = since.tasks.progress.get(task.id) if since else None
        if not progress.status.is_final or known is progress:
            continue
        document = {
            "task": task.id,
            "executor": progress.agent,
            "status": progress.status,
            "commit": progress.commit if progress.status is Status.completed else None,
            "changed_files": progress.changed,
            "findings": progress.findings,
            "error": progress.error,
        }
        for issue in issues_of(state, task):
            found[file_of(Role.implementer, issue)] = as_json({"issue_id": issue, **document})
    return found
