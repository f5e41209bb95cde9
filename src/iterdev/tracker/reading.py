"""Issues and solutions from JSON documents of people and of other tools. Fields without a meaning here are kept."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from math import isfinite
from typing import TypeVar

import msgspec
from msgspec import Struct

from iterdev.core.encodable import encodable
from iterdev.core.errors import UserError
from iterdev.tracker.issues import Comment, Description, IssueStatus, read_status
from iterdev.tracker.solutions import FileChange, Solution, SolutionTask

Document = Mapping[str, object]
S = TypeVar("S", bound=Struct)

ISSUE_EXAMPLE = '{"title": "Login fails", "context": "After the update ..."}'
SOLUTION_EXAMPLE = '{"approach": "Check the token", "tasks": [{"id": "T1", "title": "Fix it", "files": ["auth.py"]}]}'
LATEST = 253_000_000_000
"""Seconds; the end of what dates can express."""
MOST_LEVELS = 50
LARGEST = 2**63 - 1
_RECORDED = ("id", "status", "feedback", "bound_solution_id")
_TIMES = ("created_at", "updated_at", "planned_at", "queued_at", "completed_at", "bound_at")


class NewIssue(Struct, frozen=True):
    """An issue as somebody describes it."""

    description: Description
    id: str = ""
    status: IssueStatus = IssueStatus.registered


def new_issue(document: object) -> NewIssue:
    """Raises `UserError` if the document is no description of an issue."""
    fields = as_object(document, ISSUE_EXAMPLE)
    status = fields.get("status")
    return NewIssue(
        description(fields),
        str(fields.get("id") or ""),
        read_status(str(status)) if status else IssueStatus.registered,
    )


def description(fields: Document) -> Description:
    known = {name: fields[name] for name in Description.__struct_fields__ if fields.get(name) is not None}
    known.pop("extra", None)
    if "context" not in known and isinstance(fields.get("description"), str):
        known["context"] = fields["description"]
    if not str(known.get("title") or "").strip():
        known["title"] = fields.get("id") or _first_line(known.get("context"))
    if not known["title"]:
        raise UserError("The issue has no title", hint=f"--data '{ISSUE_EXAMPLE}'")
    used = {*Description.__struct_fields__, *_RECORDED, *_TIMES, "description"}
    extra = {name: value for name, value in fields.items() if name not in used and value is not None}
    return converted({**known, "extra": extra}, Description, ISSUE_EXAMPLE)


def new_solution(document: object, name: str = "") -> Solution:
    """Raises `UserError` if the document is no solution."""
    fields = as_object(document, SOLUTION_EXAMPLE)
    tasks = fields.get("tasks")
    if tasks is not None and not isinstance(tasks, list | tuple):
        raise UserError("`tasks` of the solution is not a list", hint=f"--data '{SOLUTION_EXAMPLE}'")
    files = fields.get("estimated_files")
    used = {*Solution.__struct_fields__, "is_bound", "issue_id", "solution_id", *_TIMES}
    known = {
        "id": name or fields.get("id") or fields.get("solution_id") or "",
        "description": fields.get("description") or fields.get("approach_name") or "",
        "approach": fields.get("approach") or "",
        "tasks": tuple(_task(task, number) for number, task in enumerate(tasks or (), 1)),
        # Some plans only count the files.
        "estimated_files": files if isinstance(files, list | tuple) else (),
        "dependencies": fields.get("dependencies") or (),
        "score": fields.get("score"),
        "extra": {name: value for name, value in fields.items() if name not in used and value is not None},
    }
    return converted(known, Solution, SOLUTION_EXAMPLE)


def _task(document: object, number: int) -> SolutionTask:
    fields = as_object(document, SOLUTION_EXAMPLE)
    files = fields.get("files") or fields.get("modification_points") or ()
    if not isinstance(files, list | tuple):
        raise UserError(f"`files` of task {number} is not a list", hint=f"--data '{SOLUTION_EXAMPLE}'")
    used = {*SolutionTask.__struct_fields__, "modification_points"}
    known = {
        "id": str(fields.get("id") or f"T{number}"),
        "title": fields.get("title") or f"Task {number}",
        "description": fields.get("description") or "",
        "files": tuple(map(_file, files)),
        "depends_on": fields.get("depends_on") or (),
        "details": {name: value for name, value in fields.items() if name not in used and value is not None},
    }
    return converted(known, SolutionTask, SOLUTION_EXAMPLE)


def _file(document: object) -> FileChange:
    if isinstance(document, str):
        return FileChange(path=document)
    fields = dict(as_object(document, SOLUTION_EXAMPLE))
    if "path" not in fields and "file" in fields:
        fields["path"] = fields["file"]
    return converted({key: value for key, value in fields.items() if value is not None}, FileChange, SOLUTION_EXAMPLE)


def comment(fields: Document) -> Comment:
    return converted(dict(fields), Comment, ISSUE_EXAMPLE)


def as_object(document: object, example: str) -> Document:
    """The fields of a JSON object, as they can be stored."""
    if isinstance(document, dict):
        return {encodable(str(key)): _storable(value) for key, value in document.items()}
    raise UserError(f'"{document}" is not a JSON object', hint=f"--data '{example}'")


def _storable(value: object, levels: int = MOST_LEVELS) -> object:
    """The value without numbers that no other program would read, and text that cannot be encoded."""
    match value:
        case str():
            return encodable(value)
        case dict() | list() | tuple() if not levels:
            raise UserError("The JSON is nested too deeply", hint=f"at most {MOST_LEVELS} levels")
        case dict():
            return {encodable(str(key)): _storable(inner, levels - 1) for key, inner in value.items()}
        case list() | tuple():
            return [_storable(inner, levels - 1) for inner in value]
        case int() if abs(value) > LARGEST:
            return str(value) if abs(value) < LARGEST**4 else None
        case float() if not isfinite(value):
            return None
        case _:
            return value


def converted(fields: Document, kind: type[S], example: str) -> S:
    try:
        return msgspec.convert(fields, kind, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UserError(f"The JSON does not fit: {error}", hint=f"--data '{example}'") from error


def read_time(value: object) -> float | None:
    """A time of another tool: an ISO text, or a number of seconds or milliseconds; None for anything else."""
    found = -1.0
    with suppress(ValueError, OverflowError):
        match value:
            case bool():
                pass
            case int() | float():
                found = value / 1000 if value > LATEST else value
            case str():
                found = datetime.fromisoformat(value).timestamp()
            case _:
                pass
    return found if 0 <= found < LATEST else None


def _first_line(text: object) -> str:
    lines = str(text or "").strip().splitlines()
    return lines[0][:100] if lines else ""
