"""What has to be true after a scenario, wherever a process was killed."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.crash.scratch import Scratch, SessionRecord

from iterdev.core.ids import CONFLICT_FIX, branch
from iterdev.core.rules.replay_check import compare
from iterdev.core.session import events
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.session.state import State
from iterdev.core.types import Phase, Status, TaskId
from iterdev.host import session_lease
from iterdev.host.git import command
from iterdev.store.session_folder import tasks_csv
from iterdev.store.session_folder.json_records import records
from iterdev.teams.contract import Team

MADE = (
    *("design", "code", "verify", "review", "interactive"),
    *("explorations", "solutions", "audits", "queue", "builds"),
)
"""The folders of a session whose files are all written from its state."""
TIMESTAMP = re.compile(r'"timestamp": ".*"')


def problems(scratch: Scratch, session: SessionRecord) -> list[str]:
    """What is wrong with the work so far; with all of it, if the session is over."""
    state, found = session.state, work_problems(scratch, session)
    found += _of_messages(scratch)
    return [*found, *_of_table(scratch, state), *_of_end(scratch, session)] if state.lifecycle.is_over else found


def work_problems(scratch: Scratch, session: SessionRecord) -> list[str]:
    """What is wrong with what was decided and landed."""
    journal = _of_journal(session.entries, session.team)
    return [*journal, *_of_work(scratch, session.state, session.entries)]


def leftovers(scratch: Scratch, session: SessionRecord) -> list[str]:
    """What is lost, left or alive between two commands."""
    state = session.state
    found = [
        *_of_commits(scratch, state, session.entries),
        *_of_checkout(scratch),
        *_of_folder(scratch.project / state.session.folder, state, session.team),
        *(f"not released: {name}" for name in session.held),
        *(f"left: {path}" for path in scratch.home.rglob("*")),
    ]
    return found + [f"alive: {process}" for process in processes_of(scratch)]


def _of_table(scratch: Scratch, state: State) -> Iterator[str]:
    for task, progress in state.tasks.rows():
        if progress.status is not Status.completed:
            yield f"{task.id} is {progress.status}: {progress.error}"
    planned = [task for task in state.tasks.plan if CONFLICT_FIX not in task]
    if sorted(planned) != sorted(scratch.scenario.tasks(scratch.engine)):
        yield f"tasks are {[*state.tasks.plan]}"


def _of_end(scratch: Scratch, session: SessionRecord) -> Iterator[str]:
    if "auto_archive" in scratch.scenario.settings and session.state.lifecycle.phase is not Phase.archived:
        yield "the session is not archived"
    rollbacks = sum(isinstance(entry.event, events.RollbackStarted) for entry in session.entries)
    if rollbacks != scratch.scenario.rollbacks:
        yield f"{rollbacks} rollbacks"
    lines = _ask(scratch, "show", f"{branch(session.state.session.id)}:README.md").splitlines()
    if sorted(lines) != sorted(scratch.scenario.readme):
        yield f"the README is {lines}"


def _of_messages(scratch: Scratch) -> Iterator[str]:
    """Whether the user was told something twice; after a kill a message may be missing."""
    lines = scratch.told.read_text().splitlines() if scratch.told.exists() else []
    told = [(message["kind"], message["state"], message["text"]) for message in map(json.loads, lines)]
    yield from (f"told {told.count(message)} times: {message}" for message in set(told) if told.count(message) > 1)


def _of_journal(entries: Sequence[events.Entry], team: Team) -> Iterator[str]:
    finished: set[TaskId] = set()
    for entry in entries:
        match entry.event:
            case events.AttemptStarted(task) if task in finished:
                yield f"{task} ran again after it had ended"
            case events.AttemptEnded(task=task, outcome=events.Done()):
                finished.add(task)
            case events.TasksReset(tasks):
                finished -= {*tasks}
            case LandingTakenOut(task=task):
                finished.discard(task)
            case events.RollbackStarted() as back:
                finished -= {*back.undone}
            case _:
                pass
    if difference := compare(entries, team).difference:
        yield f"today entry {difference.seq}, {difference.recorded}, would be {difference.decided}"


def _of_commits(scratch: Scratch, state: State, entries: Sequence[events.Entry]) -> Iterator[str]:
    kept = set(_ask(scratch, "rev-list", "--all").split())
    for entry in entries:
        match entry.event:
            case events.AttemptEnded(task=task, outcome=outcome) if outcome.commit and outcome.commit not in kept:
                yield f"the commit of {task} is lost"
    if _ask(scratch, "rev-parse", branch(state.session.id)) != state.branch.tip:
        yield "the branch is not where the journal says"


def _of_work(scratch: Scratch, state: State, entries: Sequence[events.Entry]) -> Iterator[str]:
    """Whether the branch holds the work of each task once, and nothing that was undone."""
    standing, refused = list[TaskId](), list[TaskId]()
    merged: dict[TaskId, list[TaskId]] = {}
    for entry in entries:
        match entry.event:
            case events.Landed(task=task):
                merged[task] = refused if CONFLICT_FIX in task else []
                standing += [task, *merged[task]]
                refused = [] if CONFLICT_FIX in task else refused
            case events.LandingRefused(task=task):
                refused.append(task)
            case events.RollbackStarted() as back:
                refused += [work for task in back.undone for work in merged.pop(task, ()) if work not in back.undone]
                standing = [task for task in standing if task not in {*back.undone, *refused}]
    mine = branch(state.session.id)
    # The merge by which work lands beside other work names its task again.
    options = ("--invert-grep", "--grep=^Merge ", "--format=%(trailers:key=Iterdev-Task,valueonly,separator=%x2C)")
    landed = _ask(scratch, "log", *options, mine).split()
    if sorted(landed) != sorted(standing):
        yield f"on the branch: {landed}, and in the journal: {standing}"
    files = _ask(scratch, "ls-tree", "--name-only", mine).split()
    if sorted(files) != sorted(["README.md", "iterdev.toml", *(f"{task}.txt" for task in standing)]):
        yield f"the tree is {files}"


def _of_checkout(scratch: Scratch) -> Iterator[str]:
    commits = int(_ask(scratch, "rev-list", "--count", "main"))
    if commits - 1 not in {0, scratch.scenario.users_commits} or _ask(scratch, "status", "--porcelain"):
        yield "the user's branch or files changed"
    if (worktrees := _ask(scratch, "worktree", "list")).count("\n"):
        yield f"worktrees: {worktrees}"


def _of_folder(folder: Path, state: State, team: Team) -> Iterator[str]:
    """Whether the session folder says what the journal says, and nothing of what was undone."""
    wanted = {"tasks.csv": tasks_csv.table(state, team), **records(state, team), **team.documents(state)}
    for name, text in wanted.items():
        if not (folder / name).exists() or _settled((folder / name).read_text()) != _settled(text):
            yield f"{name} is not what the journal makes of it"
    there = {str(path.relative_to(folder)) for name in MADE for path in (folder / name).glob("*")}
    if undone := there - wanted.keys():
        yield f"left: {sorted(undone)}"
    notes = state.wisdom.notes
    learned = [line for line in (folder / "wisdom" / "learnings.md").read_text().splitlines() if line.startswith("- ")]
    if len(learned) != len(notes) or not all(note.text in "\n".join(learned) for note in notes):
        yield f"learned: {learned}, not {[note.text for note in notes]}"
    wave = state.tasks.wave
    waves = [path for path in folder.glob("wave-*.csv") if not wave or str(wave) not in path.name]
    yield from (f"left: {path.name}" for path in (*folder.rglob("*iterdev-tmp*"), *waves))
    if session_lease.is_held(folder):
        yield "the lease is held"


def _settled(text: str) -> str:
    """Without the time of a verification: while one is to be repeated, its time is that of the newest entry."""
    return TIMESTAMP.sub("", text) if text.startswith('{\n  "verify_id"') else text


def processes_of(scratch: Scratch) -> list[str]:
    """Processes whose environment or command line names the scratch folder, other than this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in {os.getpid(), os.getppid()}:
            try:
                text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                if str(scratch.root).encode() in text and ") Z " not in (entry / "stat").read_text():
                    found.append(f"{entry.name} {text[-80:]!r}")
            except OSError:
                continue
    return found


def _ask(scratch: Scratch, *args: str) -> str:
    return command.git(*args, cwd=scratch.project).stdout.strip()
