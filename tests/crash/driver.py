"""Plays a story, kills whoever is at work at one of the marks, lets others go on, and checks what is left.

    python -m tests.crash.driver SCRATCH ENGINE STORY SHARD SHARDS
        kills at every mark of a shard, and prints one JSON line for each telling of the story
    python -m tests.crash.driver SCRATCH ENGINE STORY CHAPTER twice MARK
        kills at MARK of the chapter, and then whoever goes on at each of their marks

A single-threaded program of its own, so that it can fork: every command is a fresh process with everything loaded.
"""

import ctypes
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NoReturn

import anyio
import msgspec
from tests.crash.checks import conflicts, problems, processes_of, unrest
from tests.crash.scratch import Scratch
from tests.crash.stories import STORIES, Answer, GoOn, RollBack, Step, Story
from tests.fork_server import warm_up

from iterdev.app.answer import answer
from iterdev.app.rollback import roll_back
from iterdev.app.start import start
from iterdev.core.types import Engine
from iterdev.engine import run
from iterdev.engine.effects import Effects, Fields, Observer
from iterdev.engine.loop import OneStep, RunScope
from iterdev.engine.repository import Repository

PATIENCE = 10.0
STEPS = 100
"""More commands than any story takes."""
NEVER = 1_000_000
PR_SET_CHILD_SUBREAPER = 36


class KillPoints:
    """Kills its own process at the n-th mark, counted from 0; remembers the names of those before.

    There is a mark before each effect, and one after each that succeeds.
    """

    def __init__(self, at: int, log: Path) -> None:
        self._at, self._log, self._passed = at, log, 0

    @contextmanager
    def __call__(self, name: str, fields: Fields) -> Iterator[None]:
        effect = " ".join((name, *map(str, fields.values())))
        self._pass(f"before {effect}")
        yield
        self._pass(f"after {effect}")

    def _pass(self, name: str) -> None:
        with self._log.open("a") as file:
            file.write(f"{name}\n")
        if self._passed == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        self._passed += 1


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """A story from some moment to its end."""

    kills: Mapping[str, Sequence[int]]
    """By chapter: the marks at which somebody was to be killed, each counted anew."""
    at: Mapping[str, Sequence[str]]
    """By chapter: the names of those at which somebody was."""
    conflicts: int
    problems: Sequence[str]


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one command."""

    marks: list[str]
    killed: bool
    status: int


def do(scratch: Scratch, step: Step, kill_at: int) -> Done:
    """Lets a forked child carry out a step, and be killed if it gets as far as the mark."""
    log = scratch.root / "marks"
    log.write_text("")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.chdir(scratch.project)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _carry_out(scratch, step, KillPoints(kill_at, log))
    status = os.waitpid(child, 0)[1]
    return Done(marks=log.read_text().splitlines(), killed=os.WIFSIGNALED(status), status=status)


def _carry_out(scratch: Scratch, step: Step, kill_points: Observer) -> NoReturn:
    try:
        repository = Repository(scratch.project, scratch.story.teams)
        match step:
            case GoOn(one_step=one_step):
                _go_on(scratch, repository, OneStep() if one_step else RunScope(), kill_points)
            case Answer():
                _answer(repository, step)
            case RollBack(task):
                roll_back(repository, repository.newest(), task, effect=Effects(kill_points))
    except Exception as error:  # noqa: BLE001 - a forked child must not run on into its parent's code
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def _go_on(scratch: Scratch, repository: Repository, scope: RunScope, kill_points: Observer) -> None:
    sessions = repository.sessions()
    request = msgspec.structs.replace(scratch.story.request, engine=scratch.engine)
    session = sessions[-1] if sessions else start(repository, request)
    anyio.run(lambda: run.drive(repository, session, run.RunObserver(), scope=scope, observers=(kill_points,)))


def _answer(repository: Repository, step: Answer) -> None:
    session = repository.newest()
    table = repository.folder(repository.state(session)) / "tasks.csv"
    table.write_text(step.edit(table.read_text()))
    answer(repository, session, step.gate, step.choice)


def wait_for_silence(scratch: Scratch) -> list[str]:
    """The processes that are still there when the tree of whoever was killed should be gone."""
    end = time.monotonic() + PATIENCE
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


def play(
    scratch: Scratch,
    kills: Mapping[str, Sequence[int]],
    *,
    batchwise: bool = True,
    begin: Callable[[str], None] = lambda _: None,
) -> Played:
    """The story from where it stands to its end; whoever is at work in a chapter is killed at those of its marks.

    Without `batchwise`, a sprint is one command. What is left on the disk is checked after the command that follows a
    kill; without kills, after every command.
    """
    left = {chapter: list(marks) for chapter, marks in kills.items()}
    names: dict[str, list[str]] = {chapter: [] for chapter in kills}
    found: list[str] = []
    begun: set[str] = set()
    check = not kills
    session = scratch.session()
    for _ in range(STEPS):
        if session and session.state.lifecycle.is_over:
            break
        step = scratch.story.next_step(session.state if session else None)
        chapter = "" if isinstance(step, Answer) else step.chapter
        if chapter and chapter not in begun:
            begin(chapter)
            begun.add(chapter)
        if isinstance(step, GoOn) and step.part and not batchwise:
            step = GoOn(step.part)
        marks = left.get(chapter) or [NEVER]
        done = do(scratch, step, marks.pop(0))
        if done.killed:
            names[chapter].append(done.marks[-1])
            found += wait_for_silence(scratch)
        session = scratch.session()
        if done.killed:
            check = True
            continue
        if done.status or session is None:
            found.append(f"a command ended with {done.status}")
            break
        if chapter and check:
            found += [f"after {chapter}: {problem}" for problem in unrest(scratch, session)]
            check = not kills
    if session is None:
        return Played(kills=kills, at=names, conflicts=0, problems=[*found, "there is no session"])
    found += problems(scratch, session)
    return Played(kills=kills, at=names, conflicts=conflicts(session.state), problems=found)


def rehearse(scratch: Scratch) -> None:
    """The story without a kill; what lies on the disk before each chapter is remembered."""
    played = play(scratch, {}, begin=scratch.remember)
    if played.problems or played.conflicts != scratch.story.conflicts:
        raise SystemExit(f"the story without a kill: {played}")


def tellings(scratch: Scratch, shard: int, shards: int) -> Iterator[Played]:
    """In the n-th telling somebody is killed at the n-th mark of each chapter that has so many."""
    story = scratch.story
    together = [] if story.only_apart else [chapter for chapter in scratch.chapters if chapter not in story.apart]
    for chapters in (together, *([chapter] for chapter in story.apart)):
        left = chapters
        for mark in count(shard, shards):
            if not left:
                break
            scratch.restore(left[0])
            played = play(scratch, {chapter: [mark] for chapter in left}, batchwise=chapters is together)
            yield played
            left = [chapter for chapter in left if played.at[chapter]]


def twice(scratch: Scratch, chapter: str, first: int) -> Iterator[Played]:
    """After a kill at one mark, whoever goes on is killed at each of the marks after it."""
    scratch.restore(chapter)
    session = scratch.session()
    killed = do(scratch, scratch.story.next_step(session.state if session else None), first)
    left = wait_for_silence(scratch)
    if left or not killed.killed:
        raise SystemExit(f"the first kill: {killed} {left}")
    scratch.remember("after the first kill")
    for mark in count():
        scratch.restore("after the first kill")
        played = play(scratch, {chapter: [mark]})
        yield played
        if not played.at[chapter]:
            break


def main(root: Path, engine: Engine, story: Story, words: list[str]) -> None:
    adopt_orphans()
    warm_up()
    gc.freeze()
    scratch = Scratch(root, engine, story)
    rehearse(scratch)
    match words:
        case [shard, shards]:
            told = tellings(scratch, int(shard), int(shards))
        case [chapter, "twice", mark]:
            told = twice(scratch, chapter, int(mark))
    for played in told:
        print(msgspec.json.encode(played).decode(), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Engine(sys.argv[2]), STORIES[sys.argv[3]], sys.argv[4:])
