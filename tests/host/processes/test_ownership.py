"""Programs that are run to their end, with everything that they start."""

import os
import subprocess
from pathlib import Path

import pytest

from iterdev.host.processes import ownership


def test_what_a_program_prints_and_how_it_ends_is_known(tmp_path: Path) -> None:
    script = "cat; echo wrong >&2; pwd -P; exit 3"

    ran = ownership.run(["sh", "-c", script], env=os.environ, seconds=60, cwd=tmp_path, stdin=b"given\n")

    assert (ran.returncode, ran.stdout, ran.stderr) == (3, f"given\n{tmp_path.resolve()}\n".encode(), b"wrong\n")


def test_at_the_time_limit_everything_that_a_program_started_is_ended(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Another process session, and so not in the program's process group.
    script = f"setsid sleep 1000 > {pipe} & cat {pipe}; wait"

    with pytest.raises(subprocess.TimeoutExpired):
        ownership.run(["sh", "-c", script], env=os.environ, seconds=1)

    left = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert os.read(left, 1) == b"", "a process still has the pipe open for writing"
    finally:
        os.close(left)
