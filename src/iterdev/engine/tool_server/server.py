"""The server of the team's tools: an address on loopback, and a token for each attempt while it runs."""

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from anyio.to_thread import run_sync

from iterdev.agents.contract import ToolServer
from iterdev.core.collaboration.tool_schemas import Board, ToolArguments
from iterdev.engine.team_tools import Caller, Document, TeamTools
from iterdev.engine.tool_server import http, mcp
from iterdev.execution.contract import Job
from iterdev.host.secrets import new_token

PATH = "/mcp"
JSON = {"content-type": "application/json"}


class ToolDesk:
    """Admits attempts to the tools."""

    def __init__(self, tools: TeamTools) -> None:
        self._tools = tools
        self._callers: dict[bytes, Caller] = {}
        self._url = ""

    @contextmanager
    def admit(self, job: Job) -> Iterator[Caller]:
        """Gives an attempt its token, which is invalid afterwards."""
        token = new_token()
        caller = Caller(job, ToolServer(url=self._url, token=token))
        self._callers[_digest(token)] = caller
        try:
            yield caller
        finally:
            del self._callers[_digest(token)]

    async def respond(self, request: http.Request) -> http.Response:
        if request.path != PATH:
            return http.Response(status=404)
        caller = self._caller(request.headers.get("authorization", ""))
        if caller is None:
            return http.Response(status=401, headers={"www-authenticate": "Bearer"})
        if request.method != "POST":
            return http.Response(status=405, headers={"allow": "POST"})
        try:
            answer = await mcp.answer(request.body, partial(self._use, caller))
        except mcp.Unreadable as error:
            return http.Response(status=400, headers=JSON, body=error.answer)
        return http.Response(status=202) if answer is None else http.Response(status=200, headers=JSON, body=answer)

    async def _use(self, caller: Caller, asked: ToolArguments) -> Document:
        if isinstance(asked, Board):
            # The board is a file that many may write to, so this may take a while.
            return await run_sync(partial(self._tools.use, caller, asked))
        return self._tools.use(caller, asked)

    def _caller(self, authorization: str) -> Caller | None:
        scheme, _, token = authorization.partition(" ")
        return self._callers.get(_digest(token)) if scheme.lower() == "bearer" else None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        async with http.serving(self.respond) as address:
            self._url = address + PATH
            yield


def _digest(token: str) -> bytes:
    """Looked up instead of the token, so that the time it takes tells nothing about one."""
    return hashlib.sha256(token.encode()).digest()
