"""The server of the team's tools: an address on loopback, and a token for each attempt while it runs."""

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from anyio.to_thread import run_sync

from iterdev.agents.contract import ToolServer
from iterdev.core.collaboration.tool_schemas import TOOLS, Board, ToolArguments
from iterdev.engine.team_tools import AttemptAccess, Document, TeamTools
from iterdev.engine.tool_server import http, mcp
from iterdev.execution.contract import Job
from iterdev.host.secrets import new_token

PATH = "/mcp"
JSON = {"content-type": "application/json"}


class TeamToolServer:
    def __init__(self, tools: TeamTools, limits: http.Limits = http.Limits()) -> None:  # noqa: B008 - frozen
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
        try:
            answer = await mcp.answer(body, TOOLS, partial(self._use, attempt))
        except mcp.InvalidMessage as error:
            return http.Response(status=400, headers=JSON, body=error.answer)
        return http.Response(status=202) if answer is None else http.Response(status=200, headers=JSON, body=answer)

    def _attempt(self, head: http.Head) -> AttemptAccess | None:
        scheme, _, token = head.caller.partition(" ")
        return self._attempts.get(_digest(token)) if scheme.lower() == "bearer" else None

    async def _use(self, attempt: AttemptAccess, asked: ToolArguments) -> Document:
        if isinstance(asked, Board):
            # Several processes may write to the file of discoveries, so this may take a while.
            return await run_sync(partial(self._tools.use, attempt, asked))
        return self._tools.use(attempt, asked)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        async with http.serving(self, self._limits) as address:
            self._url = address + PATH
            yield


def _digest(token: str) -> bytes:
    """Looked up instead of the token, so that the time of the lookup reveals nothing about a token."""
    return hashlib.sha256(token.encode()).digest()
