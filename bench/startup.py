"""What the shortest commands cost, beside the interpreter that they need."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import scratch
from measure import Aim, Effort, Section, ms, timed

MEASURED = """\
`iterdev --version`, and `iterdev status` of a finished session of one task, beside `python -c pass` with the same \
interpreter, from start to exit; memory is the highest resident size that the kernel reports."""
WHY = "the console script and the packages that the environment loads at every start"
LAUNCHER = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_CLOSE, 1)])
print(os.wait4(pid, 0)[2].ru_maxrss)
"""
"""A process counts the size of whoever started it, so it has to be started by a small one."""


SETTINGS = '[run]\nagent = "bench"\n[agents.bench]\ncommand = ["true"]\n'
TABLE = "id,description,status\nDEV-001,Write one file,completed\n"


def measure(effort: Effort, root: Path) -> Section:
    repo = _finished_session(root / "startup")
    iterdev = shutil.which("iterdev", path=Path(sys.executable).parent) or "iterdev"
    commands = {
        "`python -c pass`": [sys.executable, "-c", "pass"],
        "`iterdev --version`": [iterdev, "--version"],
        "`iterdev status`": [iterdev, "status"],
    }
    contestants = {name: partial(_seconds, argv, repo) for name, argv in commands.items()}
    seconds = effort.stopwatch.medians(effort.starts, contestants)
    sizes = {name: _megabytes(argv, repo) for name, argv in commands.items()}
    python, version, status = commands
    ratios = {name: taken / seconds[python] for name, taken in seconds.items()}
    return Section(
        title="Start-up",
        measured=MEASURED,
        header=("", "time", "of `python -c pass`", "memory"),
        rows=tuple((name, ms(seconds[name]), f"{ratios[name]:.2f}", f"{sizes[name]:.1f} MB") for name in commands),
        aims=(
            Aim(
                claim="`iterdev --version` takes at most 2.5 times `python -c pass`",
                value=ratios[version],
                limit=2.5,
                why=WHY,
            ),
            Aim(
                claim="`iterdev status` takes at most 3 times `python -c pass`",
                value=ratios[status],
                limit=3,
                why="importing click, msgspec, sqlite3 and the views, and asking git where the repository is",
            ),
            Aim(claim="`iterdev --version` needs at most 30 MB", value=sizes[version], limit=30, unit="MB", why=WHY),
        ),
    )


def _finished_session(root: Path) -> scratch.Scratch:
    repo = scratch.make(root, **{"iterdev.toml": SETTINGS})
    (root / "tasks.csv").write_text(TABLE)
    repo.run("iterdev", "run", "--tasks", root / "tasks.csv", "-y")
    return repo


def _seconds(argv: Sequence[str], repo: scratch.Scratch) -> float:
    run = partial(subprocess.run, argv, cwd=repo.top, env=repo.environment, stdout=subprocess.DEVNULL, check=True)
    return timed(run)


def _megabytes(argv: Sequence[str], repo: scratch.Scratch) -> float:
    launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, *argv]
    run = partial(subprocess.run, cwd=repo.top, env=repo.environment, capture_output=True, text=True, check=True)
    return int(run(launcher).stdout) / 1024
