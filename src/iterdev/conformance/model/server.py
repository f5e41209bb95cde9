"""The scripted model as an HTTP server on loopback, including the ways in which a connection to a model fails."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import anyio
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from iterdev.agents.scripted.script import Script
from iterdev.conformance.model import anthropic, gemini, openai_chat, openai_responses, tool_server
from iterdev.conformance.model.messages import TOKENS, Dialect, Json
from iterdev.conformance.model.playback import Playback, RecordedRequest
from iterdev.mcp import messages, server
from iterdev.mcp.tools import ToolAnswer, as_json

DIALECTS: tuple[Dialect, ...] = (anthropic, openai_responses, openai_chat, gemini)

_TOKEN_COUNTS = {"/count_tokens": {"input_tokens": TOKENS}, ":countTokens": {"totalTokens": TOKENS}}
_MODELS = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "iterdev"}], "models": []}
_EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


class ModelServer(msgspec.Struct, frozen=True, kw_only=True):
    url: str
    """Without a path. OpenAI's dialects are below /v1; the other clients add their own paths."""
    requests: Sequence[RecordedRequest]
    """All requests for a turn so far, side calls included."""
    notes: Sequence[tool_server.Note]
    """What was noted with the tool so far."""

    @property
    def tools_url(self) -> str:
        """The address of an MCP server with one tool."""
        return self.url + tool_server.PATH


@contextmanager
def serving(script: Script) -> Iterator[ModelServer]:
    """Plays a script to all clients; afterwards no connection and no thread of it is left."""
    playback = Playback(script)
    endpoints = {tool_server.PATH: partial(_call_tool, playback), "/{path:path}": partial(_respond, playback)}
    routes = [Route(path, endpoint, methods=["GET", "POST"]) for path, endpoint in endpoints.items()]
    config = uvicorn.Config(
        # An error of this module is then in the response, which the coding agent quotes.
        Starlette(debug=True, routes=routes),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        # A response that is cut or cancelled is an error for uvicorn.
        log_config=None,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=0,
        # A connection that is closed while an agent begins to use it again looks like a failure of the model.
        timeout_keep_alive=3600,
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        # Clients that connect before the server runs wait in the backlog.
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="scripted model")
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            yield ModelServer(url=url, requests=playback.requests, notes=playback.notes)
        finally:
            server.should_exit = True
            thread.join()


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
        message = f"This is not a request in the dialect {dialect.NAME}: {error}"
        return JSONResponse({"error": {"message": message}}, 400)
    played = playback.play(model_request, path=str(request.url.path), dialect=dialect.NAME, body=body)
    await anyio.sleep(played.turn.sleep)
    if fail := played.turn.fail:
        failure = dialect.failure(fail, time.time())
        return JSONResponse(failure.body, fail.http_status, headers=dict(failure.headers))
    if played.turn.hang:
        return IncompleteResponse([b""] if model_request.streaming else [], _EVENT_STREAM, hangs=True)
    if model_request.streaming:
        chunks = list(map(server_sent_event, dialect.stream(played.response)))
        if played.turn.cut:
            return IncompleteResponse(chunks[: max(1, (len(chunks) - 1) // 2)], _EVENT_STREAM)
        return StreamingResponse(chunks, headers=_EVENT_STREAM)
    document = dialect.whole(played.response)
    if played.turn.cut:
        data = json.dumps(document).encode()
        return IncompleteResponse([data[: len(data) // 2]], {"content-type": "application/json"})
    return JSONResponse(document)


def server_sent_event(data: Json | str) -> bytes:
    name = "" if isinstance(data, str) or "type" not in data else f"event: {data['type']}\n"
    return f"{name}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


class IncompleteResponse(Response):
    """Sends the first parts of a response, or nothing. The server closes a connection whose response is incomplete."""

    def __init__(self, parts: Sequence[bytes], headers: Mapping[str, str], *, hangs: bool = False) -> None:
        """With `hangs`, the connection stays open until the client disconnects or the server is closed."""
        super().__init__(headers=headers)
        del self.headers["content-length"]
        self._parts, self._hangs = parts, hangs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        if self._parts:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        while self._hangs and (await receive())["type"] != "http.disconnect":
            pass


async def _call_tool(playback: Playback, request: Request) -> Response:
    if request.method != "POST":
        # A client may ask for a stream of messages from the server, and must do without.
        return JSONResponse({}, 405)
    token = request.headers.get("authorization", "").removeprefix("Bearer ")

    async def note(asked: tool_server.NoteArguments, _: server.Call) -> ToolAnswer:
        playback.notes.append(tool_server.Note(text=asked.text, token=token))
        return as_json({"noted": asked.text})

    message = messages.read(await request.body())
    offered = server.Server(tools=tool_server.TOOLS, use=note)
    answer = await server.answer(message, offered)
    return Response(answer or b"{}", 200 if answer else 202, media_type="application/json")
