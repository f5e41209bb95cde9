"""A conversation with an agent about one task: asked until the result fits, and always closed."""

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio

from iterdev.agents.contract import (
    AgentEvent,
    AgentFailure,
    Answer,
    Assignment,
    Conversation,
    PermissionAsked,
    Reply,
    Said,
    Spent,
)
from iterdev.core import prompts
from iterdev.core.limits.agent_failures import FailureKind, Reaction, reaction
from iterdev.core.results import Misfit, Result, Usage, decode
from iterdev.core.session.events import Failed, Interrupted, Limited
from iterdev.core.types import Mode
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Job, ToolAccess
from iterdev.execution.kept_work import in_thread
from iterdev.host.sandbox import git_objects
from iterdev.host.secrets import LineRedactor
from iterdev.host.workspaces.pool import Workspace
from iterdev.store.session_folder import discoveries

CORRECTIONS = 2
"""How often a result that does not fit is asked for again."""
OVERLOAD_WAITS = (2.0, 8.0, 30.0)
"""Seconds before an overloaded provider is asked again."""
DENIALS = 20
"""Different permission requests of one attempt that are recorded."""
LINE = 500
"""Characters of a line that are kept; cut after secrets are removed, or half of one could stay."""


def unsuccessful(failure: AgentFailure) -> Failed | Limited | Interrupted:
    """The outcome of an attempt whose agent failed."""
    match reaction(failure.kind):
        case Reaction.pause_provider:
            # The journal's numbers are those of JSON, which has no infinity.
            told = failure.reset_at is not None and math.isfinite(failure.reset_at)
            return Limited(error=failure.message, reset_at=failure.reset_at if told else None)
        case Reaction.stop:
            return Interrupted()
        case _:
            return Failed(error=failure.message, kind=failure.kind)


class TaskConversation:
    """It counts the requests and adds up what they cost."""

    def __init__(
        self,
        job: Job,
        context: AttemptContext,
        workspace: Workspace,
        conversation: Conversation,
        tools: ToolAccess,
        output: "AgentOutput",
        session_dir: Path,
    ) -> None:
        self._job, self._context, self._workspace = job, context, workspace
        self._conversation, self._tools, self._output = conversation, tools, output
        self._session_dir = session_dir
        self._reported: Result | None = None
        self.requests = 0

    @property
    def usage(self) -> Usage:
        """Of every turn, also of those that gave no result."""
        return self._output.usage

    @property
    def denied(self) -> tuple[str, ...]:
        """What the agent asked permission for and did not get."""
        return tuple(self._output.denied)

    async def ask(self, prompt: str) -> Result | AgentFailure:
        """The result that the prompt leads to; a misfit is sent back with the exact error."""
        await self._tools.take_result()
        self._reported = None
        reply = await self._send(prompt)
        for _ in range(CORRECTIONS):
            answer = self._read(reply)
            if not isinstance(answer, Misfit):
                return answer
            reply = await self._send(prompts.correction(str(answer), self._job.schema))
        answer = self._read(reply)
        if isinstance(answer, Misfit):
            message = f"{self._job.agent} gave no usable result: {answer}"
            return AgentFailure(kind=FailureKind.silent, message=message)
        return answer

    def _read(self, reply: Reply) -> Result | AgentFailure | Misfit:
        match reply:
            case Answer() | AgentFailure(kind=FailureKind.silent) if self._reported:
                # It was checked when it was handed in; what was said afterwards was not.
                return self._reported
            case Answer(body=body):
                try:
                    return decode(self._without_secrets(body), kind=self._job.role.result, task=self._job.task.id)
                except Misfit as misfit:
                    return misfit
            case AgentFailure(kind=kind, message=message) if reaction(kind) is Reaction.ask_again:
                return Misfit(message)
            case AgentFailure():
                return reply

    def _without_secrets(self, body: bytes) -> str:
        text = body.decode("utf-8", "replace")
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return self._context.redact(text)
        return json.dumps(self._context.redact.everywhere(document), ensure_ascii=False)

    async def _send(self, prompt: str) -> Reply:
        placed = prompt.replace(prompts.RESULT, str(self._workspace.result))
        text = self._context.redact(placed.replace(prompts.SESSION_DIR, str(self._session_dir)))
        return await retry_overload(lambda: self._request(text), OVERLOAD_WAITS)

    async def _request(self, text: str) -> Reply:
        if why := await self._context.link.objection(self._job.task.id, self.usage):
            return AgentFailure(kind=FailureKind.stopped, message=why)
        self.requests += 1
        before = self.usage
        with self._context.effect("ask agent", task=self._job.task.id, agent=self._job.agent):
            reply = await self._within_time(text)
            await in_thread(partial(git_objects.adopt, self._workspace, self._job.base))
        if reported := await self._tools.take_result():
            self._reported = reported
            # What a result says of its cost counts only if the agent's program said nothing.
            if self.usage == before:
                self._output.take(Spent(reported.usage))
        return reply

    async def _within_time(self, text: str) -> Reply:
        """An interactive agent that takes too long is asked once to finish; others have the attempt's own limit."""
        if self._job.task.mode is not Mode.interactive:
            return await self._conversation.send(text)
        limits = self._job.settings.limits
        with anyio.move_on_after(limits.interactive):
            return await self._conversation.send(text)
        self.requests += 1
        with anyio.move_on_after(limits.urged):
            return await self._conversation.send(prompts.FINISH_NOW)
        spent = limits.interactive + limits.urged
        message = f"{self._job.agent} was asked to finish and gave no result within {spent:g} s"
        return AgentFailure(kind=FailureKind.timed_out, message=message)


async def retry_overload(request: Callable[[], Awaitable[Reply]], waits: Sequence[float]) -> Reply:
    """Asks a provider that is overloaded again, a little later each time."""
    for wait in waits:
        reply = await request()
        if not isinstance(reply, AgentFailure) or reaction(reply.kind) is not Reaction.retry_later:
            return reply
        await anyio.sleep(wait)
    return await request()


@asynccontextmanager
async def open_conversation(job: Job, context: AttemptContext, workspace: Workspace) -> AsyncIterator[TaskConversation]:
    """Opens the conversation with the agent, and closes it whatever happens."""
    output, agent, link = AgentOutput(job, context), context.agent(job.agent), context.link
    async with link.documents(job) as session_dir, link.tools(job) as tools:
        assignment = _assignment(job, context, workspace, tools, session_dir)
        board = session_dir / discoveries.NAME
        spawn = context.spawn_agent(job, workspace, agent, assignment.environment, board)
        try:
            async with agent.open(assignment, spawn=spawn, watch=output.take) as conversation:
                yield TaskConversation(job, context, workspace, conversation, tools, output, session_dir)
        finally:
            output.close()


def _assignment(
    job: Job, context: AttemptContext, workspace: Workspace, tools: ToolAccess, session_dir: Path
) -> Assignment:
    return Assignment(
        task=job.task.id,
        role=job.task.role,
        attempt=job.number,
        session=job.session,
        session_dir=str(session_dir),
        workspace=str(workspace.tree),
        result_path=str(workspace.result),
        schema=job.schema,
        permissions=context.permissions(job),
        limit=job.limit,
        environment=context.environment(job, workspace, for_agent=True),
        tools=tools.server,
        sandboxed=context.sandbox is not None and not context.sandbox.nests,
    )


class AgentOutput:
    """What an agent said and asked for, without secrets, and all that it spent."""

    def __init__(self, job: Job, context: AttemptContext) -> None:
        self._job, self._context = job, context
        self._lines = LineRedactor(context.redact)
        self.usage = Usage()
        self.denied: dict[str, None] = {}

    def take(self, event: AgentEvent) -> None:
        match event:
            case Said(text):
                self._say(self._lines.feed(text))
            case PermissionAsked(what):
                request = self._context.redact(what)[:LINE]
                if len(self.denied) < DENIALS:
                    self.denied[request] = None
                self._pass_on(PermissionAsked(request))
            case Spent(usage):
                self.usage += usage
                self._pass_on(event)

    def close(self) -> None:
        self._say(self._lines.flush())

    def _say(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._pass_on(Said(line[:LINE]))

    def _pass_on(self, event: AgentEvent) -> None:
        self._context.link.said(self._job.task.id, self._job.number, event)
