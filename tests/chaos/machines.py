"""Machines on this one: each has its own network, processes and mounts, and sees no folder of another.

They are ports of one bridge. A machine is cut off by taking its port out, which gives nobody an error: the hard case.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
HUB_ADDRESS = "10.77.0.1"
SERVER = f"{HUB_ADDRESS}:7233"
GIT_URL = f"git://{HUB_ADDRESS}/project.git"
RESTART = 0.5
"""Seconds after which a worker that has ended is started again, as a service manager does."""


def missing() -> str:
    """Why there can be no machines here; empty if there can."""
    if os.geteuid() != 0:
        return "namespaces need root"
    absent = [program for program in ("ip", "unshare", "mount", "git") if shutil.which(program) is None]
    return f"{absent[0]} is not installed" if absent else ""


def run(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def eventually(condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience:.0f} s in vain for {what}")
        time.sleep(0.1)


class Network:
    """A bridge in a namespace of its own, and the namespaces of the machines around it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._prefix = f"iterdev{os.getpid()}"
        self._names = names
        self.hub = f"{self._prefix}-hub"

    def namespace(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    @contextmanager
    def up(self) -> Iterator[None]:
        try:
            run("ip", "netns", "add", self.hub)
            run("ip", "-n", self.hub, "link", "set", "lo", "up")
            run("ip", "-n", self.hub, "link", "add", "br0", "type", "bridge")
            # Else its address changes with its ports, and every machine is cut off.
            run("ip", "-n", self.hub, "link", "set", "br0", "address", "02:77:00:00:00:01")
            run("ip", "-n", self.hub, "addr", "add", f"{HUB_ADDRESS}/24", "dev", "br0")
            run("ip", "-n", self.hub, "link", "set", "br0", "up")
            for number, name in enumerate(self._names, 11):
                self._add(self.namespace(name), f"v-{name}", f"10.77.0.{number}/24")
            yield
        finally:
            for name in (self.hub, *map(self.namespace, self._names)):
                subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)

    def _add(self, namespace: str, port: str, address: str) -> None:
        run("ip", "netns", "add", namespace)
        run("ip", "link", "add", port, "netns", self.hub, "type", "veth", "peer", "name", "eth0", "netns", namespace)
        run("ip", "-n", self.hub, "link", "set", port, "master", "br0", "up")
        run("ip", "-n", namespace, "addr", "add", address, "dev", "eth0")
        for device in ("eth0", "lo"):
            run("ip", "-n", namespace, "link", "set", device, "up")

    def cut(self, name: str) -> None:
        run("ip", "-n", self.hub, "link", "set", f"v-{name}", "nomaster")

    def heal(self, name: str) -> None:
        run("ip", "-n", self.hub, "link", "set", f"v-{name}", "master", "br0")


class Program:
    """A program in the hub, which is killed and started again."""

    def __init__(self, network: Network, argv: Sequence[str], log: Path) -> None:
        self._argv, self._log = ["ip", "netns", "exec", network.hub, *argv], log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Machine:
    """A host: its power is one process, with which all others of it end."""

    def __init__(
        self, network: Network, name: str, folder: Path, command: Sequence[str], hidden: Sequence[Path]
    ) -> None:
        self.name, self.folder, self._network, self._command, self._hidden = name, folder, network, command, hidden
        self._power: subprocess.Popen[bytes] | None = None

    def on(self) -> None:
        hide = "".join(f"mount -t tmpfs none {folder} && " for folder in self._hidden)
        script = f'{hide}while :; do "$@"; sleep {RESTART}; done'
        argv = ["ip", "netns", "exec", self._network.namespace(self.name)]
        argv += ["unshare", "-m", "-p", "-f", "--kill-child=SIGKILL", "--mount-proc", "sh", "-c", script, "sh"]
        with (self.folder / "log").open("ab") as log:
            self._power = subprocess.Popen(
                [*argv, *self._command],
                env=environment(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def off(self) -> None:
        if self._power:
            self._power.kill()
            self._power.wait()
            self._power = None

    def processes(self) -> list[int]:
        """All processes of the machine, the first one first."""
        if self._power is None:
            return []
        inits = _children(self._power.pid)
        if not inits:
            return []
        namespace = _link(inits[0])
        return [inits[0], *(pid for pid in _pids() if pid != inits[0] and namespace and _link(pid) == namespace)]

    def workers(self) -> list[int]:
        """The worker, if it runs now: the first process only starts it again."""
        return [pid for pid in self.processes()[:1] for pid in _children(pid) if b"worker" in _command_line(pid)]

    def supervisors(self) -> list[int]:
        found = (pid for worker in self.workers() for pid in _children(worker))
        return [pid for pid in found if b"supervisor.py" in _command_line(pid)]

    def agents(self) -> list[int]:
        return [pid for pid in self.processes() if b"chaos/agent.py" in _command_line(pid)]

    def send(self, number: int, pids: Sequence[int]) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "PYTHONPATH": f"{ROOT}",
        "ITERDEV_HOME": str(home / "state"),
        "TEMPORAL_ADDRESS": SERVER,
    }


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]


def _link(pid: int) -> str:
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    return ""


def _command_line(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
