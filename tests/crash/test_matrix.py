"""The crash matrix: the running process is killed at every point where a crash could do harm, and the next continues.

The kill points are before and after each entry of the journal, and before and after each effect; and after the last
entry, each file, folder and process that is touched until the process ends. Afterwards: every task
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
from tests.crash.driver import ScenarioRun

ROOT = Path(__file__).parents[2]
MEMORY = Path("/dev/shm")
SHARDS = 2
SAMPLE = 8
"""The distance of the kill points in a sprint that is one command; in the batches of two sprints all are tried."""
END_SAMPLE = 4
"""The distance of the files, folders and processes that are touched at the end of a process."""
BATCH_SAMPLE = 24
"""The distance of the kill points in each stage of a batch of issues."""
LANDING = (
    *("merge landings", "record LandingTestStarted", "borrow workspace", "make environment", "run tests"),
    *("return workspace", "record LandingTestEnded", "record LandingTakenOut", "land", "record Landed"),
)
"""What is done about work that waits to land."""
ACCEPT_SAMPLE = 3
"""The distance of those that an accept touches."""
NOTIFY_SAMPLE = 3
"""The distance of those of a run that tells the user something."""
ENGINES = pytest.mark.parametrize("engine", ["wave", "beat"])

Record = Callable[[str, object], None]


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is possible: a process that is killed loses nothing that a disk would keep."""
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else tmp_path) as folder:
        yield Path(folder) / "matrix"


def drive(
    scratch: Path, engine: str, scenario: str, *, first: int = 0, step: int = 1, kills: int = 1
) -> list[ScenarioRun]:
    return runs_of("tests.crash.driver", scratch, engine, scenario, first, step, kills)


def runs_of(program: str, *words: object) -> list[ScenarioRun]:
    done = subprocess.run(
        [sys.executable, "-m", program, *map(str, words)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [msgspec.json.decode(line, type=ScenarioRun) for line in done.stdout.splitlines()]


def kill_points(runs: list[ScenarioRun]) -> int:
    return sum(len(points) for run in runs for points in run.killed_at.values())


def with_problems(runs: list[ScenarioRun]) -> list[ScenarioRun]:
    return [run for run in runs if run.problems]


@pytest.mark.requirement("R119")
@ENGINES
def test_three_kills_one_after_the_other_lose_nothing_and_repeat_nothing(
    engine: str, scratch: Path, record_property: Record
) -> None:
    runs = drive(scratch, engine, "batches", step=2, kills=3)

    record_property("kill points", {engine: kill_points(runs)})
    assert kill_points(runs) > 100
    assert with_problems(runs) == []


@pytest.mark.requirement("R119")
@ENGINES
def test_a_whole_sprint_in_one_command_survives_a_kill(engine: str, scratch: Path, record_property: Record) -> None:
    runs = drive(scratch, engine, "one-sprint", step=SAMPLE)

    record_property("kill points", {engine: kill_points(runs)})
    assert kill_points(runs) > 10
    assert with_problems(runs) == []


@pytest.mark.requirement("R119")
@ENGINES
def test_an_update_with_a_conflict_survives_a_kill_at_any_point(
    engine: str, scratch: Path, record_property: Record
) -> None:
    runs = drive(scratch, engine, "update")

    record_property("kill points", {engine: kill_points(runs)})
    assert kill_points(runs) > 30
    assert with_problems(runs) == []


@pytest.mark.requirement("R119")
@pytest.mark.parametrize("shard", range(SHARDS))
@ENGINES
def test_two_sprints_with_a_conflict_a_fix_round_a_rollback_and_a_gate_survive_a_kill_at_any_point(
    engine: str, shard: int, scratch: Path, record_property: Record
) -> None:
    runs = drive(scratch, engine, "two-sprints", first=shard, step=SHARDS)

    record_property("kill points", {engine: kill_points(runs)})
    assert kill_points(runs) > 30
    assert with_problems(runs) == []
    assert any("conflict" in stage and points for run in runs for stage, points in run.killed_at.items())


@pytest.mark.requirement("R132")
@ENGINES
def test_an_interrupted_rollback_is_finished_by_asking_for_it_again(
    engine: str, scratch: Path, record_property: Record
) -> None:
    runs = drive(scratch, engine, "two-rollbacks")

    record_property("kill points", {engine: kill_points(runs)})
    assert kill_points(runs) > 5
    assert with_problems(runs) == []


@pytest.mark.requirement("R153")
@ENGINES
def test_a_landing_that_is_tested_and_taken_out_survives_two_kills_at_each_kind_of_effect(
    engine: str, scratch: Path, record_property: Record
) -> None:
    runs = drive(scratch, engine, "landings", kills=2)

    record_property("kill points", {engine: kill_points(runs)})
    assert with_problems(runs) == []
    killed = {point for run in runs for point in run.killed_at["builds"]}
    assert killed == {f"{when} {effect}" for when in ("before", "after") for effect in LANDING}


@pytest.mark.requirement("R151")
@ENGINES
def test_a_batch_of_issues_with_a_rejection_survives_a_kill(
    engine: str, scratch: Path, record_property: Record
) -> None:
    runs = drive(scratch, engine, "batch", first=1, step=BATCH_SAMPLE)

    record_property("kill points", {engine: kill_points(runs)})
    assert kill_points(runs) > 8
    assert with_problems(runs) == []


@ENGINES
def test_a_session_of_a_team_that_the_kernel_does_not_know_survives_a_kill_at_any_point(
    engine: str, scratch: Path, record_property: Record
) -> None:
    runs = drive(scratch, engine, "toy")

    record_property("kill points", {engine: kill_points(runs)})
    assert kill_points(runs) > 10
    assert with_problems(runs) == []


@pytest.mark.requirement("R119")
@ENGINES
def test_a_kill_after_the_last_event_is_made_up_for_by_the_next_command(
    engine: str, scratch: Path, record_property: Record
) -> None:
    runs = drive(scratch, engine, "archived", step=END_SAMPLE)

    record_property("kill points", {engine: kill_points(runs)})
    assert kill_points(runs) > 15
    assert with_problems(runs) == []


def test_nothing_is_told_twice_wherever_an_engine_is_killed(scratch: Path, record_property: Record) -> None:
    runs = drive(scratch, "wave", "notified", step=NOTIFY_SAMPLE)

    record_property("kill points", {"notified": kill_points(runs)})
    assert kill_points(runs) > 10
    assert with_problems(runs) == []


@pytest.mark.requirement("R119")
@pytest.mark.parametrize("style", ["fast-forward", "squash", "own", "undo"])
def test_an_accept_and_its_undoing_survive_a_kill_at_any_point(
    style: str, scratch: Path, record_property: Record
) -> None:
    runs = runs_of("tests.crash.accept_driver", scratch, style, 0, ACCEPT_SAMPLE)

    record_property("kill points", {style: kill_points(runs)})
    assert kill_points(runs) > 10
    assert with_problems(runs) == []
