"""Every request passes here first: whose page sent it, and who is logged in. Every response gets the same headers.

A page on the Internet can have a browser send requests to this machine, and a name can be made to mean 127.0.0.1.
So a request is refused unless its Host, its Origin and its Sec-Fetch-Site say that it comes from this page itself.
"""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from iterdev.surfaces.web.credentials import Credentials, Locked

HEADER = "x-iterdev"
"""A form of another site cannot set a header."""
MOST_BODY = 1_000_000
MOST_HEADER = 16 * 1024
"""Bytes of an address and its headers. The server reads no further either, but may have got more at once."""
SAFE = frozenset({"GET", "HEAD"})
STATIC = "/static/"
HOME, LOGIN = "/", "/login"
BROWSER = "iterdev.browser"
"""Where the scope has the name of the browser that is logged in."""
BEARER = "bearer"

SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Refused(Struct, frozen=True):
    status: HTTPStatus
    why: str


def own_hosts(port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """What a browser that was told our address sends as Host."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]", *map(str.lower, names)))


class Guard:
    def __init__(self, app: ASGIApp, *, hosts: frozenset[str], cookie: str, credentials: Credentials) -> None:
        self._app, self._hosts, self._cookie, self._credentials = app, hosts, cookie, credentials
        self._origins = frozenset(f"http://{host}" for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        refused = self._refused(scope)
        app: ASGIApp = self._app
        if refused:
            app = _response(refused)
        await app(scope, receive, send_guarded)

    def _refused(self, scope: Scope) -> Refused | None:
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        if _size(scope) > MOST_HEADER:
            return Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long")
        foreign = self._foreign(headers, method, path)
        if foreign:
            return foreign
        if method not in SAFE:
            if headers.get(HEADER) != "1":
                return Refused(HTTPStatus.FORBIDDEN, f"the header {HEADER} is missing")
            length = headers.get("content-length", "0")
            if not length.isdecimal() or len(length) > len(str(MOST_BODY)) or int(length) > MOST_BODY:
                return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large")
        try:
            scope[BROWSER] = self._browser(headers)
        except Locked:
            return Refused(HTTPStatus.TOO_MANY_REQUESTS, "too many wrong tokens; wait a minute")
        # The first page logs in, so it has to be there for everybody; without a cookie it shows nothing else.
        is_public = path.startswith(STATIC) or (path == HOME and method in SAFE) or path == LOGIN
        if scope[BROWSER] is None and not is_public:
            return Refused(HTTPStatus.UNAUTHORIZED, "not logged in: open the address that `iterdev web` printed")
        return None

    def _foreign(self, headers: Headers, method: str, path: str) -> Refused | None:
        if headers.getlist("host") != [headers.get("host")] or headers.get("host", "").lower() not in self._hosts:
            return Refused(HTTPStatus.MISDIRECTED_REQUEST, "this server is not known by that name")
        origin = headers.get("origin")
        if origin is None and method not in SAFE:
            return Refused(HTTPStatus.FORBIDDEN, "the request does not say where it comes from")
        if origin is not None and origin.lower() not in self._origins:
            return Refused(HTTPStatus.FORBIDDEN, "the request comes from another site")
        navigates_home = path == HOME and method in SAFE and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in {"same-origin", "none"} and not navigates_home:
            return Refused(HTTPStatus.FORBIDDEN, "the request comes from another site")
        return None

    def _browser(self, headers: Headers) -> str | None:
        """Who is logged in; a program that sends a token needs no cookie, so cookies are ignored."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == BEARER:
            return BEARER if self._credentials.is_token(token.strip()) else None
        cookie = _cookie(headers, self._cookie)
        return self._credentials.browser_of(cookie) if cookie else None


def _size(scope: Scope) -> int:
    named = sum(len(name) + len(value) for name, value in scope["headers"])
    return named + len(scope["path"]) + len(scope["query_string"])


def _cookie(headers: Headers, name: str) -> str:
    # Other servers on this machine share the cookies of 127.0.0.1, and theirs may not be well-formed.
    for part in headers.get("cookie", "").split(";"):
        try:
            found = SimpleCookie(part.strip()).get(name)
        except CookieError:
            continue
        if found:
            return found.value
    return ""


def _response(refused: Refused) -> Response:
    return PlainTextResponse(f"{refused.why}\n", status_code=refused.status)
