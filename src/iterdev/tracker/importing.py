"""Recognises a file of another tool, and what its issues mean for the tracker."""

import json
from collections.abc import Collection, Iterator

from iterdev.core.errors import UserError
from iterdev.tracker import folder
from iterdev.tracker.events import IssueCreated, IssueDescribed, SolutionAdded, TrackerEvent
from iterdev.tracker.importers import beads, spec_kit, task_master, workflow_table
from iterdev.tracker.importers.contract import Import
from iterdev.tracker.state import Tracker

KNOWN = (
    "tasks.csv or issues.jsonl of Claude-Code-Workflow, tasks.md of spec-kit, tasks.json of task-master, "
    "issues.jsonl of beads"
)


def read(text: str, path: str, columns: Collection[str], at: float) -> Import:
    """What the file says; `columns` are those of a task table. Raises `UserError` if the format is not known."""
    suffix = path.rpartition(".")[2].lower()
    if suffix == "csv":
        return workflow_table.read(text, columns, at)
    if suffix in {"md", "markdown"} and spec_kit.is_task_list(text):
        return spec_kit.read(text, path)
    document = _json(text)
    if isinstance(document, dict) and task_master.is_task_master(document):
        return task_master.read(document, at)
    first = document if isinstance(document, dict) else _json(next(iter(text.strip().splitlines()), ""))
    if isinstance(first, dict) and "id" in first:
        return beads.read(text, at) if beads.is_beads(first) else _workflow_issues(text, at)
    raise UserError(f'"{path}" is not a file of a known tool', hint=f"known are: {KNOWN}")


def _workflow_issues(text: str, at: float) -> Import:
    found = folder.read_back({folder.ISSUES: text}, Tracker(), at)
    issues = tuple(event.issue for event in found.events if isinstance(event, IssueCreated))
    return Import(tool=workflow_table.TOOL, issues=issues, notes=found.notes)


def imported(tracker: Tracker, found: Import) -> Iterator[TrackerEvent]:
    """Issues that are not known are added, and known ones that are described otherwise now are updated."""
    for issue in found.issues:
        known = tracker.issues.get(issue.id)
        if known is None:
            yield IssueCreated(issue)
        elif known.description != issue.description:
            yield IssueDescribed(issue.id, issue.description)
        plan = found.solutions.get(issue.id)
        if plan and plan.id not in tracker.solutions.get(issue.id, {}):
            yield SolutionAdded(issue.id, plan)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
