"""What a journal of many entries costs the commands that read it."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import msgspec

import scratch
import sessions
from iterdev.core.collaboration.messages import COORDINATOR, MessageSent
from iterdev.core.collaboration.tech_debt import Debt, DebtIdentified
from iterdev.core.collaboration.wisdom import WisdomNoted, note
from iterdev.core.session import events
from iterdev.core.session.fold import replay
from iterdev.core.session.summary import summarize
from iterdev.core.types import Status
from iterdev.store.journal import Journal
from iterdev.teams.development.team import DEVELOPMENT
from measure import Aim, Effort, Section, ms

MEASURED = """\
The processor time of `iterdev status`, `iterdev replay` and `iterdev resume`, and the highest resident size that the \
kernel reports, for a session whose journal has {size:,} entries: *messages* of an agent, or *notes* (warnings, debts, \
what was learned). Of *tasks* there are half as many entries, 2 for each. Nothing is left to do but the end of the \
session, which `resume` records before it writes the session folder. `status` runs twice: the first one folds the \
journal and leaves a snapshot of the state, which the second one reads, and so does `resume`. The others run once."""
WHY = """\
of `status`, 0.11 s are the start of the program, as for a session of one task; most of the rest is to decode the \
tasks and to make a line of text for each"""
LIMIT = 0.3
"""Seconds of processor time."""
COMMANDS = ("status", "status", "replay", "resume")
SETTINGS = '[run]\nagent = "bench"\n[agents.bench]\ncommand = ["true"]\n'
LAUNCHER = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, used = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
"""A process counts the size of whoever started it, so it has to be started by a small one."""


def _tasks(size: int) -> list[events.Event]:
    tasks = sessions.wide(max(size // 4, 2))
    return [*sessions.begun(tasks), *_done(tasks)]


def _messages(size: int) -> list[events.Event]:
    sent = (
        MessageSent(sender="developer", to=COORDINATOR, kind="progress", summary=f"[developer] step {number}")
        for number in range(size)
    )
    return _within_an_attempt(msgspec.structs.replace(one, number=number) for number, one in enumerate(sent, 1))


def _notes(size: int) -> list[events.Event]:
    facts = chain.from_iterable(map(_remarks, range(size)))
    return _within_an_attempt(islice(facts, size))


SHAPES: dict[str, Callable[[int], list[events.Event]]] = {"tasks": _tasks, "messages": _messages, "notes": _notes}


def _remarks(number: int) -> Iterator[events.Event]:
    yield events.Warned(f"warning {number}", announced=False)
    yield DebtIdentified(Debt(debt_id=f"TD-{number}", description=f"shortcut {number}", detection_date=1.0))
    learned = note("learnings", f"lesson {number}", session=sessions.NAME, task="DEV-000", commit="", at=1.0)
    yield WisdomNoted((learned,))


def _within_an_attempt(facts: Iterator[events.Event]) -> list[events.Event]:
    """A session of two tasks; all that happens does so while the first one is at work."""
    tasks = sessions.deep(2)
    started, *rest = _done(tasks)
    return [*sessions.begun(tasks), started, *facts, *rest]


def _done(tasks: Sequence[sessions.Task]) -> Iterator[events.Event]:
    """Tasks that are done without a change, so that the branch stays where it is."""
    for task in tasks:
        yield events.AttemptStarted(task.id, 1, "bench", sessions.BASE)
        done = events.Done(findings="did it")
        yield events.AttemptEnded(
            task=task.id, number=1, agent="bench", requests=1, outcome=done, status=Status.completed
        )


def measure(effort: Effort, root: Path) -> Section:
    size = effort.sizes[-1]
    rows = []
    for shape, made in SHAPES.items():
        repo = repository(root / f"long-{shape}", made(size))
        rows.append((shape, *(cell for command in COMMANDS for cell in _run(repo, command))))
    names = ("`status`, first", "`status`", "`replay`", "`resume`")
    judged = repository(root / "judged", _tasks(4 * effort.judged))
    taken = [_used(judged, "status")[0] for _ in range(2)][-1]
    claim = f"`iterdev status` of a session with {effort.judged:,} tasks: at most {LIMIT:g} s of processor time"
    return Section(
        title="Long journals",
        measured=MEASURED.format(size=size),
        header=("made of", *(cell for name in names for cell in (name, "memory"))),
        rows=tuple(rows),
        aims=(Aim(claim=claim, value=taken, limit=LIMIT, unit="s", why=WHY),),
    )


def repository(root: Path, written: list[events.Event]) -> scratch.Scratch:
    repo = scratch.make(root, **{"iterdev.toml": SETTINGS})
    head = repo.git("rev-parse", "HEAD").strip()
    entries = [_on(head, entry) for entry in sessions.entries(written)]
    journal = Journal(repo.top / ".workflow" / "iterdev.db")
    journal.append(sessions.NAME, entries, after=0, summary=summarize(replay(entries, DEVELOPMENT)))
    journal.close()
    return repo


def _on(head: str, entry: events.Entry) -> events.Entry:
    """The same entry in a session that begins with the repository's commit."""
    match entry.event:
        case events.SessionStarted(session, policy):
            agents = dict.fromkeys(DEVELOPMENT.workers, "bench")
            named = msgspec.structs.replace(policy, agents=agents)
            event: events.Event = events.SessionStarted(msgspec.structs.replace(session, base=head), named)
        case events.EngineStarted(pid):
            event = events.EngineStarted(pid, head)
        case events.AttemptStarted() as started:
            event = msgspec.structs.replace(started, base=head)
        case _:
            return entry
    return msgspec.structs.replace(entry, event=event)


def _run(repo: scratch.Scratch, command: str) -> tuple[str, str]:
    seconds, kilobytes = _used(repo, command)
    return ms(seconds), f"{kilobytes / 1024:,.0f} MB"


def _used(repo: scratch.Scratch, command: str) -> tuple[float, int]:
    """Seconds of processor time, and kilobytes."""
    iterdev = shutil.which("iterdev", path=Path(sys.executable).parent) or "iterdev"
    words = [sys.executable, "-I", "-S", "-c", LAUNCHER, os.fspath(iterdev), command, sessions.NAME]
    code, seconds, kilobytes = repo.run(*words).split()
    if code != "0":
        raise SystemExit(f"iterdev {command} ended with {code}")
    return float(seconds), int(kilobytes)
