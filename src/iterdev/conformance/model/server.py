"""The scripted model as a server on loopback, on a free port, for as long as a context lasts."""

import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from weakref import WeakSet

from iterdev.agents.scripted.script import Script
from iterdev.conformance.model import tool_server
from iterdev.conformance.model.http_handler import Handler
from iterdev.conformance.model.playback import Request, Stage


class ModelServer:
    """A running server: where it is, and what it was asked."""

    def __init__(self, url: str, stage: Stage) -> None:
        self.url = url
        """Without a path. OpenAI's dialects are below /v1; the others find their own way."""
        self._stage = stage

    @property
    def requests(self) -> Sequence[Request]:
        """All requests for a turn so far, side calls included."""
        return tuple(self._stage.requests)

    @property
    def tools_url(self) -> str:
        """Here is an MCP server with one tool."""
        return self.url + tool_server.PATH

    @property
    def notes(self) -> Sequence[tool_server.Note]:
        """What was noted with the tool so far."""
        return tuple(self._stage.notes)


@contextmanager
def serving(script: Script, log: Path | None = None) -> Iterator[ModelServer]:
    """Plays a script to whoever asks; when it ends, no connection and no thread of it is left.

    With `log`, every request is also appended to that file, one JSON object per line.
    """
    stage, stopping = Stage(script, log), threading.Event()
    with Listener(("127.0.0.1", 0), partial(Handler, stage, stopping)) as listener:
        loop = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05}, name="scripted model")
        loop.start()
        try:
            yield ModelServer(f"http://127.0.0.1:{listener.server_address[1]}", stage)
        finally:
            listener.shutdown()
            loop.join()
            stopping.set()
            listener.hang_up()


class Listener(ThreadingMixIn, TCPServer):
    """Knows its connections, so that it can end the threads that wait for them; closing it joins the threads."""

    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: partial[Handler]) -> None:
        self._connections: WeakSet[socket.socket] = WeakSet()
        super().__init__(address, handler)

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        self._connections.add(connection)
        return connection, address

    def hang_up(self) -> None:
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """Tells of defects; that a client leaves in the middle of an answer is none."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
