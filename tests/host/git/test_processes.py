"""Git's processes: a filter of the user that hangs shows what becomes of them."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Repo

from iterdev.core.errors import HostError
from iterdev.host.git.command import git

ENGINE = """
import anyio, sys
from pathlib import Path
from iterdev.host.git.command import git
from iterdev.host.processes.spawn import Supervisor

async def main():
    async with Supervisor(lease_fds=[int(sys.argv[1])]):
        await anyio.to_thread.run_sync(lambda: git("add", "new.txt", cwd=Path.cwd()))

anyio.run(main)
"""


@pytest.fixture
def pipe(project: Repo, tmp_path: Path) -> Path:
    """A named pipe that a hanging filter and a daemon of it hold open; they write to it again if they are not ended."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    hang = "sleep 30; echo survived >&9"
    project.git("config", "filter.slow.clean", f"exec 9>{path}; (setsid sh -c '{hang}' &); echo ready >&9; {hang}")
    project.write(".gitattributes", "new.txt filter=slow\n")
    project.write("new.txt", "new\n")
    return path


def test_at_its_limit_the_whole_tree_of_git_is_killed(project: Repo, pipe: Path) -> None:
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:
        with pytest.raises(HostError, match="did not end within 1 s"):
            git("add", "new.txt", cwd=project.path, seconds=1)

        os.set_blocking(opened.fileno(), True)
        written = opened.read()

    assert b"survived" not in written


def test_git_ends_with_an_engine_that_is_killed_and_the_lease_only_after_it(
    project: Repo, pipe: Path, tmp_path: Path
) -> None:
    with (tmp_path / "lease").open("w") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        number = lease.fileno()
        engine = subprocess.Popen(
            [sys.executable, "-c", ENGINE, str(number)], cwd=project.path, env=project.env, pass_fds=[number]
        )
    with pipe.open("rb") as opened:
        ready = opened.readline()
        engine.kill()
        engine.wait()
        written = opened.read()
    with (tmp_path / "lease").open("w") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)

    assert (ready, written) == (b"ready\n", b"")


def test_a_git_that_a_ctrl_c_hits_before_it_has_its_own_group_is_run_again(
    project: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = tmp_path / "bin" / "git"
    hit.parent.mkdir()
    about = 'case "$*" in *--version) echo git version 9.9; exit;; esac'
    strike = f"test -e {tmp_path}/hit || {{ touch {tmp_path}/hit; kill -INT $$; }}"
    hit.write_text(f"#!/bin/sh\n{about}\n{strike}\necho done\n")
    hit.chmod(0o755)
    monkeypatch.setenv("PATH", f"{hit.parent}:{os.environ['PATH']}")

    assert git("status", cwd=project.path).stdout == "done\n"
