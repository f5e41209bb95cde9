"""A solution: a plan for one issue, made of tasks. At most one solution of an issue is bound."""

import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from itertools import count
from posixpath import normpath

from msgspec import Struct


class FileAction(StrEnum):
    modify = "modify"
    create = "create"
    delete = "delete"


class FileChange(Struct, frozen=True, kw_only=True):
    path: str
    action: str = FileAction.modify
    target: str = ""
    change: str = ""
    conflict_risk: str = ""


class SolutionTask(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    description: str = ""
    files: tuple[FileChange, ...] = ()
    depends_on: tuple[str, ...] = ()
    """Tasks of the same solution."""
    details: Mapping[str, object] = {}
    """What else the plan says: scope, action, implementation, test, regression, convergence, commit, effort."""


class Solution(Struct, frozen=True, kw_only=True):
    id: str
    description: str = ""
    approach: str = ""
    tasks: tuple[SolutionTask, ...] = ()
    estimated_files: tuple[str, ...] = ()
    """Files that it will touch beyond those that its tasks name."""
    dependencies: tuple[str, ...] = ()
    """Issues, or their solutions, that have to be carried out before it."""
    score: float | None = None
    extra: Mapping[str, object] = {}
    """Fields of other tools, such as `exploration_context` and `analysis`; they are kept and written back."""
    created_at: float = 0
    bound_at: float | None = None


def files_touched(solution: Solution) -> tuple[str, ...]:
    """The files of all tasks and those that were estimated, each once, as paths below the top of the repository."""
    paths = [change.path for task in solution.tasks for change in task.files]
    return tuple(dict.fromkeys(tidy for path in (*paths, *solution.estimated_files) if (tidy := tidy_path(path))))


def tidy_path(path: str) -> str:
    """The same path in one spelling; empty for the top itself."""
    tidy = normpath(path.strip().replace("\\", "/")).lstrip("/")
    return "" if tidy == "." else tidy


def only_creates(solution: Solution) -> bool:
    """Whether it adds files and changes none."""
    changes = [change for task in solution.tasks for change in task.files]
    return bool(changes) and all(change.action == FileAction.create for change in changes)


def new_id(issue: str, taken: Collection[str]) -> str:
    """`SOL-`, the issue and the next number."""
    pattern = re.compile(rf"SOL-{re.escape(issue)}-(\d+)")
    used = [int(found[1]) for name in taken if (found := pattern.fullmatch(name))]
    names = (f"SOL-{issue}-{number}" for number in count(max(used, default=0) + 1))
    return next(name for name in names if name not in taken)
