"""HTTP on loopback, for programs that iterdev itself started: one listener, and one response to each request.

It rejects everything that a web page could make a browser send, and does not interpret the requests.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import anyio
import h11
from anyio.abc import ByteStream, SocketAttribute
from msgspec import Struct

ADDRESS = "127.0.0.1"
BODY_LIMIT = 4 * 1024 * 1024


class Request(Struct, frozen=True, kw_only=True):
    method: str
    path: str
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes
    port: int = 0
    """That of the client, on the same machine."""


class Response(Struct, frozen=True, kw_only=True):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


Respond = Callable[[Request], Awaitable[Response]]


@asynccontextmanager
async def serving(respond: Respond) -> AsyncIterator[str]:
    """Serves requests at the address that it yields; leaving the context closes every connection at once."""
    listener = await anyio.create_tcp_listener(local_host=ADDRESS, local_port=0)
    host = f"{ADDRESS}:{listener.extra(SocketAttribute.local_port)}"  # noqa: S610 - this is no query
    async with listener, anyio.create_task_group() as group:

        async def connected(stream: ByteStream) -> None:
            async with stream:
                await _Connection(stream, host, respond).serve()

        group.start_soon(listener.serve, connected)
        try:
            yield f"http://{host}"
        finally:
            group.cancel_scope.cancel()


class _Connection:
    def __init__(self, stream: ByteStream, host: str, respond: Respond) -> None:
        self._stream, self._host, self._respond = stream, host, respond
        self._http = h11.Connection(h11.SERVER)

    async def serve(self) -> None:
        # A client may leave at any time, in the middle of a request too.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while await self._serve_request():
                self._http.start_next_cycle()

    async def _serve_request(self) -> bool:
        """Responds to a request; True if another one may follow."""
        try:
            request = await self._request()
            if request is None:
                return False
            await self._send(await self._respond(request))
        except h11.RemoteProtocolError as error:
            await self._send(Response(status=error.error_status_hint, headers={"connection": "close"}))
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _request(self) -> Request | None:
        head = await self._event()
        if not isinstance(head, h11.Request):
            return None
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
        if _is_foreign(headers, self._host):
            raise h11.RemoteProtocolError("a web page may have sent it", error_status_hint=403)
        body = bytearray()
        while isinstance(part := await self._event(), h11.Data):
            body += part.data
            if len(body) > BODY_LIMIT:
                raise h11.RemoteProtocolError("the body is too large", error_status_hint=413)
        if not isinstance(part, h11.EndOfMessage):
            return None
        path = head.target.decode("ascii").partition("?")[0]
        port = self._stream.extra(SocketAttribute.remote_port, 0)  # noqa: S610 - as above
        return Request(method=head.method.decode("ascii"), path=path, headers=headers, body=bytes(body), port=port)

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
