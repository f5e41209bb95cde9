"""Kills at random: engines, process groups, supervisors, monitors, agents and git, at any time and at the end of a run.

    python -m tests.crash.soak --kills 1000 --workers 2 --seed 7

Each session is resumed until it is complete, and then nothing may be lost, landed twice, changed for the user, alive or
left behind. Prints a JSON line for every session with a violation, and the figures at the end.

A single-threaded program, so that it can fork: every command is a new process with everything loaded.
"""

import argparse
import atexit
import gc
import hashlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec
from tests.crash.checks import leftovers, processes_of, work_problems
from tests.crash.driver import adopt_orphans, has_children
from tests.crash.scenarios import ONE_SPRINT, TWO_SPRINTS, Scenario
from tests.crash.scratch import Scratch
from tests.fork_server import warm_up

from iterdev.__main__ import start
from iterdev.core.types import Engine, Status
from iterdev.engine.repository import STATE
from iterdev.host.processes import control_group, ownership, signals
from iterdev.host.processes.identity import identity
from iterdev.host.processes.supervisor import descendants, parents
from iterdev.store.journal import NAME

MEMORY = Path("/dev/shm")
COMMAND_LIMIT = 120.0
END_LIMIT = 15.0
COMMANDS = 60
"""More than any session takes."""
TABLE = msgspec.structs.replace(
    ONE_SPRINT,
    agent=r"""
cat > /dev/null
echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt"
(setsid sleep 300 > /dev/null 2>&1 &)
sleep 0.$(($$ % 4))
printf '{"id":"%s","status":"completed","findings":"done"}' "$ITERDEV_TASK" > "$ITERDEV_RESULT"
""",
)
"""Independent developers, each of which leaves a daemon."""
USUAL: dict[str, float] = {}
"""How long the last command took that was not killed, by the kind of the session."""
COMPLETE = {0, 1}
"""Exit codes of a command that came to its end."""
INTERRUPTED = {130, 0, 1, 5}
"""Exit codes of a command that was asked to end."""
STOPPED = {0, 1, 4, 5, 130}
"""Exit codes of a command that lost a process which it needed."""


STOPPING = (signal.SIGINT, signal.SIGTERM)


class Kind(msgspec.Struct, frozen=True):
    """What is run."""

    name: str
    scenario: Scenario
    arguments: Callable[[Scratch, random.Random], Sequence[str]]


def _table(scratch: Scratch, chance: random.Random) -> list[str]:
    names = [f"DEV-{number:03}" for number in range(1, chance.randint(5, 9))]
    rows = [
        f"{name},do it,developer,{';'.join(chance.sample(names[:place], k=min(place, chance.choice((0, 0, 1)))))}"
        for place, name in enumerate(names)
    ]
    path = scratch.root / "table.csv"
    path.write_text("\n".join(["id,description,role,deps", *rows]) + "\n")
    return ["--concurrency", "4", "--tasks", str(path)]


KINDS = (
    Kind("table", TABLE, _table),
    Kind("table", TABLE, _table),
    Kind("sprint", ONE_SPRINT, lambda _scratch, _chance: ["--pipeline", "sprint", "Add a greeting"]),
    Kind("multi-sprint", TWO_SPRINTS, lambda _scratch, _chance: ["--pipeline", "multi-sprint", "Keep greetings"]),
)


class Attack(msgspec.Struct, frozen=True):
    """A kill: the processes that are hit, given the engine's, and the signal."""

    name: str
    victims: Callable[[int], list[int]]
    signal: int = signal.SIGKILL
    codes: frozenset[int] = frozenset({-signal.SIGKILL, *STOPPED})


def _children(pid: int) -> list[int]:
    return [child for child, parent in parents() if parent == pid]


def _called(pid: int, word: bytes) -> bool:
    with suppress(OSError):
        return word in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _supervisors(engine: int) -> list[int]:
    return [pid for pid in _children(engine) if _called(pid, b"processes/supervisor.py")]


def _monitors(engine: int) -> list[int]:
    return [pid for server in _supervisors(engine) for pid in _children(server)]


def _programs(engine: int) -> list[int]:
    return [pid for monitor in _monitors(engine) for pid in _children(monitor)]


def _git(engine: int) -> list[int]:
    return [pid for pid in _children(engine) if _called(pid, b"git\0")]


ATTACKS = (
    Attack("engine", lambda engine: [engine]),
    Attack("engine", lambda engine: [engine]),
    Attack("group", lambda engine: [-engine]),
    Attack("engine, supervisor, monitors", lambda engine: [engine, *_supervisors(engine), *_monitors(engine)]),
    Attack("engine and git", lambda engine: [engine, *_git(engine)]),
    Attack("supervisor and monitors", lambda engine: [*_supervisors(engine), *_monitors(engine)]),
    Attack("supervisor", _supervisors),
    Attack("monitor", lambda engine: _monitors(engine)[:1]),
    Attack("agent", lambda engine: _programs(engine)[:1]),
    Attack("git", _git),
    Attack("monitors stopped", _monitors, signal.SIGSTOP),
    Attack("SIGTERM", lambda engine: [engine], signal.SIGTERM, frozenset(INTERRUPTED)),
    Attack("SIGINT", lambda engine: [engine], signal.SIGINT, frozenset(INTERRUPTED)),
    Attack("SIGINT to the group", lambda engine: [-engine], signal.SIGINT, frozenset(INTERRUPTED)),
)

ON_ENGINE = [attack for attack in ATTACKS if "engine" in attack.name or "group" in attack.name or "SIG" in attack.name]
AT_END = 0.3
"""How many of the kills are to be in the last moments of a run."""
LAST_SECONDS = 0.03
"""How long a command takes after the last event."""


class Figures(msgspec.Struct):
    sessions: dict[str, int] = {}
    kills: dict[str, int] = {}
    at_the_end: int = 0
    """Kills after the last task had ended."""
    violations: list[str] = []

    def add(self, other: "Figures") -> None:
        self.sessions = dict(Counter(self.sessions) + Counter(other.sessions))
        self.kills = dict(Counter(self.kills) + Counter(other.kills))
        self.at_the_end += other.at_the_end
        self.violations += other.violations


class Command:
    """The real command, in a forked process that leads a session and a group of its own."""

    def __init__(self, scratch: Scratch, arguments: Sequence[str]) -> None:
        self._errors = scratch.root / "stderr"
        self._errors.write_text("")
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            os.chdir(scratch.project)
            for number, path in ((0, Path(os.devnull)), (1, scratch.root / "stdout"), (2, self._errors)):
                os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
            code = 3
            try:
                atexit._clear()  # The parent's.
                signals.treat_as_interrupt()
                signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
                code = start([*arguments])
                atexit._run_exitfuncs()
            except KeyboardInterrupt:
                code = 130
            finally:
                os._exit(code)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)

    def wait(self, seconds: float) -> int | None:
        """The exit code, or None if it has not ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.002)
        return None

    @property
    def errors(self) -> str:
        return self._errors.read_text(errors="replace")


class Session:
    """One session with its kills; what is wrong is in `violations`."""

    def __init__(self, root: Path, chance: random.Random, kills: int, figures: Figures) -> None:
        self._chance, self._left, self._figures = chance, kills, figures
        self._engine = chance.choice([*Engine])
        self._kind = chance.choice(KINDS)
        self._scratch = Scratch(root, self._engine, self._kind.scenario)
        self.name = f"{self._kind.name}, {self._engine}"
        self._first = ["run", "--yes", "--engine", self._engine, *self._kind.arguments(self._scratch, chance)]
        self._journal = self._scratch.project / STATE / NAME
        self._engines: list[str] = []
        self._daemons = False
        """Whether daemons may be left: those of an engine, supervisor and monitors that were killed together.

        They are ended by the next command, if that is not killed before.
        """
        self.violations: list[str] = []

    def run(self) -> None:
        before = _fingerprint(self._scratch.project)
        for _ in range(COMMANDS):
            if (arguments := self._next()) is None:
                break
            self._run_command(arguments)
        else:
            self.violations.append("the session does not end")
        self.violations += self._problems()
        if _fingerprint(self._scratch.project) != before:
            self.violations.append("the user's branch, index or files changed")

    def _next(self) -> list[str] | None:
        """What a user would type: until everything is completed, and released by its engine."""
        session = self._scratch.session()
        if session is None:
            return self._first
        unfinished = [one for one in session.state.tasks.progress.values() if one.status is not Status.completed]
        name = session.state.session.id
        if session.state.lifecycle.is_over and unfinished:
            return ["retry", name, "--yes"]
        return None if session.state.lifecycle.is_over and not session.held else ["resume", name, "--yes"]

    def _run_command(self, arguments: Sequence[str]) -> None:
        began = time.monotonic()
        command = Command(self._scratch, arguments)
        if started := identity(command.pid):
            self._engines.append(ownership.name_of(started))
        at_end = self._chance.random() < AT_END
        attack = self._chance.choice(ON_ENGINE if at_end else ATTACKS) if self._left else None
        code = self._attack(command, attack, at_end=at_end) if attack else None
        code = command.wait(COMMAND_LIMIT) if code is None else code
        if code is None:
            self.violations.append(f"{arguments[0]} does not end after {attack.name if attack else 'no kill'}")
            _end_all()
            return
        if code in COMPLETE:
            USUAL[self._kind.name] = time.monotonic() - began
        allowed = attack.codes if attack else COMPLETE
        if code not in allowed or "Traceback" in command.errors:
            name = attack.name if attack else "no kill"
            self.violations.append(f"{arguments[0]} ended with {code} after {name}: {command.errors[-300:]}")
        self._daemons |= attack is not None and "engine, supervisor" in attack.name
        self._daemons &= code not in COMPLETE
        self._wait_for_processes(attack)

    def _attack(self, command: Command, attack: Attack, *, at_end: bool) -> int | None:
        """Waits for a random moment, or for the last event, and kills; returns the code of a command that was over."""
        end = time.monotonic() + (COMMAND_LIMIT if at_end else self._chance.uniform(0, USUAL.get(self._kind.name, 0.5)))
        while time.monotonic() < end and not (at_end and self._is_over()):
            if (code := command.wait(0.004)) is not None:
                return code
        if at_end and (code := command.wait(self._chance.uniform(0, LAST_SECONDS))) is not None:
            return code
        while not (victims := attack.victims(command.pid)):
            if (code := command.wait(0.004)) is not None:
                return code
        for pid in victims:
            with suppress(ProcessLookupError):
                os.killpg(-pid, attack.signal) if pid < 0 else os.kill(pid, attack.signal)
        self._left -= 1
        self._figures.kills[attack.name] = self._figures.kills.get(attack.name, 0) + 1
        self._figures.at_the_end += at_end
        return None

    def _is_over(self) -> bool:
        """Whether the last event is in the journal, and only files and worktrees are left."""
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{self._journal}?mode=ro", uri=True)) as db:
            newest = db.execute("SELECT body FROM events ORDER BY seq DESC LIMIT 20").fetchall()
            return any(b'"Finished"' in body for (body,) in newest)
        return False

    def _wait_for_processes(self, attack: Attack | None) -> None:
        end = time.monotonic() + END_LIMIT
        while has_children() and time.monotonic() < end and not self._daemons:
            time.sleep(0.002)
        if not self._daemons and has_children():
            self.violations.append(f"alive after {attack.name if attack else 'no kill'}: {processes_of(self._scratch)}")
            _end_all()

    def _problems(self) -> Iterator[str]:
        session = self._scratch.session()
        if session is None:
            yield "there is no session"
            return
        yield from work_problems(self._scratch, session)
        groups = (control_group.find(f"{ownership.GROUP}{name}") for name in self._engines)
        yield from (f"left: {group}" for group in groups if group)
        yield from islice(leftovers(self._scratch, session), 4)
        git = partial(subprocess.run, cwd=self._scratch.project, capture_output=True, text=True, check=False)
        checked = git(["git", "fsck", "--connectivity-only", "--no-dangling"])
        if checked.returncode or checked.stderr:
            yield f"fsck: {checked.stdout}{checked.stderr}"
        if any(self._scratch.project.glob(".git/objects/*/tmp_obj_*")) and "git" not in self._figures.kills:
            yield "temporary objects"
        doctor = Command(self._scratch, ["doctor", "--fix"])
        if doctor.wait(COMMAND_LIMIT) not in {0, 1}:
            yield f"doctor: {doctor.errors}"
        replay = Command(self._scratch, ["replay", session.state.session.id])
        if (code := replay.wait(COMMAND_LIMIT)) != 0:
            yield f"replay ended with {code}"


def _fingerprint(project: Path) -> str:
    """The user's branch, index and files."""
    own = [path for path in project.rglob("*") if not {".git", ".workflow"} & {*path.relative_to(project).parts}]
    files = [path for path in own if path.is_file()] + [project / ".git" / name for name in ("index", "HEAD", "config")]
    main = subprocess.run(["git", "rev-parse", "main"], cwd=project, capture_output=True, check=True).stdout
    digest = hashlib.sha256(main)
    for path in sorted(files):
        digest.update(str(path).encode() + path.read_bytes())
    return digest.hexdigest()


def _end_all() -> None:
    """Kills what must not disturb the next session."""
    end = time.monotonic() + END_LIMIT
    while has_children() and time.monotonic() < end:
        for pid in descendants():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def soak(kills: int, seed: int) -> Figures:
    chance, figures, number = random.Random(seed), Figures(), 0
    folder = Path(tempfile.mkdtemp(dir=MEMORY if os.access(MEMORY, os.W_OK) else None, prefix="iterdev-soak-"))
    try:
        while (left := kills - sum(figures.kills.values())) > 0:
            number += 1
            session = Session(folder / str(number), chance, min(left, chance.randint(3, 8)), figures)
            session.run()
            figures.sessions[session.name] = figures.sessions.get(session.name, 0) + 1
            if session.violations:
                found = [f"seed {seed}, session {number} ({session.name}): {text}" for text in session.violations]
                figures.violations += found
                print("\n".join(found), file=sys.stderr, flush=True)
            shutil.rmtree(folder / str(number), ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    figures = Figures()
    if asked.workers > 1:
        share = ["--kills", str(-(-asked.kills // asked.workers))]
        words = [sys.executable, "-m", "tests.crash.soak", *share, "--seed"]
        seeds = range(asked.seed, asked.seed + asked.workers)
        workers = [subprocess.Popen([*words, str(seed)], stdout=subprocess.PIPE) for seed in seeds]
        for worker in workers:
            figures.add(msgspec.json.decode(worker.communicate()[0], type=Figures))
    else:
        adopt_orphans()
        warm_up()
        gc.freeze()
        figures = soak(asked.kills, asked.seed)
    print(msgspec.json.encode(figures).decode(), flush=True)
    return 1 if figures.violations else 0


if __name__ == "__main__":
    sys.exit(main())
