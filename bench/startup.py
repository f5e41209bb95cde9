"""What the shortest commands cost, beside the interpreter that they need."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path

import scratch
from measure import Aim, Effort, Section, ms, timed

MEASURED = """\
`iterdev --version`, and `iterdev status` of a finished session of one task, beside `python -c pass` with the same \
interpreter, from start to exit; `iterdev run` of a table of one row in a new repository, until the first line of its \
agent, a shell script; memory is the highest resident size that the kernel reports."""
WHY = "the console script and the packages that the environment loads at every start"
WHY_STATUS = """\
250 modules are imported, which takes three quarters of the processor time: a sixth each for click with what it \
imports, for the types of all that a session and its state are made of, and for the two teams, a fifteenth for \
msgspec; no git is started"""
WHY_FIRST = """\
580 modules are imported, which takes three quarters of the engine's processor time until then, and git is asked \
seventeen questions about the repository, the checkout and the session before the first workspace is made"""
FIRST, ADD = "`iterdev run` until its first agent starts", "`git worktree add`"
AGENT = 'date +%s.%N > "$BEGAN"\nprintf \'{"id":"DEV-001","status":"failed","error":"measured"}\' > "$ITERDEV_RESULT"\n'
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
    contestants |= {FIRST: partial(_first_agent, root, count()), ADD: partial(_worktree_added, repo, count())}
    seconds = effort.stopwatch.medians(effort.starts, contestants)
    sizes = {name: _megabytes(argv, repo) for name, argv in commands.items()}
    python, version, status = commands
    ratios = {name: taken / seconds[python] for name, taken in seconds.items()}
    return Section(
        title="Start-up",
        measured=MEASURED,
        repetitions=f"{effort.starts}, the median; memory once",
        header=("", "time", "of `python -c pass`", "memory"),
        rows=(
            *((name, ms(seconds[name]), f"{ratios[name]:.2f}", f"{sizes[name]:.1f} MB") for name in commands),
            *((name, ms(seconds[name]), f"{ratios[name]:.2f}", "-") for name in (FIRST, ADD)),
        ),
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
                why=WHY_STATUS,
            ),
            Aim(
                claim="`iterdev run` starts its first agent at most 0.25 s later than `git worktree add` would take",
                value=seconds[FIRST] - seconds[ADD],
                limit=0.25,
                unit="s",
                why=WHY_FIRST,
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


def _first_agent(root: Path, numbers: "count[int]") -> float:
    """Seconds from the start of the command to the first line of its agent."""
    folder = root / f"first-{next(numbers)}"
    script, began = folder / "agent.sh", folder / "began"
    settings = f'[run]\nagent = "bench"\n[agents.bench]\ncommand = ["sh", {json.dumps(str(script))}]\n'
    repo = scratch.make(folder, **{"iterdev.toml": settings})
    script.write_text(AGENT.replace("$BEGAN", str(began)))
    (folder / "tasks.csv").write_text("id,description\nDEV-001,Write one file\n")
    argv = ["iterdev", "run", "--tasks", str(folder / "tasks.csv"), "-y"]
    begin = time.time()
    subprocess.run(argv, cwd=repo.top, env=repo.environment, capture_output=True, check=False)
    return float(began.read_text()) - begin


def _worktree_added(repo: scratch.Scratch, numbers: "count[int]") -> float:
    return timed(lambda: repo.git("worktree", "add", "-q", "--detach", repo.home / f"tree-{next(numbers)}"))


def _megabytes(argv: Sequence[str], repo: scratch.Scratch) -> float:
    launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, *argv]
    run = partial(subprocess.run, cwd=repo.top, env=repo.environment, capture_output=True, text=True, check=True)
    return int(run(launcher).stdout) / 1024
