"""The link of attempts on this machine to their session: tools, documents, budgets, and the log of each agent."""

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from iterdev.agents.contract import AgentEvent, PermissionAsked, Said, ToolServer
from iterdev.core.collaboration.tool_schemas import ToolArguments
from iterdev.core.ids import moment
from iterdev.core.limits import budget
from iterdev.core.results import Usage
from iterdev.core.types import TaskId
from iterdev.engine.team_tools import TeamTools
from iterdev.execution.contract import Job, ToolAccess
from iterdev.execution.tool_server.access import AttemptAccess
from iterdev.execution.tool_server.server import TeamToolServer
from iterdev.host import clock
from iterdev.store import atomic_files
from iterdev.store.session_log import SessionLog

LOG_BYTES = 256 * 1024
"""What is kept of an agent's log; of a longer one, the end."""


class AgentLog:
    """Appends each line at once, with the time, so that other processes can follow."""

    def __init__(self, path: Path, now: Callable[[], float] = clock.now) -> None:
        path.parent.mkdir(exist_ok=True)
        self._path, self._now = path, now
        self._file = os.fdopen(atomic_files.open_to_write(path, os.O_WRONLY | os.O_APPEND, 0o600), "ab", buffering=0)

    def write(self, text: str) -> None:
        at = moment(self._now())
        lines = "".join(f"{at} {line}\n" for line in text.splitlines() or [""])
        self._file.write(lines.encode("utf-8", "replace"))
        self._cut_above(2 * LOG_BYTES)

    def close(self) -> None:
        self._cut_above(LOG_BYTES)
        self._file.close()

    def _cut_above(self, size: int) -> None:
        """Drops the beginning of a file that is larger."""
        if self._file.tell() > size:
            kept = self._path.read_bytes()[-LOG_BYTES:].partition(b"\n")[2]
            self._file.truncate(0)
            self._file.write(kept)


class LocalLink:
    def __init__(
        self,
        log: SessionLog,
        folder: Path,
        tools: TeamTools,
        server: TeamToolServer,
        output: Callable[[str, str], None],
        environment_made: Callable[[Sequence[str], Sequence[str]], None],
    ) -> None:
        self._log, self._folder, self._output = log, folder, output
        self._tools, self._server = tools, server
        self.environment_made = environment_made
        self._logs: dict[tuple[TaskId, int], AgentLog] = {}

    @asynccontextmanager
    async def tools(self, job: Job) -> AsyncIterator[ToolAccess]:
        with self._server.access(job) as access:
            yield access

    async def use_tool(self, job: Job, asked: ToolArguments) -> Mapping[str, object]:
        """For an attempt elsewhere, which has no token here."""
        return await self._tools.used(AttemptAccess(job, ToolServer(url="", token="")), asked)

    @asynccontextmanager
    async def documents(self, job: Job) -> AsyncIterator[Path]:
        try:
            yield self._folder
        finally:
            if log := self._logs.pop((job.task.id, job.number), None):
                log.close()

    async def objection(self, task: TaskId, spent: Usage) -> str:
        state = self._log.state
        before = state.tasks.progress[task].usage
        return budget.objection(state.policy, state.spending, task, before, spent)

    def said(self, task: TaskId, number: int, event: AgentEvent) -> None:
        match event:
            case Said(text):
                self._log_of(task, number).write(text)
                if shown := text.strip():
                    self._output(task, shown)
            case PermissionAsked(what):
                self._log_of(task, number).write(f"[permission asked and denied] {what}")
            case _:
                pass

    def _log_of(self, task: TaskId, number: int) -> AgentLog:
        key = task, number
        if key not in self._logs:
            self._logs[key] = AgentLog(self._folder / "logs" / f"{task}-{number}.log")
        return self._logs[key]
