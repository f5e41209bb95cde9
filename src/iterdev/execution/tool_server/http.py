"""HTTP on loopback, for programs that iterdev itself started: one listener, and one response to each request.

It rejects everything that a web page could make a browser send, and does not interpret the requests. Every user of the
machine can connect, so the number of connections, the time of each and the size of a request have limits.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Protocol, cast

import anyio
import h11
from anyio.abc import ByteStream, SocketAttribute, SocketListener
from msgspec import Struct

ADDRESS = "127.0.0.1"
BODY_LIMIT = 4 * 1024 * 1024
REJECTED_BODY_LIMIT = 64 * 1024
"""Bytes that are read of a request that is rejected; a client that sends them all sees the response."""
RETRY = 0.1
"""Seconds until the next connection is accepted when the process has no file descriptor left."""


class Limits(Struct, frozen=True, kw_only=True):
    connections: int = 256
    """Open at once: a process may often have 1,024 files, and 100 agents at work take 400 of them."""
    per_caller: int = 32
    stranger: float = 30
    """Seconds for the first request that is not rejected."""
    idle: float = 600
    """Seconds between two requests of a caller; clients connect again by themselves."""
    transfer: float = 60
    """Seconds for the body of a request, and for the response."""


class Head(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    headers: Mapping[str, str]
    """By their names in lower case."""
    port: int = 0
    """That of the client, on the same machine."""

    @property
    def caller(self) -> str:
        return self.headers.get("authorization", "")


class Response(Struct, frozen=True, kw_only=True):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Service(Protocol):
    def rejection(self, head: Head) -> Response | None:
        """The response to a request whose body does not matter; it is decided before the body is read."""

    async def respond(self, head: Head, body: bytes) -> Response: ...


@asynccontextmanager
async def serving(service: Service, limits: Limits = Limits()) -> AsyncIterator[str]:  # noqa: B008 - frozen
    """Serves requests at the address that it yields; leaving the context closes every connection at once."""
    listener = await anyio.create_tcp_listener(local_host=ADDRESS, local_port=0)
    host = f"{ADDRESS}:{listener.extra(SocketAttribute.local_port)}"  # noqa: S610 - this is no query
    connections = _Connections(limits)
    async with listener, anyio.create_task_group() as group:

        async def accept() -> None:
            socket = cast("SocketListener", listener.listeners[0])
            while True:
                try:
                    stream = await socket.accept()
                except OSError:
                    await anyio.sleep(RETRY)
                    continue
                group.start_soon(_Connection(stream, host, service, connections).serve)

        group.start_soon(accept)
        try:
            yield f"http://{host}"
        finally:
            group.cancel_scope.cancel()


class _Connections:
    """The open connections, those that have been silent longest first."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._open: dict[_Connection, None] = {}

    @contextmanager
    def opened(self, connection: "_Connection") -> Iterator[None]:
        if len(self._open) >= self.limits.connections:
            self._close_one(list(self._open))
        self._open[connection] = None
        try:
            yield
        finally:
            self._open.pop(connection, None)

    def heard(self, connection: "_Connection") -> None:
        self._open[connection] = self._open.pop(connection, None)
        others = [other for other in self._open if other.caller == connection.caller]
        if len(others) > self.limits.per_caller:
            self._close_one(others)

    def _close_one(self, candidates: "list[_Connection]") -> None:
        """One that never had a right to be here, or else one that waits for nothing, or else the oldest."""
        chosen = min(candidates, key=lambda one: (one.caller != "", one.is_busy))
        self._open.pop(chosen, None)
        chosen.scope.cancel()


class _Connection:
    caller = ""
    """Whose requests came over it, once one was not rejected."""
    is_busy = False
    """Whether a request is being read or answered."""

    def __init__(self, stream: ByteStream, host: str, service: Service, connections: _Connections) -> None:
        self._stream, self._host, self._service, self._connections = stream, host, service, connections
        self._http = h11.Connection(h11.SERVER)
        self.scope = anyio.CancelScope()

    async def serve(self) -> None:
        # A client may leave at any time, in the middle of a request too.
        with (
            self._connections.opened(self),
            suppress(anyio.BrokenResourceError, anyio.ClosedResourceError),
            self.scope,
        ):
            async with self._stream:
                while await self._serve_request():
                    self._http.start_next_cycle()

    async def _serve_request(self) -> bool:
        """Responds to a request; True if another one may follow."""
        limits, self.is_busy = self._connections.limits, False
        try:
            with anyio.move_on_after(limits.idle if self.caller else limits.stranger) as waiting:
                head = await self._head()
            if waiting.cancelled_caught or head is None:
                return False
            with anyio.move_on_after(limits.transfer) as reading:
                response = await self._response(head)
            if reading.cancelled_caught or response is None:
                return False
        except h11.RemoteProtocolError as error:
            response = Response(status=error.error_status_hint, headers={"connection": "close"})
        with anyio.move_on_after(limits.transfer) as writing:
            await self._send(response)
        done = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        return done and not writing.cancelled_caught

    async def _head(self) -> Head | None:
        event = await self._event()
        if not isinstance(event, h11.Request):
            return None
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
        if _is_foreign(headers, self._host):
            raise h11.RemoteProtocolError("a web page may have sent it", error_status_hint=403)
        path = event.target.decode("ascii").partition("?")[0]
        port = self._stream.extra(SocketAttribute.remote_port, 0)  # noqa: S610 - this is no query
        return Head(method=event.method.decode("ascii"), path=path, headers=headers, port=port)

    async def _response(self, head: Head) -> Response | None:
        if rejection := self._service.rejection(head):
            complete = await self._body(REJECTED_BODY_LIMIT, rejection.status) is not None
            return rejection if complete else None
        self.caller, self.is_busy = head.caller, True
        self._connections.heard(self)
        body = await self._body(BODY_LIMIT, 413)
        return None if body is None else await self._service.respond(head, body)

    async def _body(self, limit: int, status: int) -> bytes | None:
        """The body of a request; a larger one is answered with this status, and the connection is closed."""
        body = bytearray()
        while isinstance(part := await self._event(), h11.Data):
            body += part.data
            if len(body) > limit:
                raise h11.RemoteProtocolError("the body is too large", error_status_hint=status)
        return bytes(body) if isinstance(part, h11.EndOfMessage) else None

    async def _event(self) -> h11.Event | type[h11.PAUSED] | type[h11.NEED_DATA]:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._write(h11.InformationalResponse(status_code=100, headers=[]))
            try:
                self._http.receive_data(await self._stream.receive())
            except anyio.EndOfStream:
                self._http.receive_data(b"")
        return event

    async def _send(self, response: Response) -> None:
        if self._http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            return
        headers = {"content-length": str(len(response.body)), **response.headers}
        await self._write(
            h11.Response(status_code=response.status, headers=list(headers.items())),
            h11.Data(data=response.body),
            h11.EndOfMessage(),
        )

    async def _write(self, *events: h11.Event) -> None:
        data = [self._http.send(event) for event in events]
        await self._stream.send(b"".join(part for part in data if part))


def _is_foreign(headers: Mapping[str, str], host: str) -> bool:
    """Whether a web page may have sent the request: by another name for this address, or from another origin."""
    own = {host, host.replace(ADDRESS, "localhost")}
    origin = headers.get("origin")
    return headers.get("host") not in own or (origin is not None and origin not in {f"http://{name}" for name in own})
