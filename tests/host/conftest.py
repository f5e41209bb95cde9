"""What the tests of git share: a scratch repository of a user with settings of their own, and a worktree beside it."""

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
