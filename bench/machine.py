"""The machine that is measured on: what matters about it, and nothing that names it."""

import os
import platform
import sqlite3
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from iterdev import __version__


def described() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    kernel = f"{platform.system()} {platform.release().partition('-')[0]}"
    return (
        f"Measured on {datetime.now(UTC):%d %B %Y} with iterdev {__version__} on {os.cpu_count()} cores "
        f"({_processor()}) with {memory:.0f} GB of memory, {kernel}, Python {platform.python_version()}, "
        f"git {git}, SQLite {sqlite3.sqlite_version}."
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
