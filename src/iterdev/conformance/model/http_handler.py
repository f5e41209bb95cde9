"""HTTP, server-sent events, and the ways in which a connection goes wrong. It refuses to know what is said."""

import json
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer
from urllib.parse import urlsplit

import msgspec

from iterdev.conformance.model import anthropic, gemini, openai_chat, openai_responses, tool_server
from iterdev.conformance.model.messages import TOKENS, Dialect, Event, Json
from iterdev.conformance.model.playback import Scene, Stage

DIALECTS: tuple[Dialect, ...] = (anthropic, openai_responses, openai_chat, gemini)

_LENGTHS = {"/count_tokens": {"input_tokens": TOKENS}, ":countTokens": {"totalTokens": TOKENS}}
_MODELS = {"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "iterdev"}], "models": []}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Events are small, and each of them is waited for.
    disable_nagle_algorithm = True

    def __init__(
        self,
        stage: Stage,
        stopping: threading.Event,
        request: socket.socket,
        client_address: tuple[str, int],
        server: BaseServer,
    ) -> None:
        self._stage = stage
        self._stopping = stopping
        super().__init__(request, client_address, server)

    def log_message(self, *_: object) -> None:
        """Keeps quiet: the stage remembers what was asked."""

    def do_HEAD(self) -> None:
        self._send_json({})

    def do_GET(self) -> None:
        if self.headers.get("Upgrade", "").lower() == "websocket":
            # codex goes on over HTTP at once after this status, and only after several tries for any other.
            self._send_json({"error": {"message": "Web sockets are not served."}}, status=HTTPStatus.UPGRADE_REQUIRED)
        elif self._path == tool_server.PATH:
            # A client may ask for a stream of messages from the server, and must do without.
            self._send_json({}, status=HTTPStatus.METHOD_NOT_ALLOWED)
        elif self._path.endswith("/models"):
            self._send_json(_MODELS)
        else:
            self._send_not_found()

    def do_POST(self) -> None:
        body = self._body()
        dialect = next((dialect for dialect in DIALECTS if dialect.PATH.search(self._path)), None)
        length = next((length for ending, length in _LENGTHS.items() if self._path.endswith(ending)), None)
        if dialect:
            self._converse(dialect, body)
        elif self._path == tool_server.PATH:
            self._serve_tool(body)
        elif length:
            self._send_json(length)
        else:
            self._send_not_found()

    @property
    def _path(self) -> str:
        return urlsplit(self.path).path

    def _converse(self, dialect: Dialect, body: bytes) -> None:
        try:
            asked = dialect.read(self._path, body)
        except (msgspec.DecodeError, UnicodeError) as error:
            problem = {"error": {"message": f"This is not a request in the dialect {dialect.NAME}: {error}"}}
            return self._send_json(problem, status=HTTPStatus.BAD_REQUEST)
        scene = self._stage.play(asked, path=self.path, dialect=dialect.NAME, body=body)
        self._stopping.wait(scene.turn.sleep)
        if fail := scene.turn.fail:
            failure = dialect.failure(fail, time.time())
            self._send_json(failure.body, status=fail.http_status, headers=failure.headers)
        elif asked.streaming:
            self._send_stream(dialect.stream(scene.answered), scene)
        else:
            self._send_whole(dialect.whole(scene.answered), scene)
        return None

    def _serve_tool(self, body: bytes) -> None:
        message = msgspec.json.decode(body, type=tool_server.Message)
        if note := message.note(self.headers.get("Authorization", "")):
            self._stage.notes.append(note)
        answer = message.answer()
        self._send_json(answer or {}, status=HTTPStatus.OK if answer else HTTPStatus.ACCEPTED)

    def _send_whole(self, document: Json, scene: Scene) -> None:
        if scene.turn.hang:
            self._await_the_end()
        elif scene.turn.cut:
            self._send_json(document, cut=True)
        else:
            self._send_json(document)

    def _send_stream(self, events: Iterable[Event], scene: Scene) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if scene.turn.hang:
            return self._await_the_end()
        lines = [_lines(event) for event in events]
        for line in lines[: max(1, (len(lines) - 1) // 2)] if scene.turn.cut else lines:
            self._send_chunk(line)
        if scene.turn.cut:
            return self._break_off()
        return self._send_chunk(b"")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _send_not_found(self) -> None:
        self._send_json({"error": {"message": f"Nothing is served at {self._path}."}}, status=HTTPStatus.NOT_FOUND)

    def _send_json(
        self,
        document: Json,
        *,
        status: int = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
        cut: bool = False,
    ) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self._break_off()

    def _await_the_end(self) -> None:
        """Says nothing more until the client leaves or the server is closed."""
        self.rfile.read(1)
        self.close_connection = True

    def _break_off(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


def _lines(event: Event) -> bytes:
    data = event.data if isinstance(event.data, str) else json.dumps(event.data)
    return (f"event: {event.name}\n" if event.name else "").encode() + f"data: {data}\n\n".encode()
