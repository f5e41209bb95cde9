"""Issues of beads: one JSON object per line, as in `.beads/issues.jsonl`."""

import json
from collections.abc import Iterator, Mapping

from iterdev.core.errors import UserError
from iterdev.tracker.importers.contract import Import, Losses, sections
from iterdev.tracker.issues import (
    DEFAULT_PRIORITY,
    HIGHEST,
    LOWEST,
    Comment,
    Description,
    Issue,
    IssueStatus,
    checked_id,
)
from iterdev.tracker.reading import Document, as_object, read_time

TOOL = "beads"
STATUSES = {"closed": IssueStatus.completed, "resolved": IssueStatus.completed, "deferred": IssueStatus.paused}
"""Every other status is that of an issue which nobody works on here."""
NO_WORK = frozenset({"message", "molecule", "merge-request", "event"})
_USED = frozenset(
    {
        *("id", "title", "description", "design", "acceptance_criteria", "notes", "status", "priority", "issue_type"),
        *("labels", "dependencies", "comments", "created_at", "updated_at", "closed_at", "external_ref"),
    }
)


def is_beads(document: Mapping[str, object]) -> bool:
    return "issue_type" in document or ("title" in document and "priority" in document and "context" not in document)


def read(text: str, at: float) -> Import:
    losses, found = Losses(), list[Issue]()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            issue = _issue(as_object(fields, "{}"), losses, at)
        except (ValueError, RecursionError):
            losses.say(f"line {number} is not JSON, and is left out")
        except UserError as error:
            losses.say(f"line {number} is left out: {error.message}")
        else:
            found += [issue] if issue else []
    return Import(tool=TOOL, issues=tuple(found), notes=losses.notes())


def _issue(fields: Document, losses: Losses, at: float) -> Issue | None:
    name, status = checked_id(str(fields.get("id") or "")), str(fields.get("status") or "")
    kind = str(fields.get("issue_type") or "")
    if status == "tombstone" or fields.get("deleted_at"):
        losses.count("deleted, and left out")
        return None
    if kind in NO_WORK:
        losses.count(f"no work but a {kind}, and left out")
        return None
    if status in {"in_progress", "hooked"}:
        losses.count("in progress there, registered here, because nobody works on it yet")
    after, others = _dependencies(fields)
    if others:
        losses.count("linked to others as parent, related or discovered; the links are kept as text only")
    priority = fields.get("priority")
    kept = {key: value for key, value in fields.items() if key not in _USED and value not in (None, "", [], {})}
    return Issue(
        id=name,
        description=Description(
            title=str(fields.get("title") or name),
            context=sections(
                ("", fields.get("description")),
                ("Design", fields.get("design")),
                ("Acceptance criteria", fields.get("acceptance_criteria")),
                ("Notes", fields.get("notes")),
                ("Depends on", ", ".join(after)),
                ("Linked", ", ".join(others)),
            ),
            # There 0 is the most urgent.
            priority=min(max(HIGHEST - priority, LOWEST), HIGHEST) if isinstance(priority, int) else DEFAULT_PRIORITY,
            tags=(*_strings(fields.get("labels")), *((kind,) if kind else ())),
            comments=tuple(_comments(fields.get("comments"))),
            source=TOOL,
            source_url=str(fields.get("external_ref") or ""),
            extra={**kept, **({"depends_on": after} if after else {})},
        ),
        status=STATUSES.get(status, IssueStatus.registered),
        created_at=read_time(fields.get("created_at")) or at,
        updated_at=read_time(fields.get("updated_at")) or at,
        completed_at=(read_time(fields.get("closed_at")) or at) if status in {"closed", "resolved"} else None,
    )


def _dependencies(fields: Document) -> tuple[list[str], list[str]]:
    """The issues that have to be done before, and others with what they are to it."""
    after, others = list[str](), list[str]()
    listed = fields.get("dependencies")
    for one in listed if isinstance(listed, list) else []:
        match one:
            case str(name) | {"depends_on_id": str(name), "type": "blocks"}:
                after.append(name)
            case {"depends_on_id": str(name)}:
                others.append(f"{name} ({one.get('type') or 'related'})")
            case _:
                pass
    return after, others


def _comments(value: object) -> Iterator[Comment]:
    for one in value if isinstance(value, list) else []:
        match one:
            case {"text": str(text)}:
                yield Comment(author=str(one.get("author") or ""), body=text)
            case _:
                pass


def _strings(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
