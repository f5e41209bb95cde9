"""Serves the web page of a repository until it is stopped."""

import ipaddress
import socket
import time
from collections.abc import Callable
from contextlib import closing

import uvicorn
from msgspec import Struct

from iterdev.app.live import web_server
from iterdev.app.live.web_server import ActLog, AlreadyRunning, WebServer
from iterdev.app.sessions import Repository
from iterdev.core.errors import HostError, UserError
from iterdev.surfaces.web import guard
from iterdev.surfaces.web.credentials import Credentials
from iterdev.surfaces.web.routes import Application
from iterdev.surfaces.web.watching import Watching

LOOPBACK = "127.0.0.1"
BACKLOG = 64
MOST_CONNECTIONS = 64
PATIENCE, LOOK_AGAIN = 5.0, 0.05
"""Seconds to wait for the address of a server that another process is just starting."""


class Options(Struct, frozen=True, kw_only=True):
    host: str = LOOPBACK
    port: int = 0
    """0 is any free one."""
    names: tuple[str, ...] = ()
    """Further names that browsers may reach it by."""
    token: str = ""
    """A token that the user chose."""
    read_only: bool = False


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(repository: Repository, options: Options, started: Callable[[WebServer, bool], None]) -> None:
    """Serves until a signal comes; `started` is told the server, and whether it was running before.

    A second server for the same repository is not started: the first one is named instead.
    """
    try:
        with web_server.reserved(repository) as record, _listener(options) as listener:
            _serve(repository, options, listener, record, started)
    except AlreadyRunning:
        started(_running(repository), True)


def _running(repository: Repository) -> WebServer:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := web_server.running(repository):
            return found
        time.sleep(LOOK_AGAIN)
    raise HostError("Another process is just starting the web page", hint="iterdev web")


def _listener(options: Options) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        return socket.create_server((options.host, options.port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        where = f"{options.host}:{options.port}"
        raise UserError(f'Cannot listen on "{where}": {reason}', hint="iterdev web --port 0") from error


def _serve(
    repository: Repository,
    options: Options,
    listener: socket.socket,
    record: Callable[[str, str], WebServer],
    started: Callable[[WebServer, bool], None],
) -> None:
    port = listener.getsockname()[1]
    token, log = options.token or web_server.new_token(), ActLog(repository)
    shown = f"[{options.host}]" if ":" in options.host else options.host
    with closing(Watching(repository.top)) as watching:
        application = Application(
            watching,
            Credentials(token),
            log,
            port=port,
            names=(*options.names, shown),
            read_only=options.read_only,
        )
        config = uvicorn.Config(
            application.app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            server_header=False,
            # It would hold the addresses of pages; what was done is in the log of acts.
            access_log=False,
            log_config=None,
            log_level="critical",
            limit_concurrency=MOST_CONNECTIONS,
            h11_max_incomplete_event_size=guard.MOST_HEADER,
            timeout_graceful_shutdown=1,
            proxy_headers=False,
        )
        server = uvicorn.Server(config)
        recorded = record(f"http://{shown}:{port}", token)
        log.write("start", address=recorded.address, pid=recorded.process.pid)
        # A browser that connects before the server runs waits in the backlog.
        started(recorded, False)
        server.run(sockets=[listener])
