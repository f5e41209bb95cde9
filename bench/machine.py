"""The machine that is measured on: what matters about it, and nothing that names it; and whether it was quiet."""

import os
import platform
import sqlite3
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from iterdev import __version__


class Moment(Struct, frozen=True, kw_only=True):
    """Seconds since some beginning."""

    clock: float
    busy: float
    """Of all processors together."""
    ours: float
    """Of this process and of those it has seen ending."""


def now() -> Moment:
    # user nice system idle iowait irq softirq steal
    ticks = [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]
    busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    return Moment(clock=time.monotonic(), busy=busy, ours=sum(os.times()[:4]))


def described(since: Moment) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    kernel = f"{platform.system()} {platform.release().partition('-')[0]}"
    return (
        f"Measured on {datetime.now(UTC):%d %B %Y} with iterdev {__version__} on {os.cpu_count()} cores "
        f"({_processor()}) with {memory:.0f} GB of memory, {kernel}, Python {platform.python_version()}, "
        f"git {git}, SQLite {sqlite3.sqlite_version}. Meanwhile, {_foreign(since, now()):.0%} of the processors' time "
        f"went to other programs."
    )


def _foreign(begin: Moment, end: Moment) -> float:
    """The share of what the processors could do that others took; more than a few per cent spoils the figures."""
    taken = (end.busy - begin.busy) - (end.ours - begin.ours)
    return max(0.0, taken / (end.clock - begin.clock) / (os.cpu_count() or 1))


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
