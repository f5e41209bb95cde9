"""The web page without a network: requests are given to the application as a server would give them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from urllib.parse import quote, unquote_to_bytes, urlencode

import msgspec
import pytest
from msgspec import Struct
from starlette.routing import Mount, Route
from starlette.types import Message
from tests.app.conftest import Sessions, sessions
from tests.conftest import repo

from iterdev.app.live.web_server import ActLog
from iterdev.surfaces.web.credentials import Credentials
from iterdev.surfaces.web.routes import Application
from iterdev.surfaces.web.watching import Watching

__all__ = ["repo", "sessions"]
PORT, TOKEN = 40123, "right" * 8
HOST, ORIGIN = f"127.0.0.1:{PORT}", f"http://127.0.0.1:{PORT}"
BEARER = {"authorization": f"Bearer {TOKEN}"}
ACTING = {"origin": ORIGIN, "x-iterdev": "1"}


class Answer(Struct, frozen=True, kw_only=True):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def document(self) -> dict[str, object]:
        found: dict[str, object] = msgspec.json.decode(self.body)
        return found


class Site:
    """The application, and a program that sends it requests."""

    def __init__(self, watching: Watching, log: ActLog, *, read_only: bool = False) -> None:
        self.watching, self.log = watching, log
        self.application = Application(watching, Credentials(TOKEN), log, port=PORT, read_only=read_only)

    def routes(self) -> Iterator[tuple[str, str]]:
        """Every method and address pattern that there is."""
        for route in self.application.routes:
            if isinstance(route, Mount):
                yield "GET", f"{route.path}/app.js"
            elif isinstance(route, Route):
                yield from ((method, route.path) for method in sorted((route.methods or set()) - {"HEAD"}))

    def request(self, method: str, path: str, *, headers: Mapping[str, str] = BEARER, body: bytes = b"") -> Answer:
        return asyncio.run(self.send(method, path, headers=headers, body=body))

    def get(self, path: str, headers: Mapping[str, str] = BEARER) -> Answer:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, fields: Mapping[str, object], headers: Mapping[str, str] = BEARER) -> Answer:
        return self.request("POST", path, headers={**headers, **ACTING}, body=urlencode(dict(fields)).encode())

    async def send(
        self, method: str, path: str, *, headers: Mapping[str, str] = BEARER, body: bytes = b"", most: int = 100
    ) -> Answer:
        """The answer to a request; of one that goes on without end, the first messages."""
        sent: list[Message] = []
        incoming = [{"type": "http.request", "body": body, "more_body": False}]
        gone = asyncio.Event()

        async def receive() -> Message:
            if incoming:
                return incoming.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)
            if len(sent) >= most:
                gone.set()

        await self.application.app(scope(method, path, headers, body), receive, send)
        first = sent[0]
        found = {name.decode(): value.decode("latin-1") for name, value in first["headers"]}
        return Answer(status=first["status"], headers=found, body=b"".join(one.get("body", b"") for one in sent[1:]))


def scope(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> dict[str, object]:
    """What a server makes of the first lines of a request."""
    raw, _, query = path.partition("?")
    named = {"host": HOST, "content-length": str(len(body)), **headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote_to_bytes(raw).decode("utf-8", "replace"),
        "raw_path": raw.encode("utf-8", "replace"),
        "root_path": "",
        "query_string": query.encode("utf-8", "replace"),
        "headers": [
            (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
            for name, value in named.items()
            if value is not None
        ],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", PORT),
        "state": {},
        "extensions": {},
    }


@pytest.fixture
def site(sessions: Sessions) -> Iterator[Site]:
    with closing(Watching(sessions.repo.path)) as watching:
        yield Site(watching, ActLog(sessions.repository))


def filled(pattern: str, **values: str) -> str:
    """An address of a pattern; what is not given is `x`."""
    path = pattern
    while "{" in path:
        before, _, rest = path.partition("{")
        name, _, after = rest.partition("}")
        path = f"{before}{quote(values.get(name, 'x'), safe='')}{after}"
    return path


Send = Callable[..., Awaitable[Answer]]
