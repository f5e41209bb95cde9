"""The server of the team's tools: an address on loopback, and a token for each attempt while it runs."""

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from anyio.to_thread import run_sync

from iterdev.agents.contract import ToolServer
from iterdev.core.collaboration.tool_schemas import TOOLS, ToolArguments
from iterdev.execution.contract import Job
from iterdev.execution.tool_server import http
from iterdev.execution.tool_server.access import AttemptAccess
from iterdev.host.processes import connections
from iterdev.host.processes.ancestry import ancestors, nearest_monitor
from iterdev.host.secrets import new_token
from iterdev.mcp import messages
from iterdev.mcp.server import Call, Server, answer
from iterdev.mcp.tools import ToolAnswer, as_json

PATH = "/mcp"
JSON = {"content-type": "application/json"}


class Tools(Protocol):
    async def used(self, caller: AttemptAccess, asked: ToolArguments) -> dict[str, object]:
        """Carries out a call of an agent, or raises CallRejected."""

    def warn(self, text: str) -> None: ...


class TeamToolServer:
    def __init__(self, tools: Tools, limits: http.Limits = http.Limits()) -> None:  # noqa: B008 - frozen
        self._tools, self._limits = tools, limits
        self._attempts: dict[bytes, AttemptAccess] = {}
        self._url = ""

    @contextmanager
    def access(self, job: Job) -> Iterator[AttemptAccess]:
        """Gives an attempt its token, which is invalid afterwards."""
        token = new_token()
        access = self._attempts[_digest(token)] = AttemptAccess(job, ToolServer(url=self._url, token=token))
        try:
            yield access
        finally:
            del self._attempts[_digest(token)]

    def rejection(self, head: http.Head) -> http.Response | None:
        if head.path != PATH:
            return http.Response(status=404)
        if self._attempt(head) is None:
            return http.Response(status=401, headers={"www-authenticate": "Bearer"})
        return None if head.method == "POST" else http.Response(status=405, headers={"allow": "POST"})

    async def respond(self, head: http.Head, body: bytes) -> http.Response:
        attempt = self._attempt(head)
        if attempt is None:
            return http.Response(status=401, headers={"www-authenticate": "Bearer"})
        if await run_sync(self._is_used_by_another, attempt, head.port):
            self._tools.warn(f"a program of another attempt used the token of {attempt.job.task.id}, and was refused")
            return http.Response(status=403)
        try:
            message = messages.read(body)
        except messages.InvalidMessage as error:
            return http.Response(status=400, headers=JSON, body=error.answer)
        said = await answer(message, Server(tools=TOOLS, use=partial(self._use, attempt)))
        return http.Response(status=202) if said is None else http.Response(status=200, headers=JSON, body=said)

    def _attempt(self, head: http.Head) -> AttemptAccess | None:
        scheme, _, token = head.caller.partition(" ")
        return self._attempts.get(_digest(token)) if scheme.lower() == "bearer" else None

    def _is_used_by_another(self, attempt: AttemptAccess, port: int) -> bool:
        """Whether a program of another attempt sent the request.

        Without a sandbox, an agent can read the token of another one from its environment. A program outside of every
        attempt may be a part of the agent that it started elsewhere, such as in a container.
        """
        socket = connections.socket_of_client(port, urlsplit(self._url).port or 0)
        if socket is None or socket in attempt.sockets:
            return False
        for pid in connections.processes_with(socket, attempt.monitors):
            if not attempt.monitors.isdisjoint(ancestors(pid)):
                attempt.sockets.add(socket)
                return False
            monitor = nearest_monitor(pid)
            others = set().union(*(other.monitors for other in self._attempts.values()))
            # The monitors of an attempt on another machine are not known.
            return monitor is not None and (bool(attempt.monitors) or monitor.pid in others)
        return False

    async def _use(self, attempt: AttemptAccess, asked: ToolArguments, _: Call) -> ToolAnswer:
        return as_json(await self._tools.used(attempt, asked))

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        async with http.serving(self, self._limits) as address:
            self._url = address + PATH
            yield


def _digest(token: str) -> bytes:
    """Looked up instead of the token, so that the time of the lookup reveals nothing about a token."""
    return hashlib.sha256(token.encode()).digest()
