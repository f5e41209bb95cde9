"""Talking with an agent until it hands in a result that fits: asked, asked again, urged, and always closed."""

import json
from collections import deque
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
    TroubleKind,
)
from iterdev.core import prompts
from iterdev.core.limits.agent_failures import Reaction, reaction
from iterdev.core.results import Misfit, Result, Usage, decode, schema
from iterdev.core.types import Mode
from iterdev.engine.team_tools import Caller
from iterdev.execution import context
from iterdev.execution.context import Kit
from iterdev.execution.contract import Job
from iterdev.execution.kept_work import thread
from iterdev.host.sandbox import git_objects
from iterdev.host.workspaces.pool import Workspace
from iterdev.store import atomic_files

REPEATS = 2
"""How often a result that does not fit is asked for again."""
OVERLOAD_WAITS = (2.0, 8.0, 30.0)
"""Seconds before an overloaded provider is asked again."""
LOG_BYTES = 256 * 1024
DENIALS = 20
"""Different wishes of one attempt that are written down."""
LINE = 500
"""Characters of a line that are kept; cut after secrets are gone, or half of one could stay."""


class Talk:
    """One conversation about one task. It counts the requests and adds up what they cost."""

    def __init__(
        self, job: Job, kit: Kit, conversation: Conversation, workspace: Workspace, caller: Caller, log: "_Log"
    ) -> None:
        self._job, self._kit, self._conversation, self._workspace = job, kit, conversation, workspace
        self._caller, self._log = caller, log
        self._counted: Result | None = None
        self.requests = 0

    @property
    def usage(self) -> Usage:
        """Of every turn, also of those that gave no result."""
        return self._log.usage

    @property
    def denied(self) -> tuple[str, ...]:
        """What the agent asked for and did not get."""
        return tuple(self._log.denied)

    async def ask(self, prompt: str) -> Result | AgentFailure:
        """The result that the prompt leads to; a misfit is sent back with the exact error."""
        self._caller.reported = None
        reply = await self._send(prompt)
        for _ in range(REPEATS):
            answer = self._read(reply)
            if not isinstance(answer, Misfit):
                return answer
            reply = await self._send(prompts.correction(str(answer), self._job.task.role))
        answer = self._read(reply)
        if isinstance(answer, Misfit):
            return AgentFailure(kind=TroubleKind.silent, message=f"{self._job.agent} gave no usable result: {answer}")
        return answer

    def _read(self, reply: Reply) -> Result | AgentFailure | Misfit:
        match reply:
            case Answer() | AgentFailure(kind=TroubleKind.silent) if self._caller.reported:
                # It was checked when it was handed in; whatever was said afterwards was not.
                return self._caller.reported
            case Answer(body=body):
                try:
                    return decode(self._without_secrets(body), role=self._job.task.role, task=self._job.task.id)
                except Misfit as misfit:
                    return misfit
            case AgentFailure(kind=kind, message=message) if reaction(kind) is Reaction.correct:
                return Misfit(message)
            case AgentFailure():
                return reply

    def _without_secrets(self, body: bytes) -> str:
        text = body.decode("utf-8", "replace")
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return self._kit.redact(text)
        return json.dumps(self._kit.redact.everywhere(document), ensure_ascii=False)

    async def _send(self, prompt: str) -> Reply:
        text = self._kit.redact(prompt.replace(prompts.RESULT, str(self._workspace.result)))
        return await insistently(lambda: self._request(text), OVERLOAD_WAITS)

    async def _request(self, text: str) -> Reply:
        if why := self._kit.objection(self._job.task.id, self.usage):
            return AgentFailure(kind=TroubleKind.stopped, message=why)
        self.requests += 1
        before = self.usage
        self._kit.mark(f"agent asked {self._job.task.id}")
        reply = await self._patiently(text)
        await thread(partial(git_objects.adopt, self._workspace, self._job.base))
        self._kit.mark(f"agent answered {self._job.task.id}")
        self._count(self._caller.reported, before)
        return reply

    def _count(self, reported: Result | None, before: Usage) -> None:
        """What a result that came through a tool says of its cost counts only if the agent's program told nothing."""
        if reported and reported is not self._counted and self.usage == before:
            self._counted = reported
            self._log.hear(Spent(reported.usage))

    async def _patiently(self, text: str) -> Reply:
        """An interactive agent that takes too long is urged once; others have the attempt's own limit."""
        if self._job.task.mode is not Mode.interactive:
            return await self._conversation.send(text)
        limits = self._kit.settings.limits
        with anyio.move_on_after(limits.interactive):
            return await self._conversation.send(text)
        self.requests += 1
        with anyio.move_on_after(limits.urged):
            return await self._conversation.send(prompts.URGE)
        spent = limits.interactive + limits.urged
        message = f"{self._job.agent} was urged once and gave no result within {spent:g} s"
        return AgentFailure(kind=TroubleKind.timed_out, message=message)


async def insistently(request: Callable[[], Awaitable[Reply]], waits: Sequence[float]) -> Reply:
    """Asks a provider that is overloaded again, a little later each time."""
    for wait in waits:
        reply = await request()
        if not isinstance(reply, AgentFailure) or reaction(reply.kind) is not Reaction.insist:
            return reply
        await anyio.sleep(wait)
    return await request()


@asynccontextmanager
async def talk(job: Job, kit: Kit, workspace: Workspace) -> AsyncIterator[Talk]:
    """Opens the conversation, and closes it whatever happens; what was said is kept as a log."""
    log = _Log(job, kit)
    agent = kit.agent(job.agent)
    try:
        with kit.tools.admitting(job) as caller:
            assignment = _assignment(job, kit, workspace, caller)
            spawn = context.for_agent(kit, workspace, job, agent, assignment.environment)
            async with agent.open(assignment, spawn=spawn, watch=log.hear) as conversation:
                yield Talk(job, kit, conversation, workspace, caller, log)
    finally:
        log.write()


def _assignment(job: Job, kit: Kit, workspace: Workspace, caller: Caller) -> Assignment:
    task = job.task
    return Assignment(
        task=task.id,
        role=task.role,
        attempt=job.number,
        session=job.session,
        session_dir=job.session_dir,
        workspace=str(workspace.tree),
        result_path=str(workspace.result),
        schema=schema(task.role),
        permissions=kit.permissions(task.role),
        limit=job.limit,
        environment=kit.environment(workspace, job.agent),
        tools=caller.server,
        sandboxed=kit.sandbox is not None and not kit.sandbox.nests,
    )


class _Log:
    """The last part of what an agent said, without secrets, and all that it spent."""

    def __init__(self, job: Job, kit: Kit) -> None:
        self._job, self._kit = job, kit
        self._lines: deque[str] = deque()
        self._size = 0
        self.usage = Usage()
        self.denied: dict[str, None] = {}

    def hear(self, event: AgentEvent) -> None:
        match event:
            case Said(text):
                line = self._kit.redact(text)[:LINE]
                self._keep(line)
                self._kit.watch(self._job.task.id, Said(line))
            case PermissionAsked(what):
                wish = self._kit.redact(what)[:LINE]
                self._keep(f"[permission asked and denied] {wish}")
                if len(self.denied) < DENIALS:
                    self.denied[wish] = None
                self._kit.watch(self._job.task.id, PermissionAsked(wish))
            case Spent(usage):
                self.usage += usage
                self._kit.watch(self._job.task.id, event)

    def _keep(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > LOG_BYTES:
            self._size -= len(self._lines.popleft()) + 1

    def write(self) -> None:
        if self._lines:
            path = Path(self._job.session_dir) / "logs" / f"{self._job.task.id}-{self._job.number}.log"
            atomic_files.write(path, self._kit.redact("\n".join(self._lines) + "\n"))
