"""Every program that iterdev starts: in a group of its own, limited in time, and ended with its whole tree.

`supervisor.py`, a process of its own, ends the programs, also when iterdev is killed. This module sends it requests and
transfers input and output.
"""

import asyncio
import errno
import marshal
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal, Protocol, Self

import anyio
import msgspec
from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.core.processes import Exit
from iterdev.host.processes import control_group, ownership
from iterdev.host.processes.identity import is_stopped
from iterdev.host.processes.ownership import Marker
from iterdev.host.processes.supervisor import CLOSING, hide_memory
from iterdev.host.processes.trees import kill_tree

CHUNK = 65536
"""The capacity of a pipe; more than this is never held for a reader."""

STARTS = 16
"""Concurrent starts: descriptors in flight between processes count against the user's limit."""

WATCH = 1.0
"""Seconds between two looks at the processes that end the others."""
OVERDUE = 10.0
"""Seconds that a monitor is given to end its program, grace included, before it is killed itself."""

SUPERVISOR = Path(__file__).with_name("supervisor.py")

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""The variables of the supervisor: programs can read its environment, and need not get theirs from it."""

Stream = Literal["stdout", "stderr"]


class Started(Struct, frozen=True, tag=True):
    pid: int
    monitor: int


class StartFailed(Struct, frozen=True, tag=True):
    reason: str
    errno: int = 0


class ProgramResult(Exit, frozen=True, kw_only=True):
    stdout: bytes
    """Its last bytes."""
    stderr: bytes


_REPORTS: msgspec.json.Decoder[Started | StartFailed | Exit] = msgspec.json.Decoder(Started | StartFailed | Exit)


class Process:
    def __init__(self, control: socket.socket, marker: Marker, stdin: int, stdout: int, stderr: int) -> None:
        self.pid = 0
        self.monitor = 0
        self.kill_at = math.inf
        """When its monitor should have ended it, and a good while has passed."""
        self._marker = marker
        self._loop = asyncio.get_running_loop()
        self._control = control
        self._stdin = stdin
        self._outputs: dict[int, Stream] = {stdout: "stdout", stderr: "stderr"}
        self._open = {stdin, stdout, stderr}
        self._start: asyncio.Future[StartFailed | None] = self._loop.create_future()
        self._exit: asyncio.Future[Exit] = self._loop.create_future()
        self._received = b""
        self._writing = anyio.Lock()
        self._loop.add_reader(control, self._receive)

    async def start(self) -> StartFailed | None:
        """Waits until the program has been started, or could not be."""
        return await asyncio.shield(self._start)

    async def write(self, data: bytes) -> None:
        """Writes to the program's input; what it no longer reads is dropped."""
        async with self._writing:
            rest = memoryview(data)
            while rest and self._stdin in self._open:
                try:
                    rest = rest[os.write(self._stdin, rest) :]
                except BlockingIOError:
                    if self._exit.done():
                        return
                    await self._ready([self._stdin], self._loop.add_writer, self._loop.remove_writer)
                except BrokenPipeError:
                    self._close(self._stdin)

    async def close_input(self) -> None:
        async with self._writing:
            self._close(self._stdin)

    async def output(self) -> AsyncIterator[tuple[Stream, bytes]]:
        """Yields what the program writes until the whole tree has ended."""
        while fds := [fd for fd in self._outputs if fd in self._open]:
            await self._ready(fds, self._loop.add_reader, self._loop.remove_reader)
            for fd in fds:
                if chunk := self._read(fd):
                    yield self._outputs[fd], chunk

    async def wait(self) -> Exit:
        return await asyncio.shield(self._exit)

    async def end(self) -> None:
        """Asks the tree to end, kills it after the grace, and waits until it has ended."""
        if not self._exit.done():
            self.kill_at = min(self.kill_at, time.monotonic() + OVERDUE)
            with suppress(BrokenPipeError, ConnectionResetError):
                self._control.send(b"end\n")
        await self.wait()

    async def close(self) -> None:
        """Ends the tree, even if the caller is cancelled, and closes the descriptors."""
        try:
            with anyio.CancelScope(shield=True):
                await self.end()
        finally:
            for fd in tuple(self._open):
                self._close(fd)
            self._loop.remove_reader(self._control)
            self._control.close()

    def _receive(self) -> None:
        try:
            data = self._control.recv(4096)
        except ConnectionResetError:
            data = b""
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            match _REPORTS.decode(line):
                case Started(pid, monitor):
                    self.pid, self.monitor = pid, monitor
                    self._start.set_result(None)
                case StartFailed() as failed:
                    self._start.set_result(failed)
                case Exit() as ended:
                    self._exit.set_result(ended)
        if not data:
            self._loop.remove_reader(self._control)
            if not self._start.done():
                self._start.set_result(StartFailed("the supervisor did not answer"))
            if not self._exit.done():
                # Without a report the monitor was killed. The supervisor has ended its tree, unless it was killed too.
                sweep = self._loop.run_in_executor(None, kill_tree, self._marker)
                sweep.add_done_callback(lambda _: self._exit.set_result(Exit(code=-signal.SIGKILL)))

    def _read(self, fd: int) -> bytes:
        """Reads what is there, and closes a pipe that no process of the tree can write to any more."""
        over = self._exit.done()
        try:
            chunk = os.read(fd, CHUNK) if fd in self._open else b""
        except BlockingIOError:
            chunk = b""
        else:
            over = not chunk
        if over:
            self._close(fd)
        return chunk

    async def _ready(
        self, fds: Sequence[int], watch: Callable[[int, Callable[[], None]], None], unwatch: Callable[[int], bool]
    ) -> None:
        """Waits until one of them is ready, or the tree has ended."""
        ready = asyncio.Event()

        def wake(*_: object) -> None:
            ready.set()

        for fd in fds:
            watch(fd, wake)
        self._exit.add_done_callback(wake)
        try:
            await ready.wait()
        finally:
            self._exit.remove_done_callback(wake)
            for fd in self._open.intersection(fds):
                unwatch(fd)

    def _close(self, fd: int) -> None:
        if fd in self._open:
            self._open.remove(fd)
            # A task that still waits for it must not get the next descriptor with this number.
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)
            os.close(fd)


class Supervisor:
    """Starts programs; leaving it ends all of them and waits until they have ended."""

    def __init__(self, *, lease_fds: Sequence[int] = (), grace: float = 2.0) -> None:
        self._lease_fds = tuple(lease_fds)
        """Stay open, and so keep their locks, until the last process has ended."""
        self._grace = grace
        self._starting = anyio.Semaphore(STARTS)
        self._processes: set[Process] = set()

    async def __aenter__(self) -> Self:
        self._group = control_group.make(f"{ownership.GROUP}{ownership.owner()}")
        self._launch()
        self._watch = asyncio.create_task(self._watch_stopped())
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for process in self._processes:
                    tasks.start_soon(process.end)
            with suppress(OSError), anyio.move_on_after(OVERDUE):
                self._requests.send(CLOSING)
                self._requests.shutdown(socket.SHUT_WR)
                await asyncio.get_running_loop().sock_recv(self._requests, 1)
        self._watch.cancel()
        self._requests.close()
        self._server.kill()
        self._server.wait()
        if self._group:
            control_group.end(self._group)

    async def _watch_stopped(self) -> None:
        """Continues a supervisor that was stopped, or a monitor of one that was killed, and kills a useless monitor.

        A program can stop what watches it, which would then not end it.
        """
        while True:
            await asyncio.sleep(WATCH)
            now = time.monotonic()
            monitors = {process.monitor: process.kill_at for process in self._processes if process.monitor}
            for pid, kill_at in {self._server.pid: math.inf, **monitors}.items():
                with suppress(ProcessLookupError):
                    if now > kill_at:
                        os.kill(pid, signal.SIGKILL)
                    elif is_stopped(pid):
                        os.kill(pid, signal.SIGCONT)

    @asynccontextmanager
    async def spawn(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
    ) -> AsyncIterator[Process]:
        """Starts a program; leaving the context ends its whole tree, which also happens after `limit` seconds."""
        marker = ownership.marker()
        variables = {os.fsencode(name): os.fsencode(value) for name, value in {**env, **marker.variable}.items()}
        spec = marshal.dumps(([*map(os.fsencode, argv)], os.fsencode(cwd), variables, limit, self._grace))
        async with AsyncExitStack() as stack:
            async with self._starting:
                try:
                    process = self._request(spec, marker)
                except OSError as problem:
                    raise _start_error(argv[0], cwd, StartFailed(str(problem))) from problem
                self._processes.add(process)
                stack.callback(self._processes.discard, process)
                stack.push_async_callback(process.close)
                if failed := await process.start():
                    raise _start_error(argv[0], cwd, failed)
                if limit is not None:
                    process.kill_at = time.monotonic() + limit + OVERDUE
            yield process

    def _request(self, spec: bytes, marker: Marker) -> Process:
        """Sends one end of every channel to the supervisor."""
        with ExitStack() as near, ExitStack() as far:
            control, far_control = socket.socketpair()
            near.enter_context(control)
            far.enter_context(far_control)
            far_stdin, stdin = _pipe(read=far, write=near)
            stdout, far_stdout = _pipe(read=near, write=far)
            stderr, far_stderr = _pipe(read=near, write=far)
            far_spec = far.enter_context(_memory(spec)).fileno()
            self._send((far_control.fileno(), far_spec, far_stdin, far_stdout, far_stderr))
            for fd in (control.fileno(), stdin, stdout, stderr):
                os.set_blocking(fd, False)
            near.pop_all()
        return Process(control, marker, stdin, stdout, stderr)

    def _send(self, fds: Sequence[int]) -> None:
        try:
            socket.send_fds(self._requests, [b"+"], fds)
        except (BrokenPipeError, ConnectionResetError):
            # The supervisor was killed; the programs that it had started still have their monitors.
            self._requests.close()
            self._server.wait()
            self._launch()
            socket.send_fds(self._requests, [b"+"], fds)

    def _launch(self) -> None:
        hide_memory()
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self._requests, far = socket.socketpair()
        self._requests.setblocking(False)
        with far:
            numbers = (far.fileno(), *self._lease_fds)
            command = [sys.executable, "-I", "-S", str(SUPERVISOR), ownership.of_this_process()]
            self._server = subprocess.Popen(
                [*command, str(self._group or ""), *map(str, numbers)],
                pass_fds=numbers,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**inherited, **ownership.of_supervisor()},
                start_new_session=True,
            )


def _pipe(*, read: ExitStack, write: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    read.callback(os.close, reader)
    write.callback(os.close, writer)
    return reader, writer


def _memory(data: bytes) -> FileIO:
    linux = sys.platform == "linux"
    file = FileIO(os.memfd_create("iterdev"), "w+") if linux else TemporaryFile(buffering=0)  # noqa: SIM115 - the caller's
    file.write(data)
    return file


def _start_error(program: str, cwd: str, failed: StartFailed) -> HostError:
    hints = {errno.ENOENT: f'install "{program}", or add its directory to PATH', errno.EACCES: f'chmod +x "{program}"'}
    hint = (
        hints.get(failed.errno, "check the memory, and the limits of your user: ulimit -a")
        if Path(cwd).is_dir()
        else f'mkdir -p "{cwd}"'
    )
    return HostError(f'"{program}" could not be started in "{cwd}": {failed.reason}', hint=hint)


class Spawn(Protocol):
    def __call__(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
    ) -> AbstractAsyncContextManager[Process]: ...


async def run(
    spawn: Spawn, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None, stdin: bytes = b""
) -> ProgramResult:
    """Runs a program to its end with an input that a pipe has room for, and returns the last bytes of its output."""
    tails: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
    async with spawn(argv, cwd=cwd, env=env, limit=limit) as process:
        await process.write(stdin)
        await process.close_input()
        async for stream, chunk in process.output():
            tails[stream] = (tails[stream] + chunk)[-CHUNK:]
        ended = await process.wait()
    return ProgramResult(code=ended.code, timed_out=ended.timed_out, **tails)
