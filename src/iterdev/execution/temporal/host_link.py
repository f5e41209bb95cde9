"""The link of an attempt on a host to its session: tools and budgets are asked of the engine through the server."""

from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

import msgspec
from temporalio.client import ActivityFailureError, Client
from temporalio.common import RetryPolicy
from temporalio.service import RPCError

from iterdev.agents.contract import AgentEvent, PermissionAsked, Said, Spent
from iterdev.core.collaboration.tool_schemas import TOOLS, ReportResult, ToolArguments
from iterdev.core.results import Discovery, Usage
from iterdev.core.types import TaskId
from iterdev.execution.contract import Job, ToolAccess
from iterdev.execution.temporal.names import CALL, session_queue
from iterdev.execution.tool_server.access import AttemptAccess
from iterdev.execution.tool_server.server import TeamToolServer
from iterdev.execution.wire_format import (
    LINES,
    Answer,
    BudgetQuestion,
    Call,
    Heartbeat,
    ToolUse,
    decode,
    encode,
    heartbeat_of,
)
from iterdev.host.git import commits
from iterdev.host.secrets import Redactor
from iterdev.host.threads import in_thread
from iterdev.mcp.tools import CallRejected
from iterdev.store.session_folder import discoveries

PATIENCE = timedelta(seconds=30)
"""For the answer of an engine."""
AWAY = "The team cannot be reached now. Go on without it; what you asked for was not done."
LOG_BYTES = 256 * 1024
MOST_DISCOVERIES = 200


class Progress:
    """What an attempt has said and spent so far."""

    def __init__(self) -> None:
        self.usage, self.requests, self.said = Usage(), 0, 0
        self._lines: deque[str] = deque()
        self._bytes = 0

    def add(self, line: str) -> None:
        self.said += 1
        self._lines.append(line)
        self._bytes += len(line.encode("utf-8", "replace")) + 1
        while self._bytes > LOG_BYTES and len(self._lines) > LINES:
            self._bytes -= len(self._lines.popleft().encode("utf-8", "replace")) + 1

    @property
    def log(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def heartbeat(self, host: str) -> Heartbeat:
        last = list(self._lines)[-LINES:]
        return heartbeat_of(host, self.requests, self.usage, last, count=self.said)


class HostLink:
    def __init__(self, client: Client, job: Job, documents: str, folder: Path) -> None:
        """`documents` is the commit with the documents of the session, `folder` where they are put."""
        self._client, self._job = client, job
        self._documents, self._folder = documents, folder / uuid4().hex
        self.mirror = folder
        self.progress = Progress()
        self.made: list[str] = []
        self.problems: list[str] = []
        self.discoveries: tuple[Discovery, ...] = ()
        self.redact = Redactor([])

    @asynccontextmanager
    async def tools(self, job: Job) -> AsyncIterator[ToolAccess]:
        server = TeamToolServer(self)
        async with server.opened():
            with server.access(job) as access:
                yield access

    async def used(self, caller: AttemptAccess, asked: ToolArguments) -> dict[str, object]:
        """A result is taken here, and all else by the engine."""
        if isinstance(asked, ReportResult):
            return caller.report(asked.result, self.redact)
        return dict(await self.use_tool(self._job, asked))

    def warn(self, text: str) -> None:
        self.problems.append(text)

    async def use_tool(self, _: Job, asked: ToolArguments) -> Mapping[str, object]:
        tool = next(one.name for one in TOOLS if isinstance(asked, one.arguments))
        arguments = self.redact.everywhere(msgspec.to_builtins(asked))
        answer = await self._ask(ToolUse(tool=tool, arguments=msgspec.convert(arguments, dict[str, object])))
        if answer is None:
            raise CallRejected(AWAY)
        if answer.error:
            raise CallRejected(answer.error)
        return answer.content

    @asynccontextmanager
    async def documents(self, _: Job) -> AsyncIterator[Path]:
        rmtree(self._folder, ignore_errors=True)
        if self._documents:
            await in_thread(commits.copy_files, self.mirror, self._documents, self._folder)
        board = self._folder / discoveries.NAME
        self._folder.mkdir(parents=True, exist_ok=True)
        board.touch()
        known = {line.identity for line in discoveries.read(board)}
        try:
            yield self._folder
        finally:
            added = (line for line in discoveries.read(board) if line.identity not in known)
            found = [Discovery(line.type, line.data) for line in added][:MOST_DISCOVERIES]
            self.discoveries += tuple(self.redact.struct(one) for one in found)
            rmtree(self._folder, ignore_errors=True)

    async def objection(self, _: TaskId, spent: Usage) -> str:
        allowance, why = self._job.allowance, ""
        if allowance.is_limited:
            answer = await self._ask(BudgetQuestion(spent=spent))
            why = allowance.objection(spent) if answer is None else answer.error or str(answer.content["objection"])
        self.progress.requests += not why
        return why

    def environment_made(self, made: Sequence[str], problems: Sequence[str]) -> None:
        self.made += made
        self.problems += problems

    def said(self, _task: TaskId, _number: int, event: AgentEvent) -> None:
        match event:
            case Said(text):
                self.progress.add(text)
            case PermissionAsked(what):
                self.progress.add(f"[permission asked and denied] {what}")
            case Spent(usage):
                self.progress.usage += usage

    async def _ask(self, question: ToolUse | BudgetQuestion) -> Answer | None:
        """The engine's answer; None if it does not answer in time."""
        job = self._job
        call = Call(session=job.session, task=job.task.id, fence=job.fence, question=question)
        try:
            data: bytes = await self._client.execute_activity(
                CALL,
                encode(call),
                id=f"{job.shared_name}/{job.task.id}/{job.fence}/{uuid4().hex}",
                task_queue=session_queue(job.shared_name),
                schedule_to_close_timeout=PATIENCE,
                retry_policy=RetryPolicy(maximum_attempts=1),
                result_type=bytes,
            )
            return decode(data, Answer)
        except (ActivityFailureError, RPCError):
            return None
