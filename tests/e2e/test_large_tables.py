"""Long tables, run by both engines: what was started when, by the journal and by the agents' own log."""

import csv
from collections import Counter
from itertools import accumulate
from pathlib import Path
from random import Random
from textwrap import dedent

import pytest
from msgspec import Struct
from tests.conftest import Repo
from tests.e2e.conftest import Background, Terminal, eventually
from tests.session_files import left_behind, rows, statuses

from iterdev.core.session.events import AttemptEnded, AttemptStarted, Done, Entry, Landed
from iterdev.store.journal import Journal

SIZE = 160
AT_ONCE = 6
NEAR = 80
PATIENCE = 900.0
AGENT = """
cat > /dev/null
echo "$ITERDEV_TASK" >> "{calls}"
case $ITERDEV_ROLE in
architect)
  more=',"design":"one file","components":[{{"name":"a","dependencies":[]}}],"tasks":[{{"id":"t","title":"t"}}]' ;;
developer) echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt" ;;
reviewer) more=',"scores":{{"correctness":9,"completeness":9,"maintainability":9,"security":9}}' ;;
esac
printf '{{"id":"%s","status":"completed","findings":"done"%s}}' "$ITERDEV_TASK" "$more" > "$ITERDEV_RESULT"
"""


class Row(Struct, frozen=True):
    id: str
    deps: tuple[str, ...]


def a_project(size: int) -> list[Row]:
    """Most rows look at work, as the roles that only read take less time; a third writes something that has to land."""
    chance = Random(size)
    table: list[Row] = []
    work: list[str] = []
    for number in range(1, size + 1):
        prefix = "DEV" if number % 3 == 0 else chance.choice(("REVIEW", "REVIEW", "VERIFY", "DESIGN"))
        near = work[-NEAR:]
        count = min(len(near), chance.choice((0, 1, 2, 3)))
        row = Row(f"{prefix}-{number:04}", tuple(chance.sample(near, count)))
        table.append(row)
        work += [row.id] * (prefix != "REVIEW")
    # Rows may stand anywhere in a table, also above those that they wait for.
    chance.shuffle(table)
    return table


def write(path: Path, table: list[Row]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        body = ((row.id, f"part {row.id}", ";".join(row.deps), ";".join(row.deps)) for row in table)
        csv.writer(file).writerows([("id", "description", "deps", "context_from"), *body])
    return str(path)


def with_quick_agents(repo: Repo) -> Path:
    """Shell scripts, since so many of anything else would take minutes; returns the file to which they append."""
    calls, agent = repo.home / "calls", repo.home / "agent.sh"
    agent.write_text(AGENT.format(calls=calls), encoding="utf-8")
    settings = f"""
        [run]
        agent = "mine"

        [project]
        test = "true"

        [agents.mine]
        command = ["sh", "{agent}"]
        """
    repo.write("iterdev.toml", dedent(settings))
    repo.commit("a quick agent")
    return calls


def history(repo: Repo) -> list[Entry]:
    journal = Journal(repo.path / ".workflow" / "iterdev.db")
    (session,) = journal.sessions()
    entries = journal.read(session)
    journal.close()
    return entries


class Told(Struct, frozen=True):
    """What the journal says of the tasks: the numbers of the entries with which each was started and completed."""

    started: dict[str, list[int]]
    completed: dict[str, int]
    at_once: list[int]
    """How many attempts were open, after each start and each end."""


def told(entries: list[Entry]) -> Told:
    started: dict[str, list[int]] = {}
    completed: dict[str, int] = {}
    changes: list[int] = []
    for entry in entries:
        match entry.event:
            case AttemptStarted(task=task):
                started.setdefault(task, []).append(entry.seq)
                changes.append(1)
            case AttemptEnded(task=task, outcome=outcome):
                changes.append(-1)
                if isinstance(outcome, Done) and not outcome.commit:
                    completed[task] = entry.seq
            case Landed(task=task):
                completed[task] = entry.seq
            case _:
                pass
    return Told(started, completed, list(accumulate(changes)))


@pytest.mark.requirement("R2", "R45", "R47")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_of_a_long_table_no_task_starts_early_none_twice_and_all_are_completed(repo: Repo, engine: str) -> None:
    table = a_project(SIZE)
    names = {row.id for row in table}
    calls = with_quick_agents(repo)
    mine = write(repo.home / "mine.csv", table)

    done = repo.iterdev(
        "run", "-y", "--engine", engine, "-c", str(AT_ONCE), "--tasks", mine, "Build it", timeout=PATIENCE
    )

    assert done.returncode == 0, done.stderr
    assert left_behind(repo) == []
    assert statuses(repo.folder(engine)) == dict.fromkeys((row.id for row in table), "completed")
    seen = told(history(repo))
    assert seen.completed.keys() == names
    assert {task: len(starts) for task, starts in seen.started.items()} == dict.fromkeys(names, 1)
    early = [row.id for row in table for dep in row.deps if seen.started[row.id][0] < seen.completed[dep]]
    assert early == []
    assert max(seen.at_once) == AT_ONCE
    # A tester's agent is asked only when tests fail.
    signed = Counter(calls.read_text().split())
    assert signed == Counter(name for name in names if not name.startswith("VERIFY"))
    branch = f"iterdev/{repo.folder(engine).name}"
    landed = repo.git("ls-tree", "--name-only", branch).split()
    assert {name for name in names if name.startswith("DEV")} == {
        name.removesuffix(".txt") for name in landed if name.endswith(".txt")
    }
    if engine == "wave":
        waves = {name: int(row["wave"]) for name, row in rows(repo.folder()).items()}
        order = [waves[task] for task in sorted(names, key=lambda task: seen.started[task][0])]
        assert order == sorted(order)


def test_a_long_table_that_was_interrupted_continues_where_it_was(repo: Repo) -> None:
    table = [Row(f"REVIEW-{number:04}", ()) for number in range(1, SIZE + 1)]
    finished = "".join(f"{row.id},look,completed\n" for row in table[:-20])
    left = "".join(f"{row.id},look,pending\n" for row in table[-20:])
    calls = with_quick_agents(repo)
    mine = repo.home / "mine.csv"
    mine.write_text(f"id,description,status\n{finished}{left}", encoding="utf-8")

    with Background(repo, "run", "-y", "--engine", "beat", "-c", "2", "--tasks", str(mine), "Look") as running:
        eventually(calls.exists, "the first agent")
        running.process.terminate()
        stopped = running.end()
    resumed = repo.iterdev("resume", timeout=PATIENCE)

    assert stopped.returncode == 130, stopped.stderr
    assert "iterdev resume" in stopped.stdout
    assert resumed.returncode == 0, resumed.stderr
    assert len(resumed.stdout.splitlines()) < 100
    assert set(calls.read_text().split()) == {row.id for row in table[-20:]}
    assert set(statuses(repo.folder("beat")).values()) == {"completed"}


def test_a_table_that_is_longer_than_the_terminal_shows_what_is_under_way(repo: Repo, terminal: Terminal) -> None:
    repo.behave(**{"DEV-150": {"run": "until test -e $HOME/go; do sleep 0.05; done"}})
    rows_of = {"completed": range(1, 150), "pending": range(150, 201)}
    body = "".join(f"DEV-{number},do it,{status}\n" for status, numbers in rows_of.items() for number in numbers)
    (repo.home / "mine.csv").write_text(f"id,description,status\n{body}", encoding="utf-8")

    terminal.type(f"iterdev run -y -c 1 --engine beat --tasks {repo.home}/mine.csv")
    screen = terminal.until("▸ DEV-150", "pending", "DEV-151")
    terminal.press("C-c")
    last = terminal.until("Interrupted; everything is saved")

    assert "149/200" in screen
    assert "DEV-20 " not in screen
    assert len(last.splitlines()) < 100
