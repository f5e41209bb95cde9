"""A session whose tools are open, with a real journal, folder and server; and runs with the scripted agent."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.conftest import Repo

from iterdev.agents.contract import ToolServer
from iterdev.app.start import start
from iterdev.core.policy import Policy
from iterdev.core.request import Request, new_session, session_facts
from iterdev.core.session.events import AttemptStarted, TasksAdded
from iterdev.core.settings import Settings
from iterdev.core.types import Ending, SessionId, TaskId
from iterdev.engine.effects import Observer
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver, drive
from iterdev.engine.team_tools import TeamTools
from iterdev.execution.contract import Job
from iterdev.execution.tool_server.server import TeamToolServer
from iterdev.host.secrets import Redactor
from iterdev.store import session_log
from iterdev.store.journal import NAME, Journal
from iterdev.store.session_log import SessionLog
from iterdev.teams.development import pipelines
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT

NOW = 1_772_000_000.0
SECRET = "correct-horse-battery"
PATIENCE = 60.0
SCRIPT = """
[[rule]]
role = "developer"
say = ["half way", "the password is {secret}"]
write = {{ "greeting.txt" = "hello" }}
run = "{run}"
result = {{ findings = "greets" }}
"""


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
            shared_name=f"{self.log.session}@1",
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


class Runs:
    """A repository with a scripted agent, and one session that is to be run in it."""

    def __init__(self, repo: Repo, run: str) -> None:
        script = repo.home / "team.toml"
        script.write_text(SCRIPT.format(secret=SECRET, run=run))
        repo.write(
            "iterdev.toml",
            f"""
            [run]
            agent = "played"
            [project]
            test = "true"
            [agents.played]
            script = "{script}"
            """,
        )
        repo.commit("configure")
        self.repository = Repository(repo.path)
        request = Request(requirement="Add a greeting", pipeline=Pipeline.patch, auto=True)
        self.session: SessionId = start(self.repository, request)
        self.folder: Path = self.repository.folder(self.repository.state(self.session))

    def drive(self, observer: RunObserver | None = None, *observers: Observer) -> Ending:
        async def limited() -> Ending:
            with anyio.fail_after(PATIENCE):
                return await drive(self.repository, self.session, observer or RunObserver(), observers=observers)

        return anyio.run(limited)


@pytest.fixture
def environment(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    for name in ("HOME", "ITERDEV_HOME", "TMPDIR", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, repo.env[name])
    monkeypatch.setenv("GREETING_PASSWORD", SECRET)
    return repo
