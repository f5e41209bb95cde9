"""A session on three hosts, while machines, programs and the network between them fail."""

import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct
from tests.chaos.machines import (
    BIN,
    GIT_URL,
    HUB_ADDRESS,
    PATIENCE,
    ROOT,
    SERVER,
    Machine,
    Network,
    Program,
    environment,
    eventually,
)
from tests.chaos.verdict import AgentRun, GivenAway, Verdict, verdict

from iterdev.core.session.events import AttemptEnded, Interrupted
from iterdev.engine.repository import Repository
from iterdev.execution.temporal.keys import add_key

HOSTS = ("h1", "h2", "h3")
ENGINE = "eng"
DONE = {0, 1}
"""Exit codes of an engine that came to the end; nothing verifies the files of these tasks, which is 1."""
MOST_RESUMES = 30
LIMIT = 3600.0


class Plan(Struct, frozen=True, kw_only=True):
    """What is run."""

    tasks: int
    slots: int = 4
    agent_seconds: float = 1.5
    lease: float = 10
    command: tuple[str, ...] = ("iterdev", "worker")
    """What is a host."""


class Trouble(Struct, frozen=True):
    """What happens when a part of the tasks has landed."""

    at: float
    name: str
    act: Callable[["Chaos"], None]


class Chaos:
    """The machines, and what can happen to them."""

    def __init__(self, plan: Plan, folder: Path, say: Callable[[str], None]) -> None:
        self.plan, self.say, self._folder = plan, say, folder
        self.frozen = set[str]()
        self.network = Network((ENGINE, *HOSTS))
        self.repository = folder / ENGINE / "project"
        self._tasks = [f"DEV-{number:03}" for number in range(1, plan.tasks + 1)]
        hub = folder / "hub"
        temporal = [str(BIN / "temporal"), "server", "start-dev", "--headless", "--ip", "0.0.0.0", "--port", "7233"]
        temporal += ["--db-filename", str(hub / "temporal.db"), "--log-level", "error"]
        self.server = Program(self.network, temporal, hub / "temporal.log")
        daemon = ["git", "daemon", "--reuseaddr", f"--listen={HUB_ADDRESS}", f"--base-path={hub}", "--export-all"]
        self.git = Program(self.network, [*daemon, "--enable=receive-pack", str(hub)], hub / "git.log")
        folders = [folder / name for name in (ENGINE, *HOSTS)]
        self.hosts = {
            name: Machine(
                self.network, name, folder / name, plan.command, [one for one in folders if one != folder / name]
            )
            for name in HOSTS
        }
        self._engine: subprocess.Popen[bytes] | None = None
        self._engine_is_wanted = threading.Event()

    @contextmanager
    def prepared(self) -> Iterator[None]:
        for name in ("hub", ENGINE, *HOSTS):
            (self._folder / name).mkdir()
        self._write()
        with self.network.up():
            try:
                self.git.start()
                self.server.start()
                eventually(self._server_answers, "the Temporal server")
                for host in self.hosts.values():
                    host.on()
                yield
            finally:
                for host in self.hosts.values():
                    host.off()
                if self._engine and self._engine.poll() is None:
                    self._engine.kill()
                    self._engine.wait()
                self.server.kill()
                self.git.kill()

    def _write(self) -> None:
        add_key(str(self._folder / "remote.key"))
        agent = ["python3", "-I", "-S", str(ROOT / "tests/chaos/agent.py")]
        for name in (ENGINE, *HOSTS):
            home = self._folder / name
            (home / ".gitconfig").write_text(f"[user]\n\tname = {name}\n\temail = {name}@example.invalid\n")
            key = home / ".config/iterdev/remote.key"
            key.parent.mkdir(parents=True)
            key.write_bytes((self._folder / "remote.key").read_bytes())
            key.chmod(0o600)
            if name in HOSTS:
                (home / "stamps").mkdir()
                command = [*agent, str(home / "stamps"), str(self.plan.agent_seconds)]
                (home / ".config/iterdev/host.toml").write_text(
                    f'name = "{name}"\n[agents.stamper]\nslots = {self.plan.slots}\ncommand = {command!r}\n'
                    f'[repositories."{GIT_URL}"]\n'
                )
        git = ["git", "-C", str(self.repository)]
        subprocess.run(["git", "init", "-q", "--bare", str(self._folder / "hub/project.git")], check=True)
        subprocess.run(["git", "init", "-q", "-b", "main", str(self.repository)], check=True)
        subprocess.run([*git, "remote", "add", "origin", GIT_URL], check=True)
        (self.repository / "iterdev.toml").write_text(
            f'[run]\nagent = "stamper"\n[remote]\nengine = "temporal"\nlease = {self.plan.lease}\n'
            f"[agents.stamper]\ncommand = {agent!r}\n[limits]\nattempt = 300\nwave = 3600\n"
        )
        rows = "".join(f"{task},write its file,developer,\n" for task in self._tasks)
        (self.repository.parent / "tasks.csv").write_text(f"id,description,role,deps\n{rows}")
        for words in (["add", "-A"], ["commit", "-q", "-m", "first"]):
            subprocess.run([*git, *words], check=True, env=environment(self.repository.parent))

    def _in_engine(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.network.namespace(ENGINE), *words]

    def _server_answers(self) -> bool:
        asked = self._in_engine(str(BIN / "temporal"), "operator", "cluster", "health", "--address", SERVER)
        return subprocess.run(asked, capture_output=True, check=False).returncode == 0

    def run(self, troubles: Sequence[Trouble]) -> Verdict:
        """Runs the session to its end, with everything that happens meanwhile."""
        failures = list[BaseException]()
        happening = threading.Thread(target=self._happen, args=(troubles, failures), daemon=True)
        happening.start()
        self._run_engine()
        happening.join(PATIENCE)
        if failures:
            raise failures[0]
        return self._verdict()

    def _run_engine(self) -> None:
        words = ["run", "-y", "--engine", "beat", "-c", str(len(HOSTS) * self.plan.slots), "--tasks", "../tasks.csv"]
        deadline = time.monotonic() + LIMIT
        for _ in range(MOST_RESUMES):
            with (self._folder / "engine.log").open("ab") as log:
                self._engine = subprocess.Popen(
                    self._in_engine("iterdev", *words),
                    cwd=self.repository,
                    env=environment(self.repository.parent),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
                code = self._engine.wait(deadline - time.monotonic())
            if code in DONE:
                return
            self.say(f"the engine ended with {code}, and is resumed")
            words = ["resume", "-y"] if self.landed() or self._sessions() else words
        raise AssertionError(f"the session did not end; see {self._folder / 'engine.log'}")

    def _sessions(self) -> bool:
        """Whether one was begun; an engine that finds no host ends before its folder is there."""
        return any(line.startswith("session ") for line in (self._folder / "engine.log").read_text().splitlines())

    def _happen(self, troubles: Sequence[Trouble], failures: list[BaseException]) -> None:
        try:
            for trouble in troubles:
                eventually(lambda at=trouble.at: len(self.landed()) >= at * self.plan.tasks, trouble.name, LIMIT)
                self.say(f"{len(self.landed())}/{self.plan.tasks} landed: {trouble.name}")
                trouble.act(self)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that waits
            failures.append(error)

    def landed(self) -> list[str]:
        """The task of each commit on the session's branch."""
        trailer = "--format=%(trailers:key=Iterdev-Task,valueonly)"
        return self._git("log", "--first-parent", trailer, "--branches=iterdev/*", "--not", "main").split()

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self.repository, capture_output=True, text=True, check=False)
        return done.stdout

    def kill_engine(self) -> None:
        if self._engine and self._engine.poll() is None:
            self._engine.send_signal(signal.SIGKILL)

    def kill_worker(self, name: str, *, supervisor: bool = False) -> None:
        host = self.hosts[name]
        eventually(lambda: bool(host.workers()), f"the worker of {name}")
        host.send(signal.SIGKILL, [*(host.supervisors() if supervisor else ()), *host.workers()])

    def power_cycle(self, name: str, seconds: float) -> None:
        self.hosts[name].off()
        time.sleep(seconds)
        self.hosts[name].on()

    def cut_off(self, name: str, seconds: float) -> None:
        self.network.cut(name)
        time.sleep(seconds)
        self.network.heal(name)

    def freeze(self, name: str, seconds: float) -> None:
        host = self.hosts[name]
        self.frozen.add(name)
        # The first one, which starts workers, last to stop and first to go on.
        stopped = host.processes()[::-1]
        host.send(signal.SIGSTOP, stopped)
        time.sleep(seconds)
        host.send(signal.SIGCONT, stopped[::-1])

    def drain(self, name: str) -> None:
        """The service manager starts the host again when it has ended."""
        self.hosts[name].send(signal.SIGUSR1, self.hosts[name].workers())

    def restart(self, program: Program, seconds: float) -> None:
        program.kill()
        time.sleep(seconds)
        program.start()

    def _verdict(self) -> Verdict:
        branch = self._git("for-each-ref", "--format=%(refname)", "refs/heads/iterdev/").split()
        files = self._git("ls-tree", "-r", "--name-only", branch[0]).split() if branch else []
        found = verdict(self._tasks, files, self.landed(), self.agent_runs(), self.frozen, self.given_away())
        left = [f"{host.name}: {pid}" for host in self.hosts.values() for pid in host.agents()]
        return Verdict(
            tasks=found.tasks,
            agents=found.agents,
            lost=found.lost,
            landed_twice=found.landed_twice,
            overlaps=found.overlaps,
            outlived=found.outlived,
            left=tuple(left),
        )

    def given_away(self) -> list[GivenAway]:
        """The attempts that were interrupted: the journal has their ends by the clock of the machine."""
        behind = time.time() - time.monotonic()
        repository = Repository(self.repository)
        try:
            entries = [one for session in repository.sessions() for one in repository.journal.read(session)]
        finally:
            repository.close()
        return [
            GivenAway(task=event.task, at=entry.at - behind)
            for entry in entries
            if isinstance(event := entry.event, AttemptEnded) and isinstance(event.outcome, Interrupted)
        ]

    def agent_runs(self) -> list[AgentRun]:
        runs = []
        for name in HOSTS:
            for file in (self._folder / name / "stamps").iterdir():
                with suppress(IndexError, ValueError):
                    stamps = [float(line) for line in file.read_text().splitlines()]
                    runs.append(AgentRun(task=file.name.partition(".")[0], host=name, first=stamps[0], last=stamps[-1]))
        return runs


FULL = (
    Trouble(0.05, "h1 loses power for 4 s", lambda chaos: chaos.power_cycle("h1", 4)),
    Trouble(0.12, "the engine is killed", Chaos.kill_engine),
    Trouble(0.18, "the worker of h2 is killed", lambda chaos: chaos.kill_worker("h2")),
    Trouble(0.24, "the server is killed for 3 s", lambda chaos: chaos.restart(chaos.server, 3)),
    Trouble(0.32, "h3 is cut off for 15 s", lambda chaos: chaos.cut_off("h3", 15)),
    Trouble(0.40, "git is away for 5 s", lambda chaos: chaos.restart(chaos.git, 5)),
    Trouble(0.46, "worker and supervisor of h1 are killed", lambda chaos: chaos.kill_worker("h1", supervisor=True)),
    Trouble(0.52, "the engine is cut off for 8 s", lambda chaos: chaos.cut_off(ENGINE, 8)),
    Trouble(0.58, "h2 is frozen for 14 s", lambda chaos: chaos.freeze("h2", 14)),
    Trouble(0.66, "h3 is drained", lambda chaos: chaos.drain("h3")),
    Trouble(0.70, "the engine is killed", Chaos.kill_engine),
    Trouble(0.72, "the engine is killed again", Chaos.kill_engine),
    Trouble(0.78, "all workers are killed", lambda chaos: [chaos.kill_worker(name) for name in HOSTS] and None),
    Trouble(0.84, "h1 is cut off for 10 s", lambda chaos: chaos.cut_off("h1", 10)),
    Trouble(0.90, "h2 loses power for 2 s", lambda chaos: chaos.power_cycle("h2", 2)),
)
SHORT = (
    Trouble(0.10, "the engine is killed", Chaos.kill_engine),
    Trouble(0.15, "h3 is cut off for 10 s", lambda chaos: chaos.cut_off("h3", 10)),
    Trouble(0.30, "worker and supervisor of h1 are killed", lambda chaos: chaos.kill_worker("h1", supervisor=True)),
    Trouble(0.45, "the server is killed for 1 s", lambda chaos: chaos.restart(chaos.server, 1)),
    Trouble(0.55, "h2 loses power for 1 s", lambda chaos: chaos.power_cycle("h2", 1)),
    Trouble(0.70, "git is away for 2 s", lambda chaos: chaos.restart(chaos.git, 2)),
    Trouble(0.80, "h1 is frozen for 9 s", lambda chaos: chaos.freeze("h1", 9)),
)


def _cut_off_at_work(chaos: Chaos) -> None:
    eventually(lambda: bool(chaos.hosts["h1"].agents()), "an agent on h1")
    chaos.cut_off("h1", 15)


CUT_OFF = (Trouble(0.0, "h1 is cut off for 15 s while its agents work", _cut_off_at_work),)
"""What tells a lease from heartbeats that are only sent."""
CONTROL = ("python3", "-m", "tests.chaos.control_host", "worker")


def run_chaos(
    plan: Plan, troubles: Sequence[Trouble], say: Callable[[str], None] = lambda _: None, *, is_control: bool = False
) -> Verdict:
    """The folder of a run that failed stays, with the logs of all machines; a control has to fail."""
    folder = Path(tempfile.mkdtemp(prefix="iterdev-chaos-"))
    say(f"in {folder}")
    chaos = Chaos(plan, folder, say)
    with chaos.prepared():
        found = chaos.run(troubles)
    if found.holds is not is_control:
        shutil.rmtree(folder)
    return found
