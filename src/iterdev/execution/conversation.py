"""A conversation with an agent about one task: asked until the result fits, and always closed."""

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from msgspec import Struct

from iterdev.agents import contract
from iterdev.agents.contract import AgentFailure, Answer, Reply
from iterdev.core import prompts
from iterdev.core.formatting import duration
from iterdev.core.limits.agent_failures import FailureKind, Reaction, reaction
from iterdev.core.results import Misfit, Result, Usage, decode, field_names
from iterdev.core.session.events import Failed, Interrupted, Limited
from iterdev.core.settings import TimeLimits
from iterdev.execution.context import Attempt
from iterdev.execution.contract import ToolAccess
from iterdev.execution.kept_work import is_intact, restore
from iterdev.host.git.command import GitFailed
from iterdev.host.processes.spawn import Process, Spawn
from iterdev.host.secrets import LineRedactor
from iterdev.host.threads import in_thread
from iterdev.host.workspaces import untracked_files
from iterdev.store.session_folder import discoveries

CORRECTIONS = 2
"""How often a result that does not fit is asked for again."""
OVERLOAD_WAITS = (2.0, 8.0, 30.0)
"""Seconds before an overloaded provider is asked again."""
DENIALS = 20
"""Different permission requests of one attempt that are recorded."""
LINE = 500
"""Characters of a line that are kept; cut after secrets are removed, or half of one could stay."""

Send = Callable[[str], Awaitable[Reply]]


def unsuccessful(failure: AgentFailure) -> Failed | Limited | Interrupted:
    """The outcome of an attempt whose agent failed."""
    match reaction(failure.kind):
        case Reaction.pause_provider:
            # The journal's numbers are those of JSON, which has no infinity.
            finite = failure.reset_at is not None and math.isfinite(failure.reset_at)
            return Limited(error=failure.message, reset_at=failure.reset_at if finite else None)
        case Reaction.stop:
            return Interrupted()
        case _:
            return Failed(error=failure.message, kind=failure.kind)


class AgentOutput:
    """What an agent said and asked for, without secrets, and all that it spent, also in turns without a result."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._lines = LineRedactor(attempt.context.redact)
        self.usage = Usage()
        self.denied: dict[str, None] = {}
        """Permissions that the agent asked for and did not get."""

    def take(self, event: contract.AgentEvent) -> None:
        match event:
            case contract.Said(text):
                self._say(self._lines.feed(text))
            case contract.PermissionAsked(what):
                request = self._attempt.context.redact(what)[:LINE]
                if len(self.denied) < DENIALS:
                    self.denied[request] = None
                self._forward(contract.PermissionAsked(request))
            case contract.Spent(usage):
                self.usage += usage
                self._forward(event)

    def close(self) -> None:
        self._say(self._lines.flush())

    def _say(self, lines: Sequence[str]) -> None:
        for line in lines:
            self._forward(contract.Said(line[:LINE]))

    def _forward(self, event: contract.AgentEvent) -> None:
        job = self._attempt.job
        self._attempt.context.link.said(job.task.id, job.number, event)


class TaskConversation(Struct):
    attempt: Attempt
    conversation: contract.Conversation
    tools: ToolAccess
    output: AgentOutput
    session_dir: Path
    requests: int = 0
    reported: Result | None = None
    """The result that the agent handed in through a tool."""

    async def ask(self, prompt: str) -> Result | AgentFailure:
        """The result that the prompt leads to; one that does not fit, or lacks something, is sent back saying what.

        A result that can be used although it lacks something is used in the end, whatever the later requests led to.
        """
        await self.tools.take_result()
        job, usable = self.attempt.job, None
        for _ in range(CORRECTIONS + 1):
            self.reported = None
            match self._read(await self._send(prompt)):
                case Misfit() as misfit:
                    problem = str(misfit)
                case Result(status="completed", omissions=problem) as result if problem:
                    usable = result
                case Result(status="completed") as result:
                    return result
                case Result() | AgentFailure() as unsuccessful:
                    return usable or unsuccessful
            prompt = prompts.correction(problem, job.schema)
        message = f"{job.agent} gave no usable result: {problem}"
        return usable or AgentFailure(kind=FailureKind.silent, message=message)

    def _read(self, reply: Reply) -> Result | AgentFailure | Misfit:
        job = self.attempt.job
        match reply:
            case Answer() | AgentFailure(kind=FailureKind.silent) if self.reported:
                # It was checked when it was handed in; what was said afterwards was not.
                return self.reported
            case Answer(body=body):
                try:
                    return decode(self._without_secrets(body), kind=job.role.result, task=job.task.id)
                except Misfit as misfit:
                    return misfit
            case AgentFailure(kind=kind, message=message) if reaction(kind) is Reaction.ask_again:
                return Misfit(message)
            case AgentFailure():
                return reply

    def _without_secrets(self, body: bytes) -> str:
        text, redact = body.decode("utf-8", "replace"), self.attempt.context.redact
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return redact(text)
        names = field_names(self.attempt.job.role.result)
        return json.dumps(redact.everywhere(document, names), ensure_ascii=False)

    async def _send(self, prompt: str) -> Reply:
        placed = prompt.replace(prompts.RESULT, str(self.attempt.workspace.result))
        text = self.attempt.context.redact(placed.replace(prompts.SESSION_DIR, str(self.session_dir)))
        return await retry_overload(lambda: self._request(text), OVERLOAD_WAITS)

    async def _request(self, text: str) -> Reply:
        job, before = self.attempt.job, self.output.usage
        if why := await self.attempt.context.link.objection(job.task.id, before):
            return AgentFailure(kind=FailureKind.stopped, message=why)
        with self.attempt.effect("ask agent", agent=job.agent):
            if job.task.mode.is_conversation:
                reply = await ask_to_finish(self._send_counted, text, job.time_limits, job.agent)
            else:
                # Other tasks have the attempt's own limit.
                reply = await self._send_counted(text)
            if not is_intact(self.attempt):
                await in_thread(restore, self.attempt)
        if reported := await self.tools.take_result():
            self.reported = reported
            # What a result says of its cost counts only if the agent's program said nothing.
            if self.output.usage == before:
                self.output.take(contract.Spent(reported.usage))
        return reply

    async def _send_counted(self, text: str) -> Reply:
        self.requests += 1
        return await self.conversation.send(text)


async def ask_to_finish(send: Send, text: str, limits: TimeLimits, agent: str) -> Reply:
    """Sends an interactive agent a prompt; one that takes too long is asked once to finish."""
    for prompt, seconds in ((text, limits.interactive), (prompts.FINISH_NOW, limits.finish)):
        with anyio.move_on_after(seconds):
            return await send(prompt)
    spent = limits.interactive + limits.finish
    message = f"{agent} was asked to finish and gave no result within {duration(spent)}"
    return AgentFailure(kind=FailureKind.timed_out, message=message)


async def retry_overload(request: Callable[[], Awaitable[Reply]], waits: Sequence[float]) -> Reply:
    """Asks a provider that is overloaded again, a little later each time."""
    for wait in waits:
        reply = await request()
        if not isinstance(reply, AgentFailure) or reaction(reply.kind) is not Reaction.retry_later:
            return reply
        await anyio.sleep(wait)
    return await request()


def _noting(tools: ToolAccess, spawn: Spawn) -> Spawn:
    """Starts programs that may use the tools with the token of the attempt."""

    @asynccontextmanager
    async def started(
        argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
    ) -> AsyncIterator[Process]:
        async with spawn(argv, cwd=cwd, env=env, limit=limit) as process:
            tools.started(process.pid)
            yield process

    return started


@asynccontextmanager
async def open_conversation(attempt: Attempt) -> AsyncIterator[TaskConversation]:
    """Opens the conversation with the agent, and closes it whatever happens."""
    job, context, workspace = attempt.job, attempt.context, attempt.workspace
    output, agent = AgentOutput(attempt), context.agent(job.agent)
    programs = await attempt.programs()
    async with context.link.documents(job) as session_dir, context.link.tools(job) as tools:
        assignment = contract.Assignment(
            task=job.task.id,
            role=job.task.role,
            attempt=job.number,
            session=job.session,
            session_dir=str(session_dir),
            workspace=str(workspace.tree),
            result_path=str(workspace.result),
            schema=job.schema,
            permissions=attempt.permissions,
            limit=job.limit,
            environment=attempt.environment(for_agent=True),
            issues=job.issues,
            tools=tools.server,
            programs=str(programs or ""),
            sandboxed=context.sandbox is not None and not context.sandbox.nests,
        )
        # An agent needs the network to reach its model and the team's tools.
        files = (*agent.folders(assignment.environment), str(session_dir / discoveries.NAME))
        workspace.mark_used()
        await in_thread(untracked_files.note_ignored, workspace.tree)
        # Those of a session on this machine are in the repository, all of which can be read.
        documents = None if session_dir.is_relative_to(context.top) else session_dir
        starts = attempt.spawn(write=job.role.writes, files=files, documents=documents, programs=programs)
        spawn = _noting(tools, starts)
        try:
            async with agent.open(assignment, spawn=spawn, watch=output.take) as conversation:
                yield TaskConversation(attempt, conversation, tools, output, session_dir)
        finally:
            output.close()
            with anyio.CancelScope(shield=True), suppress(GitFailed, OSError):
                await in_thread(untracked_files.remove_new_ignored, workspace.tree)
