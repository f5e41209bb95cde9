"""Types that every layer shares: ids, engines, task kinds, statuses, phases, severities."""

from enum import StrEnum
from typing import NewType

SessionId = NewType("SessionId", str)
TaskId = NewType("TaskId", str)

Role = str
"""The name of a role; which roles there are, the session's team says."""


class Engine(StrEnum):
    wave = "wave"
    """Every task of one depth ends before a task of the next one starts."""
    beat = "beat"
    """A task starts as soon as its dependencies are completed."""


class Mode(StrEnum):
    """How a task is run: as part of a wave's batch, or as a conversation of its own before or after the batch."""

    csv_wave = "csv-wave"
    interactive = "interactive"
    pre_wave = "pre-wave"

    @property
    def is_conversation(self) -> bool:
        return self is not Mode.csv_wave


class TaskKind(StrEnum):
    work = "work"
    """An agent does it, or iterdev itself with an agent at hand."""
    decision = "decision"
    """The team's rules decide it; no agent is asked."""
    conflict_fix = "conflict-fix"
    """It merges the work of a task with conflicting work that landed before."""
    update = "update"
    """It brings the user's branch into the session; no agent is asked."""


class Status(StrEnum):
    pending = "pending"
    in_progress = "in_progress"
    landing = "landing"
    """The agent is done and its commit is kept; it is not yet on the session's branch."""
    completed = "completed"
    failed = "failed"
    skipped = "skipped"

    @property
    def is_final(self) -> bool:
        return self in FINAL


UNSUCCESSFUL = frozenset({Status.failed, Status.skipped})
FINAL = UNSUCCESSFUL | {Status.completed}


class Phase(StrEnum):
    active = "active"
    paused = "paused"
    completed = "completed"
    archived = "archived"


class Outcome(StrEnum):
    """How the work of a session ended."""

    completed = "completed"
    failed = "failed"
    """A task failed or was skipped, or the team has something to say against the result."""
    rejected = "rejected"
    """The user rejected the plan."""
    stopped = "stopped"
    """It ended before the work was done."""


class Ending(StrEnum):
    over = "over"
    waiting = "waiting for an answer"
    interrupted = "interrupted"
    stepped = "one step done"


class Severity(StrEnum):
    critical = "critical"
    high = "high"
    medium = "medium"
    low = "low"


class CompletionAction(StrEnum):
    interactive = "interactive"
    auto_archive = "auto_archive"
    auto_keep = "auto_keep"


class AcceptStyle(StrEnum):
    """How the work of a session gets into the user's branch."""

    fast_forward = "fast-forward"
    """The branch moves forward to the work; if it has other commits meanwhile, by a merge commit."""
    merge = "merge"
    """Always by a merge commit."""
    squash = "squash"
    """As one commit of the user."""


class NotificationKind(StrEnum):
    """What the user can be notified of while an engine runs; most are kinds of needs."""

    question = "question"
    budget = "budget"
    """The question whether to continue when a budget is used up."""
    failed = "failed"
    conflict = "conflict"
    stalled = "stalled"
    agent = "agent"
    denied = "denied"
    ready = "ready"
    paused = "paused"


class ConflictStrategy(StrEnum):
    """What is done when two tasks changed the same file side by side."""

    auto_merge = "auto_merge"
    """What git can merge is taken as it is; the rest is merged by a conflict task."""
    manual = "manual"
    """A conflict task checks every such file, even where git could merge it."""
    abort = "abort"
    """What git cannot merge is not merged; the work is kept, and a conflict task does it again on what landed."""


class TaskFields:
    """Base class of the fields that a team adds to a task."""

    __slots__ = ()

    def for_start(self) -> object:
        """What of them matters for the start of a task; ready tasks that are equal in it are considered together."""
        return self


class TeamState:
    """Base class of a team's own part of the state."""

    __slots__ = ()
