"""What a session leaves in its folder and on the machine, as tests look at it."""

import csv
import json
from pathlib import Path

from tests.clis import alive
from tests.conftest import Repo


def rows(folder: Path, name: str = "tasks.csv") -> dict[str, dict[str, str]]:
    """The rows of a session's table by their ids."""
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def statuses(folder: Path) -> dict[str, str]:
    return {name: row["status"] for name, row in rows(folder).items()}


def document(path: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def messages(folder: Path, kind: str) -> list[str]:
    """The summaries of the messages of one type on the bus."""
    lines = (folder / ".msg" / "messages.jsonl").read_text(encoding="utf-8").splitlines()
    return [message["summary"] for message in map(json.loads, lines) if message["type"] == kind]


def left_behind(repo: Repo) -> list[str]:
    """Processes, worktrees and temporary files that a run should have taken with it.

    To be asked before anybody else looks at the repository: a look is a process too.
    """
    found = [f"process: {process}" for process in processes(repo)]
    found += [f"worktree: {worktree}" for worktree in repo.worktrees()[1:]]
    found += [f"workspace: {path}" for path in (repo.home / "iterdev").rglob("*")]
    found += [f"temporary: {path}" for path in (repo.home / "tmp").rglob("*")]
    return found + [f"half written: {path}" for path in (repo.path / ".workflow").rglob("*iterdev-tmp*")]


def processes(repo: Repo) -> list[str]:
    """Everything alive that has the scratch folder in its environment."""
    return [line for line in alive(str(repo.home)) if line]
