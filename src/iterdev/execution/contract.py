"""What is handed to an executor, and what comes back; the same whether the work is done here or elsewhere."""

from typing import Protocol

from msgspec import Struct

from iterdev.core.results import Dependency
from iterdev.core.session.conflicts import Merging
from iterdev.core.session.events import AttemptEnded
from iterdev.core.session.tasks import Task
from iterdev.core.types import TaskId
from iterdev.core.verification import SuiteReport


class Job(Struct, frozen=True, kw_only=True):
    """One attempt, complete in itself."""

    session: str
    session_dir: str
    task: Task
    number: int
    agent: str
    base: str
    """The commit to work on."""
    prompt: str
    limit: float
    session_base: str
    changed: tuple[str, ...] = ()
    """Files that the session changed between its base and `base`."""
    merging: Merging | None = None
    """Work that is to be brought in; the merge is begun before the agent is asked."""
    planned: tuple[str, ...] = ()
    """Files that the breakdown says there will be."""
    baseline: SuiteReport | None = None
    """The tests on the session's base, if they have been run."""
    replaceable: bool = False
    """Another agent is there to take over if this one cannot do it."""
    needs: tuple[Dependency, ...] = ()
    """External packages that have to be there before the agent is asked."""
    news_of: tuple[Dependency, ...] = ()
    """Those of which nobody has asked yet in this session whether there is something newer."""
    overridden: tuple[str, ...] = ()
    """The keys of those that may be as they are."""
    test_command: str | None = None
    """A command that an earlier tester named."""


class Executor(Protocol):
    """Runs attempts somewhere."""

    async def submit(self, job: Job) -> None: ...

    async def outcome(self) -> AttemptEnded:
        """Waits for the next attempt to end."""
        ...

    async def cancel(self, task: TaskId) -> None:
        """Ends an attempt; its outcome is `Interrupted`, and its work is kept."""
        ...
