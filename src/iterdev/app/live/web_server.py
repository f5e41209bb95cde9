"""The server of a repository's web page: where it listens, the token for it, and a log of what was done through it.

Its folder is in the state home, private to the user. A lock on the folder is held for as long as the server runs.
"""

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core.errors import HostError, UserError
from iterdev.core.ids import moment
from iterdev.core.processes import ProcessIdentity
from iterdev.engine.repository import Repository
from iterdev.host import clock, paths, session_lease, text_files
from iterdev.host.processes.identity import identity

FILE, LOG = "server.json", "acts.log"
TOKEN_BYTES = 32
SHORTEST_TOKEN = 32
"""Characters of a token that the user chose."""


class WebServer(Struct, frozen=True, kw_only=True):
    process: ProcessIdentity
    address: str
    """Such as http://127.0.0.1:40123."""
    token: str

    @property
    def link(self) -> str:
        """The address that logs in; a browser does not send the part after the `#`."""
        return f"{self.address}/#token={self.token}"


class AlreadyRunning(Exception):
    """Another process serves the page of the repository."""


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def read_token(path: Path) -> str:
    """A token that the user chose, from a file."""
    try:
        token = text_files.read(path).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(f'Cannot read "{path}": {reason}', hint=f"openssl rand -hex 32 > {path}") from error
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        what = f"at least {SHORTEST_TOKEN} letters, digits or signs in one line"
        raise UserError(f'"{path}" has no token: {what} are needed', hint=f"openssl rand -hex 32 > {path}")
    return token


@contextmanager
def reserved(repository: Repository) -> Iterator[Callable[[str, str], WebServer]]:
    """Reserves the page of the repository, and yields what records the address and the token of its server.

    Raises `AlreadyRunning` if another process serves it.
    """
    folder = _folder(repository)
    file = folder / FILE

    def record(address: str, token: str) -> WebServer:
        me = identity(os.getpid())
        server = WebServer(process=me or ProcessIdentity(pid=os.getpid()), address=address, token=token)
        _write_private(file, msgspec.json.encode(server))
        return server

    try:
        with session_lease.lease(folder, wait=lambda: False):
            try:
                yield record
            finally:
                file.unlink(missing_ok=True)
    except session_lease.Held:
        raise AlreadyRunning from None


def running(repository: Repository) -> WebServer | None:
    """The server that was started before; None if there is none, or it does not listen yet."""
    folder = _folder(repository)
    if not session_lease.is_held(folder):
        return None
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((folder / FILE).read_bytes(), type=WebServer)
    return None


class ActLog:
    """Who did what through the page, one JSON object per line; only its owner can read the file."""

    def __init__(self, repository: Repository) -> None:
        self.path = _folder(repository) / LOG
        self._redact = repository.redact

    def write(self, what: str, who: str = "", **details: object) -> None:
        line = {"at": moment(clock.now()), "what": what, "who": who, **details}
        text = self._redact(json.dumps({name: value for name, value in line.items() if value != ""}))
        with open(self.path, "a", encoding="utf-8", opener=_private) as file:
            file.write(f"{text}\n")


def _folder(repository: Repository) -> Path:
    folder = paths.web_server_of(repository.top)
    try:
        paths.make_private(folder)
    except OSError as error:
        raise HostError(f'Cannot create "{folder}": {error.strerror}', hint="check its permissions") from error
    return folder


def _write_private(path: Path, body: bytes) -> None:
    """Replaces the file as a whole, so that no reader sees a part of it."""
    new = path.with_name(f"{path.name}.new")
    with open(new, "wb", opener=_private) as file:
        file.write(body)
    new.replace(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
