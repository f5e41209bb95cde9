"""What a journal of many entries costs the commands that read it."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import msgspec

import scratch
import session_folder
import sessions
from growth import LINEAR
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
journal and leaves a snapshot of the state, which the second one reads, and so does `resume`. `resume` runs twice too: \
the first one writes the whole session folder, the second one finds a session that is over."""
WHY = """\
of `status`, 0.11 s are the start of the program, as for a session of one task; most of the rest is to decode the \
tasks and to make a line of text for each"""
WHY_GROWTH = """\
what is not shown is not decoded, but the whole snapshot is read, and checked by its digest"""
WHY_REPLAY = """\
each entry is decoded and folded, and each decision made again, without a snapshot: a replay is to check them all"""
LIMIT = 0.3
"""Seconds of processor time."""
GROWTH = 1.5
"""How much more a command may cost whose session has 10 times the entries, and shows the same."""
COMMANDS = ("status", "status", "replay", "resume", "resume")
NAMES = ("`status`, first", "`status`", "`replay`", "`resume`, first", "`resume`")
REPLAY = 2
KNOWN = (1, 4)
"""The places of those commands that find a snapshot and have nothing to write."""
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


ALIKE = ("messages", "notes")
"""Sessions that show the same two tasks, however many entries they have."""
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
    fewer, size = effort.sizes[-2:]
    used = {shape: _commands(root / f"long-{shape}", made(size)) for shape, made in SHAPES.items()}
    shorter = {shape: _commands(root / f"shorter-{shape}", SHAPES[shape](fewer)) for shape in ALIKE}
    judged = repository(root / "judged", _tasks(4 * effort.judged))
    seconds = [_used(judged, "status")[0] for _ in range(2)][-1]

    def grown(place: int) -> float:
        """How many times more processor time, in the shape in which it is most."""
        return max(used[shape][place][0] / shorter[shape][place][0] for shape in ALIKE)

    grows = (
        f"`status` and `resume` with a snapshot: at most {GROWTH:g} times as much for {size:,} entries as for {fewer:,}"
    )
    claim = f"`iterdev status` of a session with {effort.judged:,} tasks: at most {LIMIT:g} s of processor time"
    folder, one_more_event = session_folder.measured(effort, root)
    return Section(
        title="Long journals",
        measured=MEASURED.format(size=size),
        repetitions="each command as often as the table shows it",
        header=("made of", *(cell for name in NAMES for cell in (name, "memory"))),
        rows=tuple((shape, *chain.from_iterable(map(_cells, taken))) for shape, taken in used.items()),
        aims=(
            Aim(claim=claim, value=seconds, limit=LIMIT, unit="s", why=WHY),
            Aim(claim=grows, value=max(map(grown, KNOWN)), limit=GROWTH, unit="times", why=WHY_GROWTH),
            Aim(
                claim=f"`replay` grows linearly: an entry among {size:,} costs at most {LINEAR:g} times what one among "
                f"{fewer:,} costs",
                value=grown(REPLAY) * fewer / size,
                limit=LINEAR,
                unit="times",
                why=WHY_REPLAY,
            ),
            one_more_event,
        ),
        notes=(folder,),
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


def _commands(root: Path, written: list[events.Event]) -> list[tuple[float, int]]:
    repo = repository(root, written)
    return [_used(repo, command) for command in COMMANDS]


def _cells(used: tuple[float, int]) -> tuple[str, str]:
    seconds, kilobytes = used
    return ms(seconds), f"{kilobytes / 1024:,.0f} MB"


def _used(repo: scratch.Scratch, command: str) -> tuple[float, int]:
    """Seconds of processor time, and kilobytes."""
    iterdev = shutil.which("iterdev", path=Path(sys.executable).parent) or "iterdev"
    words = [sys.executable, "-I", "-S", "-c", LAUNCHER, os.fspath(iterdev), command, sessions.NAME]
    code, seconds, kilobytes = repo.run(*words).split()
    if code != "0":
        raise SystemExit(f"iterdev {command} ended with {code}")
    return float(seconds), int(kilobytes)
