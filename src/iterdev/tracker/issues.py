"""An issue: what is wrong or wanted, what was said about it, and how far its solution is."""

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from itertools import count

from msgspec import Struct

from iterdev.core.errors import UserError, did_you_mean
from iterdev.core.ids import ZONE

DEFAULT_PRIORITY, LOWEST, HIGHEST = 3, 1, 5
"""5 is the most urgent."""
LONGEST_ID = 100
ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_ID - 1}}}")
"""An id is also the name of a file."""
MENTIONED = re.compile(r"(?<![A-Za-z0-9-])(?:GH-\d+|ISS-\d{8}-\d{6})(?![A-Za-z0-9]|-[A-Za-z0-9])")


class IssueStatus(StrEnum):
    registered = "registered"
    planning = "planning"
    planned = "planned"
    queued = "queued"
    executing = "executing"
    completed = "completed"
    failed = "failed"
    paused = "paused"


ALIASES = {
    "pending": IssueStatus.registered,
    "in-progress": IssueStatus.executing,
    "resolved": IssueStatus.completed,
}
"""Words for statuses that documents and other tools use."""


class FeedbackType(StrEnum):
    failure = "failure"
    clarification = "clarification"
    rejection = "rejection"


class Stage(StrEnum):
    """How far the issue was when the feedback was given."""

    new = "new"
    plan = "plan"
    execute = "execute"


class Feedback(Struct, frozen=True, kw_only=True):
    type: FeedbackType
    stage: Stage
    content: str
    created_at: float = 0


class Comment(Struct, frozen=True, kw_only=True):
    """What somebody wrote below the issue at its source."""

    author: str = ""
    body: str


class Description(Struct, frozen=True, kw_only=True):
    """What people say of an issue, and where it comes from."""

    title: str
    context: str = ""
    """The problem in full."""
    priority: int = DEFAULT_PRIORITY
    tags: tuple[str, ...] = ()
    expected_behavior: str = ""
    actual_behavior: str = ""
    affected_components: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()
    source: str = "text"
    """`github`, `text` or `discovery`, or what another tool calls it."""
    source_url: str = ""
    extra: Mapping[str, object] = {}
    """Fields of other tools, which are kept and written back."""


class Issue(Struct, frozen=True, kw_only=True):
    id: str
    description: Description
    status: IssueStatus = IssueStatus.registered
    bound_solution_id: str | None = None
    feedback: tuple[Feedback, ...] = ()
    created_at: float = 0
    updated_at: float = 0
    planned_at: float | None = None
    queued_at: float | None = None
    completed_at: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether it belongs to the history."""
        return self.status is IssueStatus.completed


def read_status(text: str) -> IssueStatus:
    """The status that a word stands for; raises `UserError` with the list of statuses."""
    word = text.strip().lower().replace("_", "-")
    if word in ALIASES:
        return ALIASES[word]
    if word in set(IssueStatus):
        return IssueStatus(word)
    near = did_you_mean(word, [*IssueStatus, *ALIASES])
    raise UserError(f'"{text}" is not a status of an issue{near}', hint=f"one of: {', '.join(IssueStatus)}")


def is_id(text: str) -> bool:
    return ID.fullmatch(text) is not None and ".." not in text


def checked_id(text: str) -> str:
    if is_id(text):
        return text
    raise UserError(
        f'"{text}" cannot be the id of an issue', hint="letters, digits, dots and dashes, such as ISS-20260308-120000"
    )


def checked_priority(number: int) -> int:
    if LOWEST <= number <= HIGHEST:
        return number
    raise UserError(
        f'"{number}" is not a priority', hint=f"a number from {LOWEST} to {HIGHEST}; {HIGHEST} is the most urgent"
    )


def new_id(at: float, taken: Collection[str]) -> str:
    """`ISS-`, the date and the time; if it is taken, that of the next free second."""
    return next(name for second in count() if (name := _id_at(at + second)) not in taken)


def _id_at(at: float) -> str:
    return datetime.fromtimestamp(at, ZONE).strftime("ISS-%Y%m%d-%H%M%S")


def mentioned_ids(text: str) -> tuple[str, ...]:
    """The ids `GH-n` and `ISS-date-time` in a text, each once, in the order in which they come."""
    return tuple(dict.fromkeys(MENTIONED.findall(text)))
