"""The crash matrix: an engine is killed at every point where a crash could hurt, and the next one goes on.

The points are before and after each entry of the journal, and before and after each effect. After each kill: every
task completed, each landed exactly once, none run again after it had ended, no commit lost, and no process,
worktree, lock or temporary file left.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("driver.py")
SHARDS = 4


def drive(scratch: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(scratch / "matrix"), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.requirement("R119")
@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_kill_at_any_mark_loses_nothing_and_repeats_nothing(
    engine: str, shard: int, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    crashes = [json.loads(line) for line in drive(tmp_path, engine, str(shard), str(SHARDS)).splitlines()]

    record_property("kill points", len(crashes))
    assert len(crashes) > 10
    assert [crash for crash in crashes if crash["problems"]] == []


@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_the_engine_that_goes_on_may_be_killed_as_well(
    engine: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    halfway = int(drive(tmp_path, engine, "count")) // 2

    crashes = [json.loads(line) for line in drive(tmp_path / "again", engine, "again", str(halfway)).splitlines()]

    record_property("kill points", len(crashes))
    assert len(crashes) > 10
    assert [crash for crash in crashes if crash["problems"]] == []
