"""Makes the environment of the session's base while an agent is at work that can do without it, such as an architect.

Attempts that need the environment wait for it at the lock of its cache entry. What was begun when the session ends is
cancelled, with its processes.
"""

import msgspec
from anyio.abc import TaskGroup

from iterdev.core.errors import IterdevError
from iterdev.execution.context import Attempt
from iterdev.execution.workspace_setup import set_up_completely
from iterdev.host.threads import in_thread


class BackgroundEnvironment:
    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._started = False

    def start(self, attempt: Attempt) -> None:
        """On behalf of the first attempt that asks for it."""
        if not self._started:
            self._started = True
            self._group.start_soon(_make, attempt)


async def _make(attempt: Attempt) -> None:
    """In a workspace of its own, which attempts can use afterwards. A failure is said, and does not end the run."""
    context, job = attempt.context, attempt.job
    try:
        with attempt.effect("make spare workspace"):
            workspace = await in_thread(context.pool.spare, job.session_base)
        await set_up_completely(msgspec.structs.replace(attempt, workspace=workspace))
        await in_thread(context.pool.give_back, workspace)
    except (IterdevError, OSError) as error:
        context.link.environment_made((), (f"the environment could not be made in the background: {error}",))
