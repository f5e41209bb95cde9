"""The fixed words of the product: roles, pipelines, engines, states. Each stands here once."""

from enum import StrEnum
from typing import NewType

SessionId = NewType("SessionId", str)
TaskId = NewType("TaskId", str)


class Team(StrEnum):
    iterdev = "iterdev"
    issue = "issue"


class Engine(StrEnum):
    wave = "wave"
    beat = "beat"


class Pipeline(StrEnum):
    patch = "patch"
    sprint = "sprint"
    multi_sprint = "multi-sprint"


class Role(StrEnum):
    architect = "architect"
    developer = "developer"
    tester = "tester"
    reviewer = "reviewer"
    gc_controller = "gc-controller"


WORKERS = (Role.architect, Role.developer, Role.tester, Role.reviewer)
"""In the order in which they come into a sprint."""

WRITERS = frozenset({Role.developer, Role.tester})
"""The roles whose changes land; whatever another role writes is set aside."""


class Mode(StrEnum):
    """How a task is run: as part of a wave's batch, or as a conversation of its own."""

    csv_wave = "csv-wave"
    interactive = "interactive"


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


LOST = frozenset({Status.failed, Status.skipped})
FINAL = LOST | {Status.completed}


class Signal(StrEnum):
    """What a review says about the work."""

    revision_needed = "REVISION_NEEDED"
    converged = "CONVERGED"


class Phase(StrEnum):
    """Where a session stands."""

    active = "active"
    paused = "paused"
    completed = "completed"
    archived = "archived"


class Severity(StrEnum):
    critical = "critical"
    high = "high"
    medium = "medium"
    low = "low"


class Strategy(StrEnum):
    """What is done when two developers changed the same file side by side."""

    auto_merge = "auto_merge"
    """What git can merge is taken as it is; for the rest a developer is asked."""
    manual = "manual"
    """A developer looks at every such file, also where git could merge it."""
    abort = "abort"
    """What git cannot merge fails; the work is kept."""
