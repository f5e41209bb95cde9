"""iterdev with attempts on hosts, through a real Temporal server: `python -m tests.execution.on_hosts run ...`.

A host is a process of its own (`--host NAME HOME`), with another HOME and its own mirror of the repository.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
from anyio.abc import TaskGroup
from tests import temporal_server
from tests.clis import alive
from tests.conftest import Repo
from tests.e2e.conftest import eventually
from tests.temporal_server import TemporalServer

from iterdev.core.host_settings import HostAgentSettings, HostRepository, HostSettings
from iterdev.engine.repository import Repository
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Executor
from iterdev.execution.temporal.connection import connect
from iterdev.execution.temporal.executor import TemporalExecutor
from iterdev.execution.temporal.host import Stopping, serve
from iterdev.execution.temporal.keys import add_key, read_keys
from iterdev.execution.temporal.names import agent_queue
from iterdev.surfaces.cli.main import run

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
REMOTE, KEY, LEASE = "TEST_REMOTE", "TEST_KEY", "TEST_LEASE"
"""Variables: the URL of the git remote, the file with the key, and the seconds without a heartbeat."""


@asynccontextmanager
async def on_hosts(context: AttemptContext, group: TaskGroup) -> AsyncIterator[Executor]:
    connection = await connect("default", read_keys(os.environ[KEY]))
    remote, lease = os.environ[REMOTE], float(os.environ[LEASE])
    async with TemporalExecutor(
        connection.client, context, group, address=remote, repository=remote, heartbeat_timeout=lease
    ) as executor:
        yield executor


async def host(name: str, home: Path) -> None:
    settings = msgspec.json.decode((home / "host.json").read_bytes(), type=HostSettings)
    connection = await connect("default", read_keys(os.environ[KEY]), identity=name)
    stopping = Stopping()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.stop.set)
    loop.add_signal_handler(signal.SIGUSR1, stopping.drain.set)
    await serve(
        connection.client,
        settings,
        name=name,
        home=home / "host",
        stopping=stopping,
        say=lambda text: print(text, flush=True),
    )


class Hosts:
    """The hosts of a repository, and what its commands need to know of them."""

    def __init__(self, repo: Repo, server: TemporalServer, *, lease: float) -> None:
        self.repo, self.server = repo, server
        self._root = repo.home.parent
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        remote, key = self._root / "remote.git", str(self._root / "key")
        repo.git("init", "-q", "--bare", str(remote))
        add_key(key)
        self.remote = str(remote)
        repo.env |= server.environment | {REMOTE: str(remote), KEY: key, LEASE: str(lease)}
        repo.env["PYTHONPATH"] = str(ROOT)

    def start(self, name: str, *, slots: int = 2) -> subprocess.Popen[bytes]:
        """Starts a host that offers the agent of the repository, or starts it again."""
        home = self._root / name
        if not home.exists():
            (home / "tmp").mkdir(parents=True)
            (home / ".gitconfig").write_text("[user]\n\tname = A host\n\temail = host@example.invalid\n")
        agent = [sys.executable, "-I", "-S", str(self.repo.agent_folder / "agent.py")]
        settings = HostSettings(
            name=name,
            agents={"mine": HostAgentSettings(command=tuple(agent), slots=slots)},
            repositories={self.remote: HostRepository()},
        )
        (home / "host.json").write_bytes(msgspec.json.encode(settings))
        env = self.repo.env | {"HOME": str(home), "ITERDEV_HOME": str(home / "iterdev"), "TMPDIR": str(home / "tmp")}
        with (home / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.execution.on_hosts", "--host", name, str(home)],
                cwd=home,
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes[name] = process
        return process

    def wait(self) -> None:
        """Returns when every host that was started asks for attempts."""
        asked = [temporal_server.program(), "task-queue", "describe", "--task-queue", agent_queue("mine")]
        asked += ["--task-queue-type", "activity", "--address", self.server.address, "--output", "json"]

        def polled() -> bool:
            said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
            return all(f'"{name}"' in said for name in self.processes)

        eventually(polled, f"the hosts {', '.join(self.processes)}")

    def kill(self, name: str) -> None:
        """As if its machine lost power: nothing of its processes is left."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()
        eventually(lambda: not alive(str(self._root / name)), f"the end of the processes of {name}")

    def agents(self, name: str) -> list[str]:
        """The agents that run on a host."""
        return [line for line in alive(str(self._root / name)) if "agent.py" in line]

    def log(self, name: str) -> str:
        return (self._root / name / "log").read_text()

    def stop(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for name, process in self.processes.items():
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise AssertionError(f"{name} did not end: {self.log(name)}") from None


def journal_of(repo: Repo, kind: type[T]) -> list[T]:
    """The events of a kind in the journal of the only session."""
    repository = Repository(repo.path)
    try:
        found = [repository.journal.read(session) for session in repository.sessions()]
        return [entry.event for entries in found for entry in entries if isinstance(entry.event, kind)]
    finally:
        repository.close()


@contextmanager
def hosts_of(repo: Repo, server: TemporalServer, *names: str, lease: float = 10) -> Iterator[Hosts]:
    hosts = Hosts(repo, server, lease=lease)
    try:
        for name in names:
            hosts.start(name)
        hosts.wait()
        yield hosts
    finally:
        hosts.stop()


def start(arguments: list[str]) -> int:
    return run(arguments, executor=on_hosts)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--host"]:
        anyio.run(host, sys.argv[2], Path(sys.argv[3]))
        sys.exit(0)
    sys.exit(start(sys.argv[1:]))
