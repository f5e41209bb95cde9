"""Runs a scenario, kills the process that works on it at one of its kill points, and checks what is left at the end.

    python -m tests.crash.driver SCRATCH ENGINE SCENARIO FIRST STEP KILLS

The kill points are FIRST, FIRST + STEP, ... of every stage. With several KILLS, the processes that continue are killed
at their own kill points of that number as well. Prints one JSON line for each run.

A single-threaded program of its own, so that it can fork: every command is a new process with everything loaded.
"""

import ctypes
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import NoReturn

import anyio
import msgspec
from tests.crash.checks import leftovers, problems, processes_of
from tests.crash.scenarios import SCENARIOS, Accept, Answer, RollBack, RunSession, Scenario, Step, UndoAccept, Update
from tests.crash.scratch import Scratch
from tests.fork_server import warm_up

from iterdev.app.answer import answer
from iterdev.app.branches.update import request_update
from iterdev.app.completion import accept, undo_accept
from iterdev.app.resume import is_done, run_session
from iterdev.app.rollback import roll_back
from iterdev.app.start import start
from iterdev.core.request import Request
from iterdev.core.types import Engine
from iterdev.core.views.session import SessionView
from iterdev.engine.effects import Effects, Fields, Observer
from iterdev.engine.loop import OneStep, RunScope
from iterdev.engine.recovery import complete_run
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver, drive
from iterdev.host.git import command

END_LIMIT = 10.0
STEPS = 200
"""More commands than any scenario takes."""
NEVER = 1_000_000
TOUCHING = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "subprocess.Popen", "sqlite3.connect"}
"""Events of Python after which something outside of the process is different."""
PR_SET_CHILD_SUBREAPER = 36


class KillPoints:
    """Kills its own process at the n-th kill point, counted from 0; logs the names of those that were reached.

    There is one before each effect, and one after each that succeeds; with kinds, only at the first of each kind.
    """

    def __init__(self, at: int, log: Path, kind: Callable[[str, Fields], str] | None = None) -> None:
        self._at, self._log, self._kind, self._passed = at, log, kind, 0
        self._seen: set[str] = set()

    @contextmanager
    def __call__(self, name: str, fields: Fields) -> Iterator[None]:
        effect = self._kind(name, fields) if self._kind else " ".join((name, *map(str, fields.values())))
        counts = bool(effect) and not (self._kind and effect in self._seen)
        self._seen.add(effect)
        if counts:
            self._pass(f"before {effect}")
        yield
        if counts:
            self._pass(f"after {effect}")

    def _pass(self, name: str) -> None:
        with self._log.open("a") as file:
            file.write(f"{name}\n")
        if self._passed == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        self._passed += 1


class EndPoints:
    """Kills its own process at the n-th file, folder or process that it touches when the session is over."""

    def __init__(self, at: int, log: Path) -> None:
        self._at, self._log, self._passed = at, log, 0
        self._lock = threading.Lock()
        self.is_over = False
        sys.addaudithook(self._hear)

    def show(self, view: Callable[[int], SessionView]) -> None:
        self.is_over = self.is_over or view(1).outcome.is_over

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        written = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if not self.is_over or not (written or event in TOUCHING) or str(self._log) == str(args[0]):
            return
        with self._lock:
            number = os.open(self._log, os.O_WRONLY | os.O_APPEND)
            os.write(number, f"{event} {args[0]!r}\n".encode())
            os.close(number)
            if self._passed == self._at:
                os.kill(os.getpid(), signal.SIGKILL)
            self._passed += 1


class ScenarioRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a scenario, from some stage to its end."""

    killed_at: Mapping[str, Sequence[str]]
    """By stage: the kill points at which a process was killed."""
    problems: Sequence[str]


class CommandEnd(msgspec.Struct, frozen=True, kw_only=True):
    points: list[str]
    killed: bool
    status: int


def run_command(scratch: Scratch, step: Step, kill_at: int) -> CommandEnd:
    """Runs a step in a forked child, which is killed if it reaches the kill point."""
    log = scratch.root / "points"
    log.write_text("")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.chdir(scratch.project)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        scenario = scratch.scenario
        points = EndPoints(kill_at, log) if scenario.at_end else KillPoints(kill_at, log, scenario.kind)
        _carry_out(scratch, step, points)
    status = os.waitpid(child, 0)[1]
    return CommandEnd(points=log.read_text().splitlines(), killed=os.WIFSIGNALED(status), status=status)


def _carry_out(scratch: Scratch, step: Step, kill_points: KillPoints | EndPoints) -> NoReturn:
    try:
        repository = Repository(scratch.project, scratch.scenario.teams)
        match step:
            case RunSession() if isinstance(kill_points, EndPoints):
                _run_to_its_end(scratch, repository, kill_points)
            case RunSession(one_step=one_step):
                _run_session(scratch, repository, OneStep() if one_step else RunScope(), kill_points)
            case Answer():
                _answer(repository, step)
            case RollBack(task) if isinstance(kill_points, KillPoints):
                roll_back(repository, repository.last_active(), task, effect=Effects(kill_points))
            case Update():
                _update(repository)
            case Accept(options):
                accept(repository, repository.last_active(), options=options, effect=_watched(kill_points))
            case UndoAccept():
                undo_accept(repository, repository.last_active(), effect=_watched(kill_points))
    except Exception as error:  # noqa: BLE001 - a forked child must not run on into its parent's code
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def _watched(kill_points: KillPoints | EndPoints) -> Effects:
    if isinstance(kill_points, KillPoints):
        return Effects(kill_points)
    kill_points.is_over = True
    return Effects()


def _run_to_its_end(scratch: Scratch, repository: Repository, points: EndPoints) -> None:
    """As `iterdev run` and `iterdev resume` do it, with what the configuration has done at the end."""
    sessions = repository.sessions()
    session = sessions[-1] if sessions else start(repository, _request(scratch))
    points.is_over = is_done(repository, session)
    anyio.run(run_session, repository, session, RunObserver(show=points.show))


def _request(scratch: Scratch) -> Request:
    return msgspec.structs.replace(scratch.scenario.request, engine=scratch.engine)


def _run_session(scratch: Scratch, repository: Repository, scope: RunScope, kill_points: Observer) -> None:
    sessions = repository.sessions()
    session = sessions[-1] if sessions else start(repository, _request(scratch))
    if is_done(repository, session):
        complete_run(repository, session, Effects(kill_points))
    else:
        anyio.run(lambda: drive(repository, session, RunObserver(), scope=scope, observers=(kill_points,)))


def _update(repository: Repository) -> None:
    commit_as_user(repository.top)
    request_update(repository, repository.last_active())


def commit_as_user(top: Path) -> None:
    with (top / "README.md").open("a") as readme:
        readme.write("the user\n")
    (top / "UPDATE-001.txt").write_text("the user\n")
    git = partial(command.git, cwd=top, env=command.Identity("t", "t@example.invalid").variables)
    git("add", "-A")
    git("commit", "--quiet", "--message=Mine", "--trailer=Iterdev-Task: UPDATE-001")


def _answer(repository: Repository, step: Answer) -> None:
    session = repository.last_active()
    table = repository.folder(repository.state(session)) / "tasks.csv"
    table.write_text(step.edit(table.read_text()))
    answer(repository, session, step.gate, step.choice)


def wait_for_processes(scratch: Scratch) -> list[str]:
    """The processes that are still alive when all those of a killed engine should have ended."""
    end = time.monotonic() + END_LIMIT
    while has_children() and time.monotonic() < end:
        time.sleep(0.002)
    return [f"outlived the engine: {process}" for process in processes_of(scratch)] if has_children() else []


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant that loses its own: none can hide from `has_children`."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def has_children() -> bool:
    """Whether a descendant is alive; those that have ended are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def run_scenario(
    scratch: Scratch,
    kills: Mapping[str, Sequence[int]],
    *,
    before: Callable[[str], None] = lambda _: None,
) -> ScenarioRun:
    """Runs the scenario from where it is, with kills at these kill points of some stages.

    After the last kill it goes on until it is in a stage of the run without kills. Without a kill in one of its
    batches, a sprint is one command. What is left on the disk is checked after the command that follows a kill; if
    there are no kills at all, the scenario goes in batches to its end, with checks after every command.
    """
    left = {stage: [*points] for stage, points in kills.items()}
    parts = {stage.partition(":")[0] for stage in kills}
    killed_at: dict[str, list[str]] = {stage: [] for stage in kills}
    found: list[str] = []
    begun: set[str] = set()
    check, stage = not kills, ""
    session = scratch.session()
    for _ in range(STEPS):
        over = session is not None and session.state.lifecycle.is_over
        if over and not check:
            break
        step = RunSession(stage) if over else scratch.scenario.next_step(session.state if session else None)
        stage = "" if isinstance(step, Answer) else step.stage
        if kills and not any(left.values()) and not check and stage in scratch.stages:
            break
        if stage and stage not in begun:
            before(stage)
            begun.add(stage)
        left = {name: points for name, points in left.items() if name == stage or name not in begun}
        if isinstance(step, RunSession) and step.part and kills and step.part not in parts:
            step = RunSession(step.part)
        points = left.get(stage) or [NEVER]
        ended = run_command(scratch, step, points.pop(0))
        if ended.killed:
            killed_at[stage].append(ended.points[-1])
            found += wait_for_processes(scratch)
        session = scratch.session()
        if ended.killed:
            check = True
            continue
        if ended.status or session is None:
            found.append(f"a command ended with {ended.status}")
            break
        if stage and check:
            found += [f"after {stage}: {problem}" for problem in leftovers(scratch, session)]
            check = not kills and not session.state.lifecycle.is_over
    else:
        found.append("the scenario does not end")
    found += problems(scratch, session) if session else ["there is no session"]
    return ScenarioRun(killed_at=killed_at, problems=found)


def run_without_kills(scratch: Scratch) -> None:
    """Copies the repository before each stage."""
    run = run_scenario(scratch, {}, before=scratch.copy)
    if run.problems:
        raise SystemExit(f"the scenario without a kill: {run.problems}")


def kill_at_each_point(scratch: Scratch, first: int, step: int, kills: int) -> Iterator[ScenarioRun]:
    """For each group and number, one run with kills at the kill point of that number in each stage that has so many."""
    for group in scratch.scenario.groups:
        left = [stage for stage in scratch.stages if stage.startswith(tuple(group))]
        for point in count(first, step):
            if not left:
                break
            scratch.restore(left[0])
            run = run_scenario(scratch, dict.fromkeys(left, [point] * kills))
            yield run
            left = [stage for stage in left if run.killed_at[stage]]


def main(root: Path, engine: Engine, scenario: Scenario, numbers: list[int]) -> None:
    adopt_orphans()
    warm_up()
    gc.freeze()
    scratch = Scratch(root, engine, scenario)
    run_without_kills(scratch)
    for run in kill_at_each_point(scratch, *numbers):
        print(msgspec.json.encode(run).decode(), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Engine(sys.argv[2]), SCENARIOS[sys.argv[3]], [*map(int, sys.argv[4:])])
