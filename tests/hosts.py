"""Hosts of a scratch repository: real `iterdev worker` processes, each with a HOME and a mirror of its own."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests import temporal_server
from tests.clis import alive
from tests.conftest import Repo
from tests.e2e.conftest import PATIENCE, eventually
from tests.temporal_server import TemporalServer

from iterdev.engine.repository import Repository
from iterdev.execution.temporal.keys import add_key
from iterdev.execution.temporal.names import agent_queue

T = TypeVar("T")

HOST = """\
name = "{name}"
key = "{key}"

[agents.{agent}]
slots = {slots}
{command}

[repositories."{remote}"]
belongings = "{belongings}"
"""
COMMAND = 'command = ["{python}", "-I", "-S", "{agent}"]'
REMOTE = """
[remote]
engine = "temporal"
git = "{remote}"
lease = {lease}
key = "{key}"
"""


class Hosts:
    def __init__(self, repo: Repo, server: TemporalServer, *, lease: float) -> None:
        self.repo, self.server = repo, server
        self.root = repo.home.parent
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._agents: dict[str, str] = {}
        self.remote, self.key = str(self.root / "remote.git"), str(self.root / "key")
        repo.git("init", "-q", "--bare", self.remote)
        add_key(self.key)
        repo.env |= server.environment
        with (repo.path / "iterdev.toml").open("a") as file:
            file.write(REMOTE.format(remote=self.remote, lease=lease, key=self.key))

    @property
    def with_tests(self) -> dict[str, str]:
        """The variables of a command that imports the tests."""
        return self.repo.env | {"PYTHONPATH": str(Path(__file__).parents[1])}

    def start(
        self,
        name: str,
        *,
        slots: int = 2,
        key: str = "",
        remote: str = "",
        agent: str = "mine",
        module: str = "iterdev",
        words: Sequence[str] = ("worker",),
        **variables: str,
    ) -> None:
        """Starts a host that offers the agent of the repository, or one that is installed; or starts it again."""
        home = self.root / name
        command = COMMAND.format(python=sys.executable, agent=self.repo.agent_folder / "agent.py")
        for folder in ("tmp", "belongings", ".config/iterdev"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        (home / ".gitconfig").write_text("[user]\n\tname = A host\n\temail = host@example.invalid\n")
        settings = HOST.format(
            name=name,
            key=key or self.key,
            slots=slots,
            agent=agent,
            command=command if agent == "mine" else "",
            remote=remote or self.remote,
            belongings=home / "belongings",
        )
        (home / ".config" / "iterdev" / "host.toml").write_text(settings)
        self._agents[name] = agent
        with (home / "log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", module, *words],
                cwd=home,
                env=self.environment(name) | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def environment(self, name: str) -> dict[str, str]:
        home = self.root / name
        places = {"HOME": str(home), "ITERDEV_HOME": str(home / "iterdev"), "TMPDIR": str(home / "tmp")}
        return self.with_tests | places

    def wait(self) -> None:
        """Returns when every host that was started asks for attempts."""

        def polled() -> bool:
            said = {agent: self._pollers(agent) for agent in {self._agents[name] for name in self.processes}}
            return all(f'"{name}@' in said[self._agents[name]] for name in self.processes)

        eventually(polled, f"the hosts {', '.join(self.processes)}")

    def _pollers(self, agent: str) -> str:
        asked = [temporal_server.program(), "task-queue", "describe", "--task-queue", agent_queue(agent)]
        asked += ["--task-queue-type", "activity", "--address", self.server.address, "--output", "json"]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout

    def kill(self, name: str) -> None:
        """As if its machine lost power: nothing of its processes is left."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()
        eventually(lambda: not alive(str(self.root / name)), f"the end of the processes of {name}")

    def agents(self, name: str) -> list[str]:
        """The agents that run on a host."""
        return [line for line in alive(str(self.root / name)) if "agent.py" in line]

    def log(self, name: str) -> str:
        return (self.root / name / "log").read_text()

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


@contextmanager
def hosts_of(repo: Repo, server: TemporalServer, *names: str, lease: float = 30) -> Iterator[Hosts]:
    hosts = Hosts(repo, server, lease=lease)
    try:
        for name in names:
            hosts.start(name)
        hosts.wait()
        yield hosts
    finally:
        hosts.stop()


def journal_of(repo: Repo, kind: type[T]) -> list[T]:
    """The events of a kind in the journals of all sessions."""
    repository = Repository(repo.path)
    try:
        found = [repository.journal.read(session) for session in repository.sessions()]
        return [entry.event for entries in found for entry in entries if isinstance(entry.event, kind)]
    finally:
        repository.close()
