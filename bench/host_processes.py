"""Hosts on this machine: a Temporal server, a git remote, and workers that each have a home of their own."""

import csv
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import scratch
from iterdev.execution.temporal.keys import add_key
from iterdev.execution.temporal.names import agent_queue

T = TypeVar("T")

PROGRAM = shutil.which("temporal", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
"""As `make test` installs it."""
PATIENCE = 300.0
TRACE = "trace"
TICK = os.sysconf("SC_CLK_TCK")
AGENT = r"""
date +%s.%N > "{root}/began/$ITERDEV_TASK-$ITERDEV_ATTEMPT"
{wait}
echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt"
printf '{{"id":"%s","status":"completed","findings":"done"}}' "$ITERDEV_TASK" > "$ITERDEV_RESULT"
"""
UNTIL_OPENED = ': < "{root}/gate"'
STUBBORN = 'trap "" TERM; while [ "$ITERDEV_ATTEMPT" = 1 ]; do date +%s.%N > "{root}/alive"; sleep 0.1; done'
"""Its first attempt does not end when it is asked to, and leaves the time."""
AT_ONCE = ""
SETTINGS = """\
[run]
agent = "bench"
[project]
test = "true"
[agents.bench]
command = ["sh", {agent}]
"""
REMOTE = """\
[remote]
engine = "temporal"
git = {remote}
lease = {lease}
key = {key}
"""
HOST = """\
name = "{name}"
key = {key}
[agents.bench]
slots = {slots}
command = ["sh", {agent}]
[repositories.{remote}]
"""


class Machines:
    """An engine's repository with a table of tasks, and hosts for it unless everything is done here."""

    def __init__(self, root: Path, *, tasks: int, wait: str, lease: float, here: bool, status: str = "pending") -> None:
        self.root, self.tasks = root, tasks
        self.began = root / "began"
        self.began.mkdir(parents=True)
        self._agent, self._key, self._remote = root / "agent.sh", root / "key", root / "remote.git"
        self._agent.write_text(AGENT.format(root=root, wait=wait.format(root=root)))
        os.mkfifo(root / "gate")
        add_key(str(self._key))
        self.hosts: dict[str, subprocess.Popen[bytes]] = {}
        self.address = ""
        self.server = None if here else self._start_server()
        words = {"agent": _quoted(self._agent), "remote": _quoted(self._remote), "key": _quoted(self._key)}
        text = (SETTINGS if here else SETTINGS + REMOTE).format(lease=lease, **words)
        self.repo = scratch.make(root, **{"iterdev.toml": text})
        self.repo.git("init", "-q", "--bare", self._remote)
        _trace_git(self.repo.home)
        self.table = root / "tasks.csv"
        with self.table.open("w", newline="") as file:
            rows = ((f"DEV-{number:03}", "Write one file", status) for number in range(1, tasks + 1))
            csv.writer(file).writerows([("id", "description", "status"), *rows])

    @property
    def environment(self) -> dict[str, str]:
        return self.repo.environment | {"TEMPORAL_ADDRESS": self.address}

    def _start_server(self) -> "subprocess.Popen[bytes]":
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        words = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
        words += ["--db-filename", str(self.root / "temporal.db")]
        server = _started(self.root / "server.log", str(PROGRAM), *words)
        until(lambda: _listens(port) and self._temporal("operator", "cluster", "health"), "the Temporal server")
        return server

    def _temporal(self, *words: str) -> str | None:
        argv = [str(PROGRAM), *words, "--address", self.address]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None

    def start_host(self, name: str, *, slots: int = 2, address: str = "") -> None:
        """Starts a host, or starts it again, and returns when it asks for attempts."""
        home = self.root / name
        (home / ".config" / "iterdev").mkdir(parents=True, exist_ok=True)
        _trace_git(home)
        words = {"agent": _quoted(self._agent), "remote": _quoted(self._remote), "key": _quoted(self._key)}
        settings = HOST.format(name=name, slots=slots, **words)
        (home / ".config" / "iterdev" / "host.toml").write_text(settings)
        own = {"HOME": str(home), "ITERDEV_HOME": str(home / "iterdev"), "TMPDIR": str(home)}
        environment = self.environment | own | {"TEMPORAL_ADDRESS": address or self.address}
        asked = ("task-queue", "describe", "--task-queue", agent_queue("bench"), "--task-queue-type", "activity")
        ready, log = f"host {name}: ", home / "log"
        lines = log.read_text().count(ready) if log.exists() else 0
        self.hosts[name] = _started(log, "iterdev", "worker", cwd=home, environment=environment)
        until(lambda: log.read_text().count(ready) > lines, f"the host {name}")
        until(lambda: f'"{name}@' in (self._temporal(*asked, "--output", "json") or ""), f"the host {name}")

    def kill_host(self, name: str) -> None:
        """As if its machine lost power: nothing of its processes is left."""
        self.crash_worker(name)
        _send(signal.SIGKILL, self.pids_of(name))

    def crash_worker(self, name: str) -> None:
        worker = self.hosts.pop(name)
        worker.kill()
        worker.wait()

    def pids_of(self, name: str, variable: str = "") -> list[int]:
        """Of its processes, those that have a variable."""
        mark = f"HOME={self.root / name}\0".encode()
        return [pid for pid, environment in _environments() if mark in environment and variable.encode() in environment]

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """As if its machine slept."""
        stopped: list[int] = []
        # Parents first: a supervisor that runs wakes monitors that are stopped.
        while more := sorted(set(self.pids_of(name)).difference(stopped)):
            _send(signal.SIGSTOP, more)
            stopped += more
        try:
            yield
        finally:
            _send(signal.SIGCONT, stopped[::-1])

    @property
    def landed(self) -> list[str]:
        """The task of each commit on the session's branch."""
        trailer = "--format=%(trailers:key=Iterdev-Task,valueonly)"
        return self.repo.git("log", "--first-parent", trailer, "--branches=iterdev/*", "--not", "main").split()

    @property
    def cpu(self) -> float:
        """Seconds of processor time of server and hosts, with those of their processes that have ended."""
        pids = [pid for name in self.hosts for pid in self.pids_of(name)]
        return sum(map(cpu_of, [*pids, *([self.server.pid] if self.server else [])]))

    @contextmanager
    def engine(self, *words: str) -> Iterator["subprocess.Popen[str]"]:
        engine = subprocess.Popen(
            words, cwd=self.repo.top, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._engine = engine
        try:
            yield engine
        finally:
            if engine.poll() is None:
                engine.kill()
                engine.communicate()

    def run(self, concurrency: int) -> tuple[str, ...]:
        words = ("-y", "-c", str(concurrency), "--engine", "beat", "--json")
        return ("iterdev", "run", "--tasks", str(self.table), *words)

    def begun(self, number: int) -> dict[str, float]:
        """When each task's attempt of that number began, of those that have."""
        found = {path.name.rpartition("-")[0]: path.read_text() for path in self.began.glob(f"*-{number}")}
        return {task: float(text) for task, text in found.items() if text.endswith("\n")}

    def until_begun(self, number: int = 1) -> float:
        """When the last of all tasks began its attempt of that number."""

        def have_begun() -> bool:
            if self._engine.poll() is not None:
                raise SystemExit(f"iterdev has ended: {''.join(self._engine.communicate())}")
            return len(self.begun(number)) == self.tasks

        until(have_begun, f"the attempts {number} of {self.tasks} tasks")
        return max(self.begun(number).values())

    def open_gate(self) -> None:
        """Lets go the agents that wait, and those that will."""
        os.open(self.root / "gate", os.O_RDWR | os.O_NONBLOCK)

    def finish(self, engine: "subprocess.Popen[str]") -> None:
        """A run that did not do all of its work must not look good."""
        said, problems = engine.communicate(timeout=PATIENCE)
        if engine.returncode or json.loads(said)["counts"]["completed"] != self.tasks:
            raise SystemExit(f"iterdev did not complete every task: {said[:500]}{problems}")

    def close(self) -> None:
        for host in self.hosts.values():
            host.send_signal(signal.SIGTERM)
        for host in self.hosts.values():
            host.wait(PATIENCE)
        if self.server:
            self.server.kill()
            self.server.wait()


@contextmanager
def machines(
    root: Path, *, tasks: int = 1, wait: str = UNTIL_OPENED, lease: float = 120, here: bool = False, status: str = ""
) -> Iterator[Machines]:
    made = Machines(root, tasks=tasks, wait=wait, lease=lease, here=here, status=status or "pending")
    try:
        yield made
    finally:
        made.close()


class Relay:
    """Passes a connection to a server on, until it is cut: then nothing comes through, and nobody is told."""

    def __init__(self, address: str) -> None:
        host, _, port = address.partition(":")
        self._target = host, int(port)
        self._cut = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._cut.set()

    def close(self) -> None:
        for one in (self._listener, *self._sockets):
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near = self._listener.accept()[0]
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._sockets += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if self._cut.is_set():
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return


def until(look: Callable[[], T], what: str) -> T:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if seen := look():
            return seen
        time.sleep(0.05)
    raise SystemExit(f"waited in vain for {what}")


def git_commands(home: Path) -> list[str]:
    """The commands that git was given by those whose home it is."""
    lines = (line for file in (home / TRACE).iterdir() for line in file.read_text().splitlines())
    return [found["name"] for found in map(json.loads, lines) if found["event"] == "cmd_name"]


def _trace_git(home: Path) -> None:
    (home / TRACE).mkdir(exist_ok=True)
    (home / ".gitconfig").write_text(f"{scratch.WHO}[trace2]\n\teventTarget = {home / TRACE}\n")


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def cpu_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICK


def _send(number: int, pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _environments() -> Iterator[tuple[int, bytes]]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield int(process.name), (process / "environ").read_bytes()
        except OSError:
            continue


def _started(
    log: Path, *argv: str, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    with log.open("ab") as file:
        return subprocess.Popen(argv, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)


def _quoted(path: Path) -> str:
    return json.dumps(str(path))
