"""What happens to work between its attempt and its landing, where the tests decide whether it lands."""

from msgspec import Struct

from iterdev.core.types import Status, TaskId
from iterdev.core.verification import Verification


class LandingTestStarted(Struct, frozen=True, kw_only=True, tag=True):
    """Work that waits to land is tested as one tree: the branch with the commits of all these tasks merged into it."""

    tasks: tuple[TaskId, ...]
    tip: str
    """Where the branch was."""
    commit: str
    """The tree that is tested."""


class LandingTestEnded(Struct, frozen=True, kw_only=True, tag=True):
    tasks: tuple[TaskId, ...]
    tip: str
    passed: bool | None
    """Whether the work lands; None if the run was interrupted, and says nothing."""
    verification: Verification | None = None
    host_died: bool = False
    """Whether the run was interrupted because its host died."""


class LandingTakenOut(Struct, frozen=True, kw_only=True, tag=True):
    """The tests fail with the work of a task and pass without it; the work is kept, and does not land."""

    task: TaskId
    commit: str
    error: str
    output: str = ""
    """The end of what the tests printed."""
    status: Status
    """The status of the task from now on: pending if it is tried once more."""


QueueEvent = LandingTestStarted | LandingTestEnded | LandingTakenOut
