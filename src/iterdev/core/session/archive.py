"""What becomes of a session when its work is done: put away, kept at hand, handed out, or tried again."""

from enum import StrEnum
from typing import assert_never

import msgspec
from msgspec import Struct

GATE = "completion"
ARCHIVE, KEEP, EXPORT, RETRY = "archive", "keep", "export", "retry"
KEPT = "kept active"

DELIVERABLES = (
    "context.md",
    "results.csv",
    "task-ledger.json",
    "discoveries.ndjson",
    "design",
    "code",
    "verify",
    "review",
    "wisdom",
)
"""The files and folders of a session that are handed out."""
PATCH = "changes.patch"
"""All that landed, as one patch on the session's base; handed out with them."""


class Action(StrEnum):
    """What is done at the end of a run."""

    interactive = "interactive"
    auto_archive = "auto_archive"
    auto_keep = "auto_keep"


class Archived(Struct, frozen=True, tag=True):
    """The session was put away; its branch, its refs and its folder stay."""

    exported: str = ""
    """Where its deliverables were copied to, if they were."""


class Kept(Struct, frozen=True, tag=True):
    """The session stays at hand, for work that follows or for a closer look."""


class Reopened(Struct, frozen=True, tag=True):
    """A session that had been put away is at hand again."""


CompletionEvent = Archived | Kept | Reopened


class Completion(Struct, frozen=True, kw_only=True):
    finished_at: float | None = None
    """When the last task was done."""
    kept: bool = False
    archived_at: float | None = None
    exported: str = ""


def evolve(part: Completion, event: CompletionEvent, at: float) -> Completion:
    match event:
        case Archived(exported):
            return msgspec.structs.replace(part, kept=False, archived_at=at, exported=exported or part.exported)
        case Kept() | Reopened():
            return msgspec.structs.replace(part, kept=True, archived_at=None)
        case _:
            assert_never(event)


def choices(*, failures: bool) -> tuple[str, ...]:
    """What the user is offered, the recommended one first; there is something to try again only after failures."""
    return (ARCHIVE, KEEP, EXPORT, RETRY) if failures else (ARCHIVE, KEEP, EXPORT)
