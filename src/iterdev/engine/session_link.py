"""The link of attempts on this machine to their session: tools, documents, budgets, and the log of each agent."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from iterdev.agents.contract import AgentEvent, PermissionAsked, Said
from iterdev.core.limits import budget
from iterdev.core.results import Usage
from iterdev.core.types import TaskId
from iterdev.engine.tool_server.server import ToolDesk
from iterdev.execution.contract import Job, ToolAccess
from iterdev.store import atomic_files
from iterdev.store.session_log import SessionLog

LOG_BYTES = 256 * 1024
"""What is kept of an agent's log, at least; of a longer one, the end."""

Hear = Callable[[str, AgentEvent], None]


class LocalLink:
    def __init__(self, log: SessionLog, folder: Path, desk: ToolDesk, hear: Hear) -> None:
        self._log, self._folder, self._desk, self._hear = log, folder, desk, hear

    @asynccontextmanager
    async def tools(self, job: Job) -> AsyncIterator[ToolAccess]:
        with self._desk.admit(job) as access:
            yield access

    @asynccontextmanager
    async def documents(self, _: Job) -> AsyncIterator[Path]:
        yield self._folder

    async def objection(self, task: TaskId, spent: Usage) -> str:
        state = self._log.state
        before = state.tasks.progress[task].usage
        return budget.objection(state.policy, state.spending, task, before, spent)

    def said(self, task: TaskId, number: int, event: AgentEvent) -> None:
        match event:
            case Said(text):
                self._write(task, number, text)
            case PermissionAsked(what):
                self._write(task, number, f"[permission asked and denied] {what}")
            case _:
                pass
        self._hear(task, event)

    def _write(self, task: TaskId, number: int, line: str) -> None:
        """Appends while the agent speaks, so that other processes can follow; a very long log loses its beginning."""
        path = self._folder / "logs" / f"{task}-{number}.log"
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as file:
            file.write(line.encode("utf-8", "replace") + b"\n")
            size = file.tell()
        if size > 2 * LOG_BYTES:
            kept = path.read_bytes()[-LOG_BYTES:].partition(b"\n")[2]
            atomic_files.write(path, kept.decode("utf-8", "replace"))
