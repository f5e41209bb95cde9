"""A scratch repository with the bundled sample, whose scripted teams have defects planted in their first tries."""

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from itertools import count
from pathlib import Path

from msgspec import Struct

from iterdev.app.inspect import report
from iterdev.app.issues import edit, resolve
from iterdev.app.start import start
from iterdev.core import ids
from iterdev.core.request import Request
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.host.git import checkout, commits, refs, worktrees
from iterdev.host.git.command import Identity
from iterdev.teams.development import demo
from iterdev.teams.development.team import DEVELOPMENT
from iterdev.teams.issues import demo as issue_demo
from iterdev.teams.issues.team import ISSUES

ISSUE_AGENT = "issue-team"
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


class Demo(Struct, frozen=True, kw_only=True):
    """What a team is asked, and what the result has to be."""

    asked: str
    defect: str
    start: Callable[[Repository], SessionId]
    found_and_fixed: Callable[[State], bool]
    lands_all: bool
    """Whether the session is a success; otherwise a part of its work is meant to stay out."""
    next_commands: tuple[str, ...]
    """What to look at, and how to accept the work."""


def _start_sprint(repository: Repository) -> SessionId:
    return start(repository, Request(requirement=demo.REQUIREMENT, auto=True, pipeline=demo.PIPELINE))


def _start_resolving(repository: Repository) -> SessionId:
    issues = [edit.create(repository, document) for document in issue_demo.ISSUES]
    request = Request(requirement="", auto=True, agent=ISSUE_AGENT)
    return resolve.start_resolving(repository, request, issues, None)


DEMOS = {
    DEVELOPMENT.name: Demo(
        asked=f'the request "{demo.REQUIREMENT}"',
        defect=demo.DEFECT,
        start=_start_sprint,
        found_and_fixed=demo.found_and_fixed,
        lands_all=True,
        next_commands=("iterdev report", "iterdev accept"),
    ),
    ISSUES.name: Demo(
        asked=f"{len(issue_demo.ISSUES)} issues",
        defect=issue_demo.DEFECTS,
        start=_start_resolving,
        found_and_fixed=issue_demo.found_and_fixed,
        lands_all=False,
        next_commands=(
            *("iterdev issue list", f"iterdev issue status {issue_demo.BROKEN}"),
            *("iterdev diff --stat", "iterdev accept --force"),
        ),
    ),
}
"""By team; the first one is the default."""


def short_report(repository: Repository, session: SessionId) -> str:
    """The report without the part about each wave and each task."""
    return report(repository, session).partition("\n---\n\n## Pipeline Execution")[0]


def branch_log(repository: Repository, session: SessionId) -> tuple[str, str]:
    """The session's branch, and the commits on it."""
    branch = ids.branch(session)
    return branch, checkout.short_log(repository.top, branch)


def found_and_fixed(shown: Demo, repository: Repository, session: SessionId) -> bool:
    return shown.found_and_fixed(repository.state(session))
