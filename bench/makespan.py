"""How long a great table takes with agents that sleep, beside a schedule in which nothing but sleep costs time."""

import csv
import json
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random

import listschedule
import scratch
from iterdev.core.session.events import AttemptEnded, AttemptStarted, Landed
from iterdev.core.types import SessionId
from iterdev.store.journal import Journal
from listschedule import Work
from measure import Aim, Effort, Section

AGENT = r"""
sleep "$(cat "{durations}/$ITERDEV_TASK")"
scores='{{"correctness":9,"completeness":9,"maintainability":9,"security":9}}'
if [ "$ITERDEV_ROLE" = developer ]; then echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt"; fi
printf '{{"id":"%s","status":"completed","findings":"done","scores":%s}}' "$ITERDEV_TASK" "$scores" > "$ITERDEV_RESULT"
"""
SETTINGS = '[run]\nagent = "bench"\n[project]\ntest = "true"\n[agents.bench]\ncommand = ["sh", {agent}]\n'
MEASURED = """\
One `iterdev run --tasks FILE.csv -y -c {places} --engine beat` on a table of {tasks:,} rows, two thirds DEV and one \
third REVIEW, each of which waits for up to three DEV rows not far above it. Agents are shell scripts that sleep \
{shortest:g} to {longest:g} s, on average {mean:.1f} s, and then write one file (DEV) and their result. The makespan \
is taken from the journal: from the entry that the first attempt started to the one that the last work landed. The \
list schedule starts, whenever one of {places} places is free, the first row of the table that is ready, and takes no \
time but the sleep; the engine follows the same rule. No schedule can beat the longest chain of rows, or all sleep \
spread evenly over the places."""
WHY = """\
a place stays taken from the entry that an attempt started to the one that it ended: its workspace is made ready, the \
agent started, its work looked at and committed; a few processors do that for {places} agents, whose sleep is short \
beside the minutes of real ones"""
SHORTEST, LONGEST = 1.0, 7.0
"""Seconds that an agent sleeps."""
NEAR = 120
"""How many of the DEV rows above a row it may wait for."""
LIMIT = 1.03


def measure(effort: Effort, root: Path) -> Section:
    table = list(generated(effort.scheduled))
    folders = count()
    commands: list[float] = []

    def run() -> float:
        seconds, command = _run(root / f"makespan-{next(folders)}", table, effort.places)
        commands.append(command)
        return seconds

    measured = effort.stopwatch.medians(1, {"makespan": run})["makespan"]
    return _section(table, effort.places, measured, commands[-1])


def generated(size: int) -> Iterator[Work]:
    """The same table at every call."""
    chance = Random(size)
    developed: list[str] = []
    for number in range(1, size + 1):
        develops = number % 3 != 0
        near = developed[-NEAR:]
        most = chance.choice((0, 1, 1, 2, 3)) if develops else 1
        deps = tuple(chance.sample(near, min(most, len(near))))
        name = f"{'DEV' if develops else 'REVIEW'}-{number:04}"
        if develops:
            developed.append(name)
        yield Work(id=name, deps=deps, seconds=round(chance.uniform(SHORTEST, LONGEST), 2))


def _section(table: Sequence[Work], places: int, measured: float, command: float) -> Section:
    bound, least = listschedule.makespan(table, places), listschedule.least(table, places)
    rows = (
        ("the list schedule", bound),
        ("no schedule can be shorter than", least),
        ("the makespan of the beat engine", measured),
        ("the whole command", command),
    )
    return Section(
        title="Makespan",
        measured=MEASURED.format(
            places=places,
            tasks=len(table),
            shortest=SHORTEST,
            longest=LONGEST,
            mean=sum(work.seconds for work in table) / len(table),
        ),
        repetitions="one run",
        header=("", "time", "of the list schedule"),
        rows=tuple((name, f"{seconds:.2f} s", f"{seconds / bound:.3f}") for name, seconds in rows),
        aims=(
            Aim(
                claim=f"{len(table):,} tasks with sleeping agents take at most 3 % longer than their list schedule",
                value=measured / bound,
                limit=LIMIT,
                unit="of the list schedule",
                why=WHY.format(places=places),
            ),
        ),
    )


def _run(root: Path, table: Sequence[Work], places: int) -> tuple[float, float]:
    """The makespan, and the time of the whole command."""
    durations = root / "durations"
    durations.mkdir(parents=True)
    for work in table:
        (durations / work.id).write_text(str(work.seconds))
    agent = root / "agent.sh"
    agent.write_text(AGENT.format(durations=durations))
    repo = scratch.make(root, **{"iterdev.toml": SETTINGS.format(agent=json.dumps(str(agent)))})
    _write(root / "tasks.csv", table)
    words = ("run", "--tasks", str(root / "tasks.csv"), "-y", "-c", str(places), "--engine", "beat", "--json")
    begin = time.perf_counter()
    said = json.loads(repo.run("iterdev", *words))
    command = time.perf_counter() - begin
    if said["counts"]["completed"] != len(table):
        raise SystemExit(f"iterdev did not complete every task: {said['counts']}")
    return _makespan(repo.top, SessionId(said["session"])), command


def _write(path: Path, table: Sequence[Work]) -> None:
    with path.open("w", newline="") as file:
        rows = ((work.id, "Do this part", ";".join(work.deps)) for work in table)
        csv.writer(file).writerows([("id", "description", "deps"), *rows])


def _makespan(top: Path, session: SessionId) -> float:
    journal = Journal(top / ".workflow" / "iterdev.db")
    entries = journal.read(session)
    journal.close()
    first = next(entry.at for entry in entries if isinstance(entry.event, AttemptStarted))
    return max(entry.at for entry in entries if isinstance(entry.event, AttemptEnded | Landed)) - first
