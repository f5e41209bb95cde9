"""Runs jobs on this machine, each in a cancel scope of its own."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager

import anyio
import msgspec
from anyio.abc import TaskGroup

from iterdev.agents.contract import UnavailableAgent
from iterdev.core.errors import IterdevError
from iterdev.core.session.attempts import Report
from iterdev.core.types import TaskId
from iterdev.execution.attempt import run_attempt
from iterdev.execution.background_environment import BackgroundEnvironment
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Job
from iterdev.execution.landing_test import run_landing_test


class LocalExecutor(AbstractAsyncContextManager["LocalExecutor"]):
    where = ""

    def __init__(self, context: AttemptContext, group: TaskGroup) -> None:
        background = BackgroundEnvironment(group)
        self._context = msgspec.structs.replace(context, start_environment=background.start)
        self._group = group
        self._scopes: dict[TaskId, anyio.CancelScope] = {}
        self._send, self._receive = anyio.create_memory_object_stream[Report | IterdevError](1_000_000)

    async def lacking(self, agents: Collection[str]) -> Mapping[str, str]:
        found = {name: self._context.agent(name) for name in agents}
        return {name: one.problem for name, one in found.items() if isinstance(one, UnavailableAgent)}

    async def submit(self, job: Job, *, again: bool = False) -> None:  # noqa: ARG002 - none goes on without its engine
        self._scopes[job.task.id] = anyio.CancelScope()
        self._group.start_soon(self._run, job)

    async def report(self) -> Report:
        """The next job that ended; an error of the machine itself is raised here."""
        ended = await self._receive.receive()
        if isinstance(ended, IterdevError):
            raise ended
        self._scopes.pop(ended.task, None)
        return ended

    async def cancel(self, task: TaskId) -> None:
        if scope := self._scopes.get(task):
            scope.cancel()

    async def __aexit__(self, *_: object) -> None:
        self._send.close()
        self._receive.close()

    async def _run(self, job: Job) -> None:
        try:
            run: Callable[[Job, AttemptContext, anyio.CancelScope], Awaitable[Report]] = (
                run_landing_test if job.together else run_attempt
            )
            ended: Report | IterdevError = await run(job, self._context, self._scopes[job.task.id])
        except IterdevError as error:
            ended = error
        self._send.send_nowait(ended)
