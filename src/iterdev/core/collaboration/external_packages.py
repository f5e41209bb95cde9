"""External packages that the work needs: declared by developers, checked before the tasks that build on their work.

Those tasks are the ones that write or run code and depend, directly or not, on the task that declared the package. A
problem blocks the task until a new check finds it solved or the user overrides it. Package registries are queried
elsewhere.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import without
from iterdev.core.results import Dependency
from iterdev.core.types import TaskId


class PackageStatus(StrEnum):
    ok = "ok"
    mismatch = "mismatch"
    missing = "missing"


class PackageCheck(Dependency, frozen=True, kw_only=True):
    actual_version: str | None
    status: PackageStatus
    reason: str = ""
    newest: str = ""
    """A newer release that the range does not allow; an update has to be planned."""

    @property
    def key(self) -> str:
        return key(self)

    @property
    def problem(self) -> str:
        found = "missing" if self.status is PackageStatus.missing else "not what is there"
        reason = f" ({self.reason})" if self.reason else ""
        return f"{f'{self.name} {self.version_range}'.strip()} is {found}{reason}"


class PackageUpdate(Dependency, frozen=True, kw_only=True):
    """An entry of the backlog: a release that is worth planning for."""

    actual_version: str | None
    newest: str
    found_by: TaskId


class PackagesOverridden(Struct, frozen=True, tag=True):
    """The task continues although packages are not as declared; so do later tasks."""

    task: TaskId
    problems: tuple[PackageCheck, ...]


class PackagesRechecked(Struct, frozen=True, tag=True):
    """The problem may be solved: the task is tried again, and its packages are checked again."""

    task: TaskId


class PackageUpdateFound(Struct, frozen=True, tag=True):
    update: PackageUpdate


PackageEvent = PackagesOverridden | PackagesRechecked | PackageUpdateFound


class Packages(Struct, frozen=True, kw_only=True):
    declared: Mapping[TaskId, tuple[Dependency, ...]] = {}
    checked: Mapping[TaskId, tuple[PackageCheck, ...]] = {}
    """The last check before each task that needs packages."""
    blocked: Mapping[TaskId, tuple[PackageCheck, ...]] = {}
    """Tasks that could not start, and why."""
    overridden: Mapping[str, None] = {}
    """The keys of packages about which the user is not asked again."""
    backlog: tuple[PackageUpdate, ...] = ()

    def unsolved(self, task: TaskId) -> tuple[PackageCheck, ...]:
        return tuple(problem for problem in self.blocked.get(task, ()) if problem.key not in self.overridden)

    def latest(self, dependency: Dependency) -> PackageCheck | None:
        """The newest check of a declared package, before any task."""
        found = [check for checks in self.checked.values() for check in checks if check.key == key(dependency)]
        return found[-1] if found else None


def key(package: Dependency) -> str:
    return f"{package.source}:{package.name} {package.version_range}".strip()


def problems(checks: Iterable[PackageCheck], overridden: Iterable[str] = ()) -> tuple[PackageCheck, ...]:
    known = set(overridden)
    return tuple(check for check in checks if check.status is not PackageStatus.ok and check.key not in known)


def needed(part: Packages, ancestors: Iterable[TaskId]) -> tuple[Dependency, ...]:
    """What a task with these tasks before it needs; of two declarations of a package the later one counts."""
    found = {(one.source, one.name): one for task in ancestors for one in part.declared.get(task, ())}
    return tuple(found.values())


def attempt_ended(
    part: Packages,
    task: TaskId,
    checks: tuple[PackageCheck, ...],
    blocked_by: tuple[PackageCheck, ...],
    declared: tuple[Dependency, ...],
) -> Packages:
    """The part after an attempt: its packages were checked, some kept it from starting, others it declared itself."""
    if declared:
        part = replace(part, declared={**part.declared, task: declared})
    if checks:
        blocked = {**without(part.blocked, task), **({task: blocked_by} if blocked_by else {})}
        part = replace(part, checked={**without(part.checked, task), task: checks}, blocked=blocked)
    return part


def updates(part: Packages) -> Iterator[PackageUpdate]:
    """Releases that were seen and are not in the backlog yet."""
    known = {(update.source, update.name, update.newest) for update in part.backlog}
    for task, checks in part.checked.items():
        for one in checks:
            if one.newest and (one.source, one.name, one.newest) not in known:
                yield PackageUpdate(
                    name=one.name,
                    source=one.source,
                    version_range=one.version_range,
                    actual_version=one.actual_version,
                    newest=one.newest,
                    found_by=task,
                )


def evolve(part: Packages, event: PackageEvent, _: float = 0) -> Packages:
    match event:
        case PackagesOverridden(task, overridden):
            keys = {**part.overridden, **dict.fromkeys(problem.key for problem in overridden)}
            return replace(part, overridden=keys, blocked=without(part.blocked, task))
        case PackagesRechecked(task):
            return replace(part, blocked=without(part.blocked, task))
        case PackageUpdateFound(update):
            return replace(part, backlog=(*part.backlog, update))
        case _:
            assert_never(event)
