"""What the tests of git share: a scratch repository of a user with settings of their own, and a worktree beside it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Repo

from iterdev.host.git import worktrees
from iterdev.host.git.landing import Label


@pytest.fixture
def project(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """The scratch repository, for functions that are called in this process."""
    monkeypatch.setenv("HOME", str(repo.home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return repo


@pytest.fixture
def base(project: Repo) -> str:
    return project.git("rev-parse", "HEAD")


@pytest.fixture
def tree(project: Repo, tmp_path: Path, base: str) -> Path:
    """The worktree of an attempt."""
    path = tmp_path / "slot" / "tree"
    worktrees.add(project.path, path, base)
    return path


def label(task: str = "DEV-001", number: int = 1) -> Label:
    return Label(session="ids-demo", task=task, number=number, role="developer", agent="mine", title=f"Do {task}")


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of a checkout, with its mode; git's own files and ours are left out."""
    paths = (path for path in folder.rglob("*") if not {".git", ".workflow"} & set(path.relative_to(folder).parts))
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in paths
    }


def without_power_over_files(script: str, *args: str) -> str:
    """What a Python script prints for which permissions of files count, also if root runs the tests."""
    drop = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()
    if drop and not shutil.which(drop[0]):
        pytest.skip("there is no program `setpriv` to give up the rights of root with")
    command = [*drop, sys.executable, "-c", script, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
