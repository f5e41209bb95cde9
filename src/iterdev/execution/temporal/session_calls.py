"""Answers what attempts on other hosts ask of their session: uses of tools, and whether their budget is used up."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import anyio
import msgspec
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import PollerBehaviorSimpleMaximum, Worker

from iterdev import __version__
from iterdev.core.collaboration.tool_schemas import TOOLS
from iterdev.core.errors import IterdevError
from iterdev.core.types import TaskId
from iterdev.execution.contract import Job, SessionLink
from iterdev.execution.temporal.names import CALL
from iterdev.execution.wire_format import Answer, BudgetQuestion, Call, ToolUse, decode, encode
from iterdev.mcp.tools import CallRejected

AT_ONCE = 16
PATIENCE = 5.0
"""Seconds for the end of what is being answered."""
ENDED = "This attempt is not the current one of its task any more; end now."


class SessionCalls:
    def __init__(self, client: Client, queue: str, link: SessionLink, job: Callable[[TaskId, int], Job | None]) -> None:
        """`job` finds the open attempt at a task, if it has this fence."""
        self._link, self._job = link, job
        self._worker = Worker(
            client,
            task_queue=queue,
            activities=[self.answer],
            max_concurrent_activities=AT_ONCE,
            activity_task_poller_behavior=PollerBehaviorSimpleMaximum(2),
            graceful_shutdown_timeout=timedelta(seconds=PATIENCE),
            build_id=__version__,
        )
        self._running = asyncio.ensure_future(self._worker.run())

    async def close(self) -> None:
        # Shielded to the end, or an error that ends the engine would be lost in its cancellation.
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(2 * PATIENCE):
                await self._worker.shutdown()
            self._running.cancel()
            await asyncio.wait([self._running])

    @activity.defn(name=CALL)
    async def answer(self, data: bytes) -> bytes:
        try:
            call = decode(data, Call)
            return encode(await self._answered(call))
        except (IterdevError, CallRejected) as error:
            return encode(Answer(error=str(error)))

    async def _answered(self, call: Call) -> Answer:
        job = self._job(call.task, call.fence)
        if job is None or job.session != call.session:
            raise CallRejected(ENDED)
        match call.question:
            case BudgetQuestion(spent=spent):
                return Answer(content={"objection": await self._link.objection(call.task, spent)})
            case ToolUse(tool=name, arguments=arguments):
                tool = next((one for one in TOOLS if one.name == name), None)
                if tool is None:
                    raise CallRejected(f'There is no tool "{name}".')
                asked = msgspec.convert(arguments, tool.arguments)
                return Answer(content=await self._link.use_tool(job, asked))
