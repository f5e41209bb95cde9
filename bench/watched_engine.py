"""Does what `iterdev` does, and writes how long the engine's event loop was not free at most.

python watched_engine.py FILE run ...
"""

import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from iterdev.app.remote.executor import executor_for
from iterdev.engine.repository import Repository
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Executor
from iterdev.surfaces.cli.main import run

TICK = 0.01


class Watch:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._longest = 0.0

    @asynccontextmanager
    async def executor(self, context: AttemptContext, group: TaskGroup) -> AsyncIterator[Executor]:
        async with executor_for(Repository(Path.cwd()))(context, group) as made, anyio.create_task_group() as own:
            own.start_soon(self._look)
            yield made
            own.cancel_scope.cancel()

    async def _look(self) -> None:
        """A loop that is free wakes this up when its time has come."""
        while True:
            due = time.monotonic() + TICK
            await anyio.sleep(TICK)
            late = time.monotonic() - due
            if late > self._longest:
                self._longest = late
                self._file.write_text(str(late))


if __name__ == "__main__":
    code = run(sys.argv[2:], Watch(Path(sys.argv[1])).executor)
    sys.stdout.flush()
    # Threads of Temporal's client may abort an interpreter that is taken apart.
    os._exit(code)
