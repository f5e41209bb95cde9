"""A session whose tools are open: a real journal, a real folder, and a real server on loopback."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from iterdev.agents.contract import ToolServer
from iterdev.core.policy import Policy
from iterdev.core.request import Request, new_session, session_facts
from iterdev.core.session.events import AttemptStarted, TasksAdded
from iterdev.core.settings import Settings
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.team_tools import TeamTools
from iterdev.engine.tool_server.server import TeamToolServer
from iterdev.execution.contract import Job
from iterdev.host.secrets import Redactor
from iterdev.store import session_log
from iterdev.store.journal import NAME, Journal
from iterdev.store.session_log import SessionLog
from iterdev.teams.development import pipelines
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT

NOW = 1_772_000_000.0
SECRET = "correct-horse-battery"


class Office:
    """A sprint under way, and the tools of its agents."""

    def __init__(self, top: Path) -> None:
        self.journal = Journal(top / NAME)
        self.folder = top / "session"
        self.folder.mkdir()
        name = SessionId("ids-add-a-greeting-20260225")
        request = Request(requirement="Add a greeting", pipeline=Pipeline.sprint)
        session = session_facts(
            request, team=DEVELOPMENT.name, name=name, base="b" * 40, branch="main", agents={}, by_hand=False
        )
        events = new_session(session, Policy(), DEVELOPMENT.started(request, Settings(), {}))
        session_log.create(self.journal, events, at=NOW)
        self.log = SessionLog(self.journal, name, now=lambda: NOW)
        state = self.log.state
        self.log.record(TasksAdded(pipelines.first_tasks(Pipeline.sprint, state.scope, state.session.engine)))
        self.changes = 0
        tools = TeamTools(self.log, self.folder, redact=Redactor([SECRET]), changed=self.change)
        self.server = TeamToolServer(tools)

    def change(self) -> None:
        self.changes += 1

    def job(self, task: str = "DEV-001") -> Job:
        """An attempt that has just been started."""
        name = TaskId(task)
        if name not in self.log.state.attempts.running:
            self.log.record(AttemptStarted(name, 1, "mine", "b" * 40))
        row = self.log.state.tasks.plan[name]
        return Job(
            session=self.log.session,
            task=row,
            role=DEVELOPMENT.roles[row.role],
            number=1,
            agent="mine",
            settings=Settings(),
            base="b" * 40,
            session_base="b" * 40,
            prompt="Do it.",
            schema=DEVELOPMENT.result_schema(row.role),
            limit=60,
        )


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    office = Office(tmp_path)
    yield office
    office.journal.close()


@asynccontextmanager
async def client_of(server: ToolServer) -> AsyncIterator[Client]:
    """The client of the protocol's own SDK, as an agent with this token."""
    headers = {"Authorization": f"Bearer {server.token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(server.url, http_client=http)) as client,
    ):
        yield client
