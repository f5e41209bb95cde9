"""The scripted model as a server on loopback, on a free port, for as long as a context lasts."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from iterdev.agents.scripted.script import Script
from iterdev.conformance.model import tool_server
from iterdev.conformance.model.application import application
from iterdev.conformance.model.playback import Playback, RecordedRequest


class ModelServer:
    """A running server: its address, and the requests so far."""

    def __init__(self, url: str, playback: Playback) -> None:
        self.url = url
        """Without a path. OpenAI's dialects are below /v1; the other clients add their own paths."""
        self._playback = playback

    @property
    def requests(self) -> Sequence[RecordedRequest]:
        """All requests for a turn so far, side calls included."""
        return tuple(self._playback.requests)

    @property
    def tools_url(self) -> str:
        """The address of an MCP server with one tool."""
        return self.url + tool_server.PATH

    @property
    def notes(self) -> Sequence[tool_server.Note]:
        """What was noted with the tool so far."""
        return tuple(self._playback.notes)


@contextmanager
def serving(script: Script, log: Path | None = None) -> Iterator[ModelServer]:
    """Plays a script to all clients; afterwards no connection and no thread of it is left.

    With `log`, every request is also appended to that file, one JSON object per line.
    """
    playback = Playback(script, log)
    config = uvicorn.Config(
        application(playback),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        # A response that is cut or cancelled is an error for uvicorn.
        log_config=None,
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=0,
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        # Clients that connect before the server runs wait in the backlog.
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="scripted model")
        thread.start()
        try:
            yield ModelServer(f"http://127.0.0.1:{listener.getsockname()[1]}", playback)
        finally:
            server.should_exit = True
            thread.join()
