"""What the shortest command costs, beside the interpreter that it needs."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measure import Aim, Effort, Section, ms, timed

MEASURED = """\
`iterdev --version` beside `python -c pass` with the same interpreter, from start to exit; memory is the highest \
resident size that the kernel reports."""
WHY = "the console script and the packages that the environment loads at every start"
LAUNCHER = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_CLOSE, 1)])
print(os.wait4(pid, 0)[2].ru_maxrss)
"""
"""A process counts the size of whoever started it, so it has to be started by a small one."""


def measure(effort: Effort, _: Path) -> Section:
    iterdev = [shutil.which("iterdev", path=Path(sys.executable).parent) or "iterdev", "--version"]
    python = [sys.executable, "-c", "pass"]
    contestants = {name: partial(_seconds, argv) for name, argv in {"python": python, "iterdev": iterdev}.items()}
    seconds = effort.stopwatch.medians(effort.starts, contestants)
    ratio, size = seconds["iterdev"] / seconds["python"], _megabytes(iterdev)
    return Section(
        title="Start-up",
        measured=MEASURED,
        header=("", "time", "memory"),
        rows=(
            ("`python -c pass`", ms(seconds["python"]), f"{_megabytes(python):.1f} MB"),
            ("`iterdev --version`", ms(seconds["iterdev"]), f"{size:.1f} MB"),
            ("ratio", f"{ratio:.2f}", ""),
        ),
        aims=(
            Aim(claim="`iterdev --version` takes at most 2.5 times `python -c pass`", value=ratio, limit=2.5, why=WHY),
            Aim(claim="`iterdev --version` needs at most 30 MB", value=size, limit=30, unit="MB", why=WHY),
        ),
    )


def _seconds(argv: Sequence[str]) -> float:
    return timed(lambda: subprocess.run(argv, stdout=subprocess.DEVNULL, check=True))


def _megabytes(argv: Sequence[str]) -> float:
    launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, *argv]
    return int(subprocess.run(launcher, capture_output=True, text=True, check=True).stdout) / 1024
