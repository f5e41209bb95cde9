"""The real server on its standard streams, and the client of the protocol's own SDK, which judges it."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import anyio
import mcp_types
import pytest
from mcp.client import Client, ClientExtension, ClientSession, ResultClaim
from mcp.client.extension import ClaimContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, Result, TextContent
from pydantic import ConfigDict, Field
from tests.clis import pids_with
from tests.conftest import Repo
from tests.e2e.conftest import PATIENCE

TASKS = "io.modelcontextprotocol/tasks"
ERAS = ("legacy", "auto", "2026-07-28")
"""The handshake, the newest that both know, and the revision without a handshake."""


class Task(Result):
    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = Field(default="task", alias="resultType")
    task_id: str = Field(alias="taskId")
    status: str


class TaskState(Result):
    """What `tasks/get` says."""

    model_config = ConfigDict(extra="allow")


class TaskRequest(mcp_types.Request[Any, str]):
    method: str
    params: Any


async def ask_task(session: ClientSession, method: str, task: str, **more: object) -> dict[str, Any]:
    """A request of the tasks extension, sent by the SDK."""
    request = TaskRequest(method=method, params={"taskId": task, **more})
    answered = await session.send_request(request, TaskState)
    return answered.model_dump(by_alias=True)


class TasksExtension(ClientExtension):
    """A client that waits for tasks, and gives the same answer to all of their questions."""

    identifier = TASKS

    def __init__(self, choice: str = "approve") -> None:
        self.choice = choice
        self.states: list[dict[str, Any]] = []

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=Task, resolve=self._resolve)]

    async def _resolve(self, task: Task, context: ClaimContext) -> CallToolResult:
        with anyio.fail_after(PATIENCE):
            while True:
                state = await ask_task(context.session, "tasks/get", task.task_id)
                self.states.append(state)
                if state["status"] == "completed":
                    return CallToolResult.model_validate(state["result"])
                if state["status"] == "input_required":
                    said = {"action": "accept", "content": {"choice": self.choice}}
                    responses = dict.fromkeys(state["inputRequests"], said)
                    await ask_task(context.session, "tasks/update", task.task_id, inputResponses=responses)
                await anyio.sleep(0.1)


class Office:
    """A repository, and the clients that work in it."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo

    @asynccontextmanager
    async def client(self, era: str = "auto", **options: object) -> AsyncIterator[Client]:
        command, *arguments = self.repo.command("mcp")
        server = StdioServerParameters(command=command, args=arguments, cwd=self.repo.path, env=self.repo.env)
        async with Client(stdio_client(server), mode=era, **options) as client:
            yield client


@pytest.fixture
def office(repo: Repo) -> Iterator[Office]:
    yield Office(repo)
    for pid in pids_with(str(repo.home)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


async def state_after(client: Client, task: str, *before: str) -> dict[str, Any]:
    """The first state of a task that is none of those."""
    with anyio.fail_after(PATIENCE):
        while True:
            state = await ask_task(client.session, "tasks/get", task)
            if state["status"] not in before:
                return state
            await anyio.sleep(0.1)
