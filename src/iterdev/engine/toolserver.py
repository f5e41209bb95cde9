"""Where agents find the tools of the team: an address on loopback, and a token for each attempt while it runs."""

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from iterdev.agents.contract import ToolServer
from iterdev.engine import mcp
from iterdev.engine.jobs import Job
from iterdev.engine.tools import Caller, Tools
from iterdev.host import web
from iterdev.host.secrets import new_token

PATH = "/mcp"
JSON = {"content-type": "application/json"}


class ToolDesk:
    """Knows who may use the tools now."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._callers: dict[bytes, Caller] = {}
        self._url = ""

    @contextmanager
    def admitting(self, job: Job) -> Iterator[Caller]:
        """Gives an attempt its token, which is worth nothing afterwards."""
        token = new_token()
        caller = Caller(job, ToolServer(url=self._url, token=token))
        self._callers[_digest(token)] = caller
        try:
            yield caller
        finally:
            del self._callers[_digest(token)]

    async def respond(self, request: web.Request) -> web.Response:
        if request.path != PATH:
            return web.Response(status=404)
        caller = self._caller(request.headers.get("authorization", ""))
        if caller is None:
            return web.Response(status=401, headers={"www-authenticate": "Bearer"})
        if request.method != "POST":
            return web.Response(status=405, headers={"allow": "POST"})
        try:
            answer = await mcp.answer(request.body, partial(self._tools.use, caller))
        except mcp.Unreadable as error:
            return web.Response(status=400, headers=JSON, body=error.answer)
        return web.Response(status=202) if answer is None else web.Response(status=200, headers=JSON, body=answer)

    def _caller(self, authorization: str) -> Caller | None:
        scheme, _, token = authorization.partition(" ")
        return self._callers.get(_digest(token)) if scheme.lower() == "bearer" else None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        async with web.serving(self.respond) as address:
            self._url = address + PATH
            yield


def _digest(token: str) -> bytes:
    """Looked up instead of the token, so that the time it takes tells nothing about one."""
    return hashlib.sha256(token.encode()).digest()
