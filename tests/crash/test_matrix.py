"""The crash matrix: whoever is at work is killed at every point where a crash could hurt, and others go on.

The points are before and after each entry of the journal, and before and after each effect. Afterwards: every task
completed, each landed exactly once and none run again unless it was rolled back, no commit lost, nothing left of what
was undone, and no process, worktree, lock or temporary file left.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

ROOT = Path(__file__).parents[2]
MEMORY = Path("/dev/shm")
SHARDS = 2
ENGINES = pytest.mark.parametrize("engine", ["wave", "beat"])

Record = Callable[[str, object], None]


class Telling(Struct, frozen=True):
    """What the driver says of a story in which somebody was killed."""

    at: dict[str, list[str]]
    """By chapter: the marks of the kills."""
    conflicts: int
    problems: list[str]


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is possible: a process that is killed loses nothing that a disk would keep."""
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path) as folder:
        yield Path(folder) / "matrix"


def drive(scratch: Path, *words: str) -> list[Telling]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.driver", str(scratch), *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [msgspec.json.decode(line, type=Telling) for line in done.stdout.splitlines()]


def kill_points(told: list[Telling]) -> int:
    """The kills that differ: one in a chapter at most, since the first of two kills is made only once."""
    return sum(bool(marks) for telling in told for marks in telling.at.values())


def harmed(told: list[Telling]) -> list[Telling]:
    return [telling for telling in told if telling.problems]


@pytest.mark.requirement("R119")
@pytest.mark.parametrize("shard", range(SHARDS))
@ENGINES
def test_a_kill_at_any_mark_loses_nothing_and_repeats_nothing(
    engine: str, shard: int, scratch: Path, record_property: Record
) -> None:
    told = drive(scratch, engine, "one-sprint", str(shard), str(SHARDS))

    record_property("kill points", {engine: kill_points(told)})
    assert kill_points(told) > 10
    assert harmed(told) == []


@ENGINES
def test_the_engine_that_goes_on_may_be_killed_as_well(engine: str, scratch: Path, record_property: Record) -> None:
    told = drive(scratch, engine, "one-sprint", "sprint", "twice", "50")

    record_property("kill points", {engine: kill_points(told)})
    assert kill_points(told) > 10
    assert harmed(told) == []


@pytest.mark.requirement("R119")
@pytest.mark.parametrize("shard", range(SHARDS))
@ENGINES
def test_two_sprints_with_a_conflict_a_fix_round_a_rollback_and_a_gate_survive_a_kill_at_any_mark(
    engine: str, shard: int, scratch: Path, record_property: Record
) -> None:
    told = drive(scratch, engine, "two-sprints", str(shard), str(SHARDS))

    record_property("kill points", {engine: kill_points(told)})
    assert kill_points(told) > 50
    assert harmed(told) == []
    assert {telling.conflicts for telling in told if "side by side" not in telling.at} == {1}


@pytest.mark.requirement("R132")
@ENGINES
def test_a_rollback_that_was_cut_short_is_finished_by_asking_for_it_again(
    engine: str, scratch: Path, record_property: Record
) -> None:
    told = drive(scratch, engine, "two-rollbacks", "0", "1")

    record_property("kill points", {engine: kill_points(told)})
    assert kill_points(told) > 5
    assert harmed(told) == []


@ENGINES
def test_a_session_of_a_team_that_the_kernel_does_not_know_survives_a_kill_at_any_mark(
    engine: str, scratch: Path, record_property: Record
) -> None:
    told = drive(scratch, engine, "toy", "0", "1")

    record_property("kill points", {engine: kill_points(told)})
    assert kill_points(told) > 10
    assert harmed(told) == []
