"""Random kills, in the short form; `make soak` has the long one."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
from tests.crash.soak import Figures

ROOT = Path(__file__).parents[2]
KILLS = 50


def test_fifty_random_kills_lose_nothing_and_leave_nothing(record_property: Callable[[str, object], None]) -> None:
    command = [sys.executable, "-m", "tests.crash.soak", "--kills", str(KILLS), "--seed", "1"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    figures = msgspec.json.decode(done.stdout, type=Figures)
    record_property("kill points", {"random": sum(figures.kills.values())})
    assert figures.violations == []
    assert sum(figures.kills.values()) >= KILLS
