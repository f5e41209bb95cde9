"""The HTTP interface of the scripted model, including the ways in which a connection to a model fails."""

import json
import time
from collections.abc import AsyncIterator, Iterable, Sequence

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from iterdev.conformance.model import anthropic, gemini, openai_chat, openai_responses, tool_server
from iterdev.conformance.model.messages import TOKENS, Dialect, Event
from iterdev.conformance.model.playback import Playback

DIALECTS: tuple[Dialect, ...] = (anthropic, openai_responses, openai_chat, gemini)

_TOKEN_COUNTS = {"/count_tokens": {"input_tokens": TOKENS}, ":countTokens": {"totalTokens": TOKENS}}
_MODELS = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "iterdev"}], "models": []}
_EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


class CutResponse(Response):
    """Sends the first part of a response; the server closes a connection whose response is incomplete."""

    def __init__(self, parts: Sequence[bytes], headers: dict[str, str]) -> None:
        super().__init__(headers=headers)
        del self.headers["content-length"]
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})


class HangingResponse(Response):
    """Sends nothing, or only the headers of a stream, until the client disconnects or the server is closed."""

    def __init__(self, *, streaming: bool) -> None:
        super().__init__(headers=_EVENT_STREAM)
        del self.headers["content-length"]
        self._streaming = streaming

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        if self._streaming:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": b"", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass


def application(playback: Playback) -> Starlette:
    async def model(request: Request) -> Response:
        return await _respond(playback, request)

    async def tool(request: Request) -> Response:
        return await _call_tool(playback, request)

    methods = ["GET", "POST"]
    routes = [Route(tool_server.PATH, tool, methods=methods), Route("/{path:path}", model, methods=methods)]
    # An error of this module is then in the response, which the coding agent quotes.
    return Starlette(debug=True, routes=routes)


async def _respond(playback: Playback, request: Request) -> Response:
    path = request.url.path
    dialect = next((dialect for dialect in DIALECTS if dialect.PATH.search(path)), None)
    count = next((count for ending, count in _TOKEN_COUNTS.items() if path.endswith(ending)), None)
    if request.headers.get("upgrade", "").lower() == "websocket":
        # codex continues over HTTP at once after this status, and only after several tries for any other.
        return JSONResponse({"error": {"message": "Web sockets are not supported."}}, 426)
    if request.method == "POST" and dialect:
        return await _take_turn(playback, dialect, request)
    if request.method == "POST" and count:
        return JSONResponse(count)
    if request.method == "HEAD" or path.endswith("/models"):
        return JSONResponse(_MODELS)
    return JSONResponse({"error": {"message": f"There is nothing at {path}."}}, 404)


async def _take_turn(playback: Playback, dialect: Dialect, request: Request) -> Response:
    body = await request.body()
    try:
        model_request = dialect.read(request.url.path, body)
    except (msgspec.DecodeError, UnicodeError) as error:
        return JSONResponse(
            {"error": {"message": f"This is not a request in the dialect {dialect.NAME}: {error}"}}, 400
        )
    played = playback.play(model_request, path=str(request.url.path), dialect=dialect.NAME, body=body)
    await anyio.sleep(played.turn.sleep)
    if fail := played.turn.fail:
        failure = dialect.failure(fail, time.time())
        return JSONResponse(failure.body, fail.http_status, headers=dict(failure.headers))
    if played.turn.hang:
        return HangingResponse(streaming=model_request.streaming)
    if model_request.streaming:
        return _stream(dialect.stream(played.response), cut=played.turn.cut)
    document = dialect.whole(played.response)
    if played.turn.cut:
        data = json.dumps(document).encode()
        return CutResponse([data[: len(data) // 2]], {"content-type": "application/json"})
    return JSONResponse(document)


def _stream(events: Iterable[Event], *, cut: bool) -> Response:
    chunks = [_chunk(event) for event in events]
    if cut:
        return CutResponse(chunks[: max(1, (len(chunks) - 1) // 2)], _EVENT_STREAM)

    async def send() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    return StreamingResponse(send(), headers=_EVENT_STREAM)


def _chunk(event: Event) -> bytes:
    data = event.data if isinstance(event.data, str) else json.dumps(event.data)
    return (f"event: {event.name}\n" if event.name else "").encode() + f"data: {data}\n\n".encode()


async def _call_tool(playback: Playback, request: Request) -> Response:
    if request.method != "POST":
        # A client may ask for a stream of messages from the server, and must do without.
        return JSONResponse({}, 405)
    message = msgspec.json.decode(await request.body(), type=tool_server.RpcMessage)
    if note := message.note(request.headers.get("authorization", "")):
        playback.notes.append(note)
    answer = message.answer()
    return JSONResponse(answer or {}, 200 if answer else 202)
