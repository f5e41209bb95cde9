"""Starts a program that outlives the one that started it."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


def start(argv: Sequence[str], *, cwd: Path, output: Path) -> "subprocess.Popen[bytes]":
    """Starts the program in a process session of its own, without a terminal; what it prints is in the file."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with open(output, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        return subprocess.Popen(
            argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
