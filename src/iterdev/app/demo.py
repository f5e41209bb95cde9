"""A scratch repository with the bundled sample, whose scripted team has a defect planted in its first try."""

import shutil
import tempfile
from contextlib import suppress
from importlib import resources
from itertools import count
from pathlib import Path

from iterdev.app.inspect import report
from iterdev.app.start import start
from iterdev.core import ids
from iterdev.core.request import Request
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.host.git import checkout, commits, refs, worktrees
from iterdev.host.git.command import Identity
from iterdev.teams.development import demo

REQUIREMENT, DEFECT = demo.REQUIREMENT, demo.DEFECT
AUTHOR = Identity("iterdev demo", "demo@iterdev.invalid")


def create_repository() -> Repository:
    """A new repository in the folder for temporary files, with the sample as its first commit."""
    top = _new_folder()
    with resources.as_file(resources.files("iterdev") / "sample") as sample:
        shutil.copytree(sample, top, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    checkout.init(top, "main")
    commit = commits.commit_tree(top, worktrees.write_tree(top), (), "Start with a till\n", AUTHOR)
    refs.move_ref(top, "refs/heads/main", commit)
    return Repository(top)


def _new_folder() -> Path:
    """A number is easier to read and to type than the letters of mkdtemp; mkdir is as safe against races."""
    for number in count(1):
        folder = Path(tempfile.gettempdir()) / f"iterdev-demo-{number}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            return folder
    raise AssertionError("numbers do not end")


def start_session(repository: Repository) -> SessionId:
    return start(repository, Request(requirement=REQUIREMENT, auto=True, pipeline=demo.PIPELINE))


def short_report(repository: Repository, session: SessionId) -> str:
    """The report without the part about each task."""
    return report(repository, session).partition("\n---\n\n## Pipeline Execution")[0]


def branch_log(repository: Repository, session: SessionId) -> tuple[str, str]:
    """The session's branch, and the commits on it."""
    branch = ids.branch(session)
    return branch, checkout.short_log(repository.top, branch)


def found_and_fixed(repository: Repository, session: SessionId) -> bool:
    return demo.found_and_fixed(repository.state(session))
