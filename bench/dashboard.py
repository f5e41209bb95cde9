"""What `iterdev watch` costs: to its first picture, and while nothing happens."""

import os
import pty
import select
import shutil
import signal
import struct
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

from msgspec import Struct

import scratch
from measure import Aim, Effort, Section

MEASURED = """\
`iterdev watch` in a pseudo-terminal of 120 columns and 40 lines, on a session whose tasks are completed: processor \
time and memory of the process when the last line of its first picture has come, and the processor time that it uses \
while nothing happens, as a part of one core."""
WHY = """\
textual, asyncio and SQLite take 33 MB before anything of iterdev is loaded, and its own modules 10 MB more, none of \
them more than 0.6 MB"""
SIZES = (10, 1_000)
REPETITIONS = 3
PAINTED = b"quit"
"""The last word of the last line."""
SETTINGS = '[run]\nagent = "bench"\n[agents.bench]\ncommand = ["true"]\n'
DEADLINE = 60.0


class Cost(Struct, frozen=True):
    seconds: float
    megabytes: float
    idle: float


def measure(effort: Effort, root: Path) -> Section:
    sizes = SIZES if effort.cache else (SIZES[0],)
    idle = 10.0 if effort.cache else 0.5
    repetitions = min(effort.repetitions, REPETITIONS)
    costs = {size: _cheapest(_session(root / f"watch-{size}", size), repetitions, idle) for size in sizes}
    first = costs[sizes[0]]
    return Section(
        title="The dashboard in a terminal",
        measured=MEASURED,
        repetitions=f"{repetitions}, the least of each figure",
        header=("tasks", "processor time to the first picture", "memory", "idle"),
        rows=tuple(
            (f"{size:,}", f"{cost.seconds:.2f} s", f"{cost.megabytes:.1f} MB", f"{cost.idle:.1%}")
            for size, cost in costs.items()
        ),
        aims=(
            Aim(
                claim="`iterdev watch` shows 10 tasks after at most 0.7 s of processor time",
                value=first.seconds,
                limit=0.7,
                unit="s",
                why=WHY,
            ),
            Aim(claim="`iterdev watch` needs at most 45 MB", value=first.megabytes, limit=45, unit="MB", why=WHY),
            Aim(
                claim="`iterdev watch` uses at most 1 % of a core while nothing happens",
                value=first.idle * 100,
                limit=1,
                unit="%",
                why="the journal is looked at ten times a second, and agents' output twice",
            ),
        ),
    )


def _session(root: Path, size: int) -> scratch.Scratch:
    repo = scratch.make(root, **{"iterdev.toml": SETTINGS})
    rows = "".join(f"DEV-{number:04d},Write one file,completed\n" for number in range(1, size + 1))
    (root / "tasks.csv").write_text(f"id,description,status\n{rows}")
    repo.run("iterdev", "run", "--tasks", root / "tasks.csv", "-y")
    return repo


def _cheapest(repo: scratch.Scratch, repetitions: int, idle: float) -> Cost:
    """The least of each, since other programs only add to it."""
    costs = [_watched(repo, idle) for _ in range(repetitions)]
    names = Cost.__struct_fields__
    return Cost(*(min(getattr(cost, name) for cost in costs) for name in names))


def _watched(repo: scratch.Scratch, idle: float) -> Cost:
    iterdev = shutil.which("iterdev", path=Path(sys.executable).parent) or "iterdev"
    environment = {name: text for name, text in repo.environment.items() if name not in {"NO_COLOR", "CI"}}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(repo.top)
        ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        os.execve(iterdev, [iterdev, "watch"], environment | {"TERM": "xterm-256color"})
    try:
        _read_until_painted(terminal)
        seconds, megabytes = _processor_time(pid), _memory(pid)
        _read_for(terminal, idle / 5)
        begin, before = time.monotonic(), _processor_time(pid)
        _read_for(terminal, idle)
        used = (_processor_time(pid) - before) / (time.monotonic() - begin)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)
    return Cost(seconds, megabytes, used)


def _read_until_painted(terminal: int) -> None:
    seen, end = b"", time.monotonic() + DEADLINE
    while PAINTED not in seen:
        if time.monotonic() > end:
            raise SystemExit(f"iterdev watch showed nothing in {DEADLINE:g} s but {seen[-200:]!r}")
        seen = (seen + _read(terminal, 0.05))[-65536:]


def _read_for(terminal: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        _read(terminal, left)


def _read(terminal: int, seconds: float) -> bytes:
    readable, _, _ = select.select([terminal], [], [], seconds)
    return os.read(terminal, 65536) if readable else b""


def _processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
