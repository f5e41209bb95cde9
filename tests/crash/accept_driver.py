"""Kills `iterdev accept`, and its undoing, wherever it touches something, and does it again.

    python -m tests.crash.accept_driver SCRATCH STYLE FIRST STEP

STYLE is that of `AcceptStyle`, `own` for the user as author, or `undo`. The kill points are each file, folder and
process that is touched. Prints one JSON line for each kill.
"""

import gc
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import msgspec
from tests.crash.checks import processes_of
from tests.crash.driver import (
    NEVER,
    ScenarioRun,
    adopt_orphans,
    commit_as_user,
    run_command,
    wait_for_processes,
)
from tests.crash.scenarios import ACCEPTED, Accept, RunSession, Step, UndoAccept
from tests.crash.scratch import Scratch
from tests.fork_server import warm_up

from iterdev.app.completion import AcceptOptions
from iterdev.core.session.delivery import Accepted, AcceptUndone
from iterdev.core.types import AcceptStyle, Engine
from iterdev.host.git import command

FILES = ["DEV-001.txt", "README.md", "UPDATE-001.txt", "iterdev.toml"]
"""Of the user's branch with the work."""


def problems(scratch: Scratch, step: Step, before: str) -> Iterator[str]:
    """What is wrong after the step was completed."""
    session = scratch.session()
    if session is None:
        yield "there is no session"
        return
    kinds = [type(entry.event) for entry in session.entries if isinstance(entry.event, Accepted | AcceptUndone)]
    undone, head = isinstance(step, UndoAccept), _ask(scratch, "rev-parse", "main")
    known, accepted = session.state.delivery.accepted, session.state.lifecycle.accepted
    if kinds != [Accepted, *([AcceptUndone] if undone else [])]:
        yield f"the journal has {kinds}"
    if undone and (head != before or accepted):
        yield f"main is at {head} and not at {before}, accepted: {accepted}"
    if not undone and (head != accepted or _ask(scratch, "ls-tree", "--name-only", "main").split() != FILES):
        yield f"main is at {head}, accepted: {accepted}"
    if not undone and (known is None or known.before != before or known.work != session.state.branch.tip):
        yield f"the journal has {known}"
    if left := _ask(scratch, "status", "--porcelain"):
        yield f"the checkout has {left}"
    refs = [f"refs/iterdev/{session.state.session.id}/{name}" for name in ("_accepting", "_incoming")]
    if left := _ask(scratch, "for-each-ref", *refs):
        yield f"refs are left: {left}"
    names = ("MERGE_HEAD", "SQUASH_MSG", "index.lock")
    yield from (f"{name} is left" for name in names if (scratch.project / ".git" / name).exists())
    yield from (f"alive: {process}" for process in processes_of(scratch))


def _ask(scratch: Scratch, *args: str) -> str:
    return command.git(*args, cwd=scratch.project).stdout.strip()


def kills(scratch: Scratch, step: Step, first: int, distance: int) -> Iterator[ScenarioRun]:
    before = _ask(scratch, "rev-parse", "main^" if isinstance(step, UndoAccept) else "main")
    for point in count(first, distance):
        scratch.restore(step.stage)
        killed = run_command(scratch, step, point)
        if not killed.killed:
            return
        found = wait_for_processes(scratch)
        again = run_command(scratch, step, NEVER)
        found += [f"the command ended with {again.status}"] if again.status else []
        yield ScenarioRun(
            killed_at={step.stage: killed.points[-1:]}, problems=[*found, *problems(scratch, step, before)]
        )


def main(root: Path, style: str, numbers: list[int]) -> None:
    adopt_orphans()
    warm_up()
    gc.freeze()
    scratch = Scratch(root, Engine.wave, ACCEPTED)
    for setting in (("user.name", "t"), ("user.email", "t@example.invalid")):
        command.git("config", *setting, cwd=scratch.project)
    run_command(scratch, RunSession("patch"), NEVER)
    commit_as_user(scratch.project)
    how = {"own": AcceptOptions(own_author=True), "undo": AcceptOptions(style=AcceptStyle.squash)}
    step: Step = Accept(how[style] if style in how else AcceptOptions(style=AcceptStyle(style)))
    if style == "undo":
        run_command(scratch, step, NEVER)
        step = UndoAccept()
    scratch.copy(step.stage)
    for run in kills(scratch, step, *numbers):
        print(msgspec.json.encode(run).decode(), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], [*map(int, sys.argv[3:])])
