"""Runs commands as forks of one interpreter that has imported iterdev.

Each command is a process of its own, with its own environment, folder and files, and ends with its own exit code. Only
the start of the interpreter and the imports are shared: they are most of what a short command costs.
"""

import atexit
import gc
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from functools import cache
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from tests.crash.scenarios import ONE_SPRINT
from tests.crash.scratch import Scratch

from iterdev.core.types import Engine
from iterdev.surfaces.cli import main as cli

ROOT = Path(__file__).parents[1]
PRELOADED = ("iterdev.surfaces.cli.commands", "iterdev.app")
"""Packages of commands, which are otherwise imported when they are called."""
DESCRIPTORS = 5
REPLY = 4
"""The bytes of a number in a reply: first the process id, then the exit code."""


class ForkServer:
    """The client's side."""

    def __init__(self, module: str) -> None:
        """`module` is what `python -m` would run; its `start` takes the arguments and returns the exit code."""
        self._requests, far = socket.socketpair()
        nothing = subprocess.DEVNULL
        with far:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", module, str(far.fileno())],
                cwd=ROOT,
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
                pass_fds=[far.fileno()],
                stdin=nothing,
                stdout=nothing,
            )

    def run(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: str, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` with captured output."""
        request = json.dumps({"arguments": arguments, "cwd": str(cwd), "env": env})
        reply, far = os.pipe()
        try:
            with _file(request) as asked, _file(stdin) as given, _file() as stdout, _file() as stderr:
                numbers = [file.fileno() for file in (asked, given, stdout, stderr)]
                try:
                    socket.send_fds(self._requests, [b"+"], [*numbers, far])
                finally:
                    os.close(far)
                code = _code(reply, arguments, timeout)
                return subprocess.CompletedProcess(arguments, code, _text(stdout), _text(stderr))
        finally:
            os.close(reply)

    def close(self) -> None:
        self._requests.close()
        self._server.wait()


@cache
def fork_server(module: str) -> ForkServer:
    """The server of this process for a module; it ends with this process."""
    server = ForkServer(module)
    atexit.register(server.close)
    return server


def _code(reply: int, arguments: Sequence[str], timeout: float) -> int:
    pid = _number(reply)
    if not select.select([reply], [], [], timeout)[0]:
        os.kill(pid, signal.SIGKILL)
        raise subprocess.TimeoutExpired([*arguments], timeout)
    return _number(reply)


def _number(reply: int) -> int:
    data = os.read(reply, REPLY)
    assert data, "the fork server ended"
    return int.from_bytes(data, "little", signed=True)


def _file(text: str = "") -> IO[bytes]:
    file = TemporaryFile(buffering=0)  # noqa: SIM115 - the caller's
    file.write(text.encode())
    file.seek(0)
    return file


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


class Server:
    """A single-threaded process, so that it can fork."""

    def __init__(self, requests: socket.socket) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._requests = requests

    def serve(self, start: Callable[[list[str]], int]) -> int:
        """Until the client is gone; in each of the forks, until its command has ended."""
        while True:
            for key, _ in self._selector.select():
                if key.data:
                    self._report(key.fd, *key.data)
                    continue
                _, numbers, _, _ = socket.recv_fds(self._requests, 1, DESCRIPTORS)
                if not numbers:
                    return 0
                if (child := os.fork()) == 0:
                    return start(self._become(numbers))
                *files, reply = numbers
                for number in files:
                    os.close(number)
                _tell(reply, child)
                self._selector.register(os.pidfd_open(child), selectors.EVENT_READ, (child, reply))

    def _report(self, process: int, child: int, reply: int) -> None:
        self._selector.unregister(process)
        _tell(reply, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        os.close(process)
        os.close(reply)

    def _become(self, numbers: Sequence[int]) -> list[str]:
        """Makes this process the one that the client asked for, and gives its arguments."""
        self._selector.close()
        self._requests.close()
        asked, *streams, reply = numbers
        for stream, number in enumerate(streams):
            os.dup2(number, stream)
        with open(asked, "rb") as file:  # noqa: PTH123 - a descriptor
            request = json.load(file)
        for number in (*streams, reply):
            os.close(number)
        os.environ.clear()
        os.environ |= request["env"]
        time.tzset()
        os.chdir(request["cwd"])
        sys.argv = ["iterdev", *request["arguments"]]
        return list(request["arguments"])


def _tell(reply: int, number: int) -> None:
    with suppress(BrokenPipeError):  # The client has stopped waiting.
        os.write(reply, number.to_bytes(REPLY, "little", signed=True))


def warm_up() -> None:
    """Runs a session in this process, so that its forks find loaded and compiled what every session needs."""
    environment, folder = dict(os.environ), Path.cwd()
    with TemporaryDirectory() as root, redirect_stdout(StringIO()):
        scratch = Scratch(Path(root) / "warm-up", Engine.wave, ONE_SPRINT)
        os.chdir(scratch.project)
        code = cli.run(["run", "--yes", "--pipeline", "sprint", "Add a greeting"])
        os.chdir(folder)
    os.environ.clear()
    os.environ |= environment
    assert code == 0
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()


if __name__ == "__main__":
    start = import_module(sys.argv[1]).start
    for package in map(import_module, PRELOADED):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    warm_up()
    gc.freeze()
    sys.exit(Server(socket.socket(fileno=int(sys.argv[2]))).serve(start))
