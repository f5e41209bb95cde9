"""Starts a program that outlives the one that started it, also if that one is killed."""

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path


def start(argv: Sequence[str], *, cwd: Path, output: Path) -> "subprocess.Popen[bytes]":
    """Starts the program in a process session of its own, without a terminal; what it prints is in the file."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with open(output, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        process = subprocess.Popen(
            argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
    # If this process lives longer, as a server does, the other one must not stay a zombie.
    threading.Thread(target=process.wait, daemon=True).start()
    return process


def complete(argv: Sequence[str], *, cwd: Path, text: str) -> "subprocess.CompletedProcess[str]":
    """Runs the program to its end, with a text as its standard input; a signal to this process does not reach it."""
    return subprocess.run(
        argv, cwd=cwd, input=text, capture_output=True, encoding="utf-8", start_new_session=True, check=False
    )
