"""The other host of `tests/execution/elsewhere.py`: each attempt is a fork of one interpreter that knows iterdev.

An attempt has another HOME and its own clone, and sees neither the user's checkout nor the session folder, the journal
or the workspaces of the engine: they are covered before it begins. All else goes over its connection with the engine.
"""

import asyncio
import atexit
import ctypes
import fcntl
import gc
import json
import os
import pkgutil
import selectors
import socket
import subprocess
import sys
import time
import traceback
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypeVar

import anyio
import msgspec

from iterdev.agents.contract import AgentEvent, ToolServer
from iterdev.agents.registry import make_present
from iterdev.core.collaboration.tool_schemas import ToolArguments
from iterdev.core.results import Result, Usage
from iterdev.core.settings import AgentSettings
from iterdev.core.types import TaskId
from iterdev.engine.effects import Effects
from iterdev.execution import wire_format
from iterdev.execution.attempt import run_attempt
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Job, ToolAccess
from iterdev.execution.landing_test import run_landing_test
from iterdev.host import paths, secrets
from iterdev.host.git.command import git
from iterdev.host.processes.spawn import Supervisor
from iterdev.host.sandbox import bubblewrap
from iterdev.host.workspaces.pool import Pool
from iterdev.host.workspaces.ports import Ports
from iterdev.store.session_folder import discoveries

ROOT = Path(__file__).parents[2]
ADDRESS = "ITERDEV_TEST_HOST"
"""The variable with the name of the host's socket, which is in no folder."""
PRELOADED = ("iterdev.agents", "iterdev.host")
LONGEST = 2**27
"""The bytes of a line between the two sides."""
AT_WORK = "at-work"
"""Locked by each attempt of an engine until nothing is left of it on this host."""
NEW_NAMESPACE, NEW_USER = 0x00020000, 0x10000000
PRIVATE_MOUNTS = 0x4000 | 0x40000

T = TypeVar("T", bound=wire_format.Message)
Document = dict[str, object]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine asks of this host, before anything else is said."""

    root: str
    """The folder of the engine's attempts here."""
    home: str
    hub: str
    """The repository that commits go through."""
    hidden: tuple[str, ...]
    order: str
    agents: Mapping[str, AgentSettings]
    """What this host knows of agents: their commands are in no order."""
    variables: Mapping[str, str]


def as_text(message: wire_format.Message) -> str:
    return b64encode(wire_format.encode(message)).decode()


def from_text(text: str, kind: type[T]) -> T:
    return wire_format.decode(b64decode(text), kind)


@cache
def address() -> str:
    """The name of the socket of a host that lives as long as this process."""
    name = f"iterdev-tests-{os.getpid()}"
    listener, (ours, far) = socket.socket(socket.AF_UNIX), socket.socketpair()
    with listener, far:
        listener.bind(f"\0{name}")
        listener.listen(128)
        descriptors = [listener.fileno(), far.fileno()]
        host = subprocess.Popen(
            [sys.executable, "-m", "tests.execution.other_host", *map(str, descriptors)],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    atexit.register(host.wait)
    atexit.register(ours.close)
    return name


def serve(listener: socket.socket, life: socket.socket) -> None:
    """Forks for each engine that connects, until the process that started the host is gone."""
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(life, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is life:
                return
            if key.data:
                selector.unregister(key.fd)
                os.waitpid(key.data, 0)
                os.close(key.fd)
                continue
            connection, _ = listener.accept()
            if (child := os.fork()) == 0:
                selector.close()
                listener.close()
                life.close()
                _be_asked(connection)
            connection.close()
            selector.register(os.pidfd_open(child), selectors.EVENT_READ, child)


def _be_asked(connection: socket.socket) -> None:
    code = 1
    try:
        anyio.run(_carry_out, connection)
        code = 0
    except BaseException:  # noqa: BLE001 - the end of a process
        traceback.print_exc()
    finally:
        os._exit(code)


class Writer(Protocol):
    def write(self, data: bytes) -> None: ...


async def _carry_out(connection: socket.socket) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=LONGEST)
    asked = msgspec.json.decode(await reader.readline(), type=Asked)
    with (Path(asked.root) / AT_WORK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        os.environ.clear()
        os.environ |= asked.variables
        time.tzset()
        _hide(asked.hidden)
        os.chdir(asked.home)
        try:
            said: Document = {"report": as_text(await _attempt(asked, reader, writer))}
        except Exception:  # noqa: BLE001 - the engine's test shows it
            said = {"failed": traceback.format_exc()}
        writer.write(json.dumps(said).encode() + b"\n")
        await writer.drain()


def _hide(folders: Sequence[str]) -> None:
    """Covers folders with empty ones for this process and all that it starts."""
    libc, user, group = ctypes.CDLL(None, use_errno=True), os.getuid(), os.getgid()

    def must(done: int) -> None:
        if done != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    must(libc.unshare(NEW_NAMESPACE if user == 0 else NEW_NAMESPACE | NEW_USER))
    if user != 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path(f"/proc/self/{name}").write_text(text)
    must(libc.mount(b"none", b"/", None, PRIVATE_MOUNTS, None))
    for folder in folders:
        must(libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, None))
    seen = [folder for folder in folders if any(Path(folder).iterdir())]
    assert not seen, f"the engine's folders can be seen: {seen}"


async def _attempt(asked: Asked, reader: asyncio.StreamReader, writer: Writer) -> wire_format.HostReport:
    """Runs the one attempt in a clone of its own, and pushes what it kept."""
    home, clone = Path(asked.home), Path(asked.home) / "clone"
    job = from_text(asked.order, wire_format.Order).job
    git("clone", "-q", "--no-checkout", asked.hub, str(clone), cwd=home)
    git("fetch", "-q", "origin", "+refs/iterdev/*:refs/iterdev/*", cwd=clone)
    sandbox = bubblewrap.build(clone, os.environ) if job.settings.run.sandbox else None
    pool = Pool(clone, home / "workspaces", paths.temps(), sandbox.confine_git if sandbox else None)
    scope, link = anyio.CancelScope(), ConnectionLink(job, writer)
    async with (
        Ports(job.settings.project.ports) as ports,
        Supervisor() as supervisor,
        anyio.create_task_group() as group,
    ):
        group.start_soon(link.listen, reader, scope)
        context = AttemptContext(
            top=clone,
            agent=cache(partial(make_present, configured=asked.agents, root=clone)),
            pool=pool,
            belongings=home / "belongings",
            checkout=None,
            ports=ports,
            spawn=supervisor.spawn,
            sandbox=sandbox,
            redact=secrets.redactor(os.environ),
            effect=Effects(),
            link=link,
        )
        report = await (run_landing_test if job.together else run_attempt)(job, context, scope)
        refs = f"refs/iterdev/{job.session}/{job.task.id}/*"
        git("push", "-q", "origin", f"+{refs}:{refs}", cwd=clone)
        group.cancel_scope.cancel()
    return wire_format.host_report_of(report, host="another", now=time.time())


class ConnectionLink:
    """The attempt's side of its session: questions go out, one JSON document per line, and answers come in."""

    def __init__(self, job: Job, writer: Writer) -> None:
        self._job, self._writer = job, writer
        self._send, self._answers = anyio.create_memory_object_stream[Document](100)
        self._lock = anyio.Lock()

    async def listen(self, reader: asyncio.StreamReader, scope: anyio.CancelScope) -> None:
        """Passes answers on; that the attempt is to be cancelled may come at any time, or its engine be gone."""
        while line := await reader.readline():
            document = json.loads(line)
            if document.get("cancel"):
                scope.cancel()
            else:
                await self._send.send(document)
        scope.cancel()
        self._send.close()

    def tell(self, document: Document) -> None:
        self._writer.write(json.dumps(document).encode() + b"\n")

    async def ask(self, document: Document) -> Document:
        async with self._lock:
            self.tell(document)
            try:
                return await self._answers.receive()
            except anyio.EndOfStream:  # The engine is gone, and the attempt is being cancelled.
                await anyio.sleep_forever()
                raise

    @asynccontextmanager
    async def tools(self, _: Job) -> AsyncIterator[ToolAccess]:
        found = await self.ask({"tools": True})
        yield ConnectionTools(self, ToolServer(url=str(found["url"]), token=str(found["token"])))

    async def use_tool(self, job: Job, asked: ToolArguments) -> Mapping[str, object]:
        raise NotImplementedError("the agent speaks to the engine's server of tools itself")

    @asynccontextmanager
    async def documents(self, job: Job) -> AsyncIterator[Path]:
        folder = Path.home() / f"documents-{job.task.id}"
        files = msgspec.convert((await self.ask({"documents": True}))["files"], dict[str, str])
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        board = folder / discoveries.NAME
        board.touch()
        known = len(board.read_text())
        try:
            yield folder
        finally:
            self.tell({"discovered": board.read_text()[known:].splitlines()})

    async def objection(self, _: TaskId, spent: Usage) -> str:
        return str((await self.ask({"objection": msgspec.to_builtins(spent)}))["text"])

    def said(self, _task: TaskId, _number: int, event: AgentEvent) -> None:
        self.tell({"said": msgspec.to_builtins(event)})

    def environment_made(self, made: Sequence[str], problems: Sequence[str]) -> None:
        self.tell({"environment_made": [made, problems]})

    async def take_result(self) -> Result | None:
        found = (await self.ask({"take_result": True}))["result"]
        return msgspec.convert(found, self._job.role.result) if found else None


class ConnectionTools:
    def __init__(self, link: ConnectionLink, server: ToolServer) -> None:
        self._link, self.server = link, server

    def started(self, pid: int) -> None:
        """The engine cannot see a program of this machine."""

    async def take_result(self) -> Result | None:
        return await self._link.take_result()


if __name__ == "__main__":
    for package in map(import_module, PRELOADED):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    gc.freeze()
    serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))
