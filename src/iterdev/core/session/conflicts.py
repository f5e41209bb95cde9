"""Conflicts: two tasks changed the same file, and neither had seen the work of the other.

A task that worked on top of another one is never in conflict with it. What git merges by itself lands; what it cannot
merge is kept, and a conflict task (see `conflict_tasks`) merges both changes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import Draft, OwnMap
from iterdev.core.session import events
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.types import ConflictStrategy, Status, TaskId

EVENTS = (
    *get_args(events.AttemptEvent),
    *(events.UpdateStarted, events.RollbackStarted, events.TaskReported, events.TasksReset, LandingTakenOut),
)


class Change(Struct, frozen=True, gc=False):
    """A task whose work changed a file, and the place in the journal at which it landed."""

    task: TaskId
    landed: int


class KnownConflict(Struct, frozen=True, kw_only=True):
    found: events.Conflict
    strategy: ConflictStrategy | None = None
    resolved_by: TaskId | None = None


class Conflicts(Struct, frozen=True, kw_only=True):
    by_task: Mapping[TaskId, KnownConflict] = {}
    unresolved: Mapping[TaskId, None] = {}
    """Conflicts about which nothing has been done yet."""
    started: Mapping[TaskId, int] = {}
    """The place in the journal at which work that is under way began."""
    touched: Mapping[str, tuple[Change, ...]] = {}
    """What landed on a file since the oldest of that work began, in the order of landing."""


class ConflictsDraft(Draft[Conflicts]):
    _by_task = OwnMap[TaskId, KnownConflict]()
    _unresolved = OwnMap[TaskId, None]()
    _started = OwnMap[TaskId, int]()
    _touched = OwnMap[str, tuple[Change, ...]]()

    def apply(self, event: object, _: float, seq: int) -> None:
        match event:
            case events.AttemptStarted(task) | events.UpdateStarted(task):
                self._started[task] = seq
                if task in self.part.by_task:
                    del self._by_task[task]
            case events.AttemptEnded(task=task, status=status):
                if status is not Status.landing:
                    self._started.pop(task, None)
            case events.TaskReported(task=task) | LandingTakenOut(task=task):
                self._started.pop(task, None)
            case events.Landed(task=task, changed=changed, conflict=conflict):
                self._land(task, changed, seq)
                self._note(task, conflict)
            case events.LandingRefused(task=task, conflict=conflict):
                self._started.pop(task, None)
                self._note(task, conflict)
            case events.ConflictResolved(task=task, strategy=strategy, fix=fix):
                known = self._by_task[task]
                self._by_task[task] = replace(known, strategy=strategy, resolved_by=fix)
                self._unresolved.pop(task, None)
            case events.TasksReset(tasks):
                for task in tasks:
                    self._unresolved.pop(task, None)
            case events.RollbackStarted():
                self._forget(event.undone)
            case _:
                raise TypeError(event)

    def _note(self, task: TaskId, conflict: events.Conflict | None) -> None:
        if conflict:
            self._by_task[task] = KnownConflict(found=conflict)
            self._unresolved[task] = None

    def _land(self, task: TaskId, changed: Iterable[str], seq: int) -> None:
        """Notes what the work changed, as long as other work is under way that may be in conflict with it."""
        self._started.pop(task, None)
        if not self._started:
            self._touched.clear()
            return
        oldest = min(self._started.values())
        for file in changed:
            recent = since(oldest, self._touched.get(file, ()))
            self._touched[file] = (*recent, Change(task, seq))

    def _forget(self, tasks: Collection[TaskId]) -> None:
        for task in tasks:
            for owned in (self._by_task, self._unresolved, self._started):
                owned.pop(task, None)
        for file, changes in list(self._touched.items()):
            self._touched[file] = tuple(change for change in changes if change.task not in tasks)


def merged_by(part: Conflicts, task: TaskId) -> TaskId | None:
    """The task whose work a conflict task merges; None if it is no conflict task."""
    return next((other for other, conflict in part.by_task.items() if conflict.resolved_by == task), None)


def overlap(part: Conflicts, task: TaskId, files: Iterable[str]) -> tuple[tuple[str, ...], tuple[TaskId, ...]]:
    """The files that other tasks changed too since the work of this one began, and those tasks."""
    began = part.started[task]
    both = {file: changes for file in files if (changes := since(began, part.touched.get(file, ())))}
    return tuple(both), tuple(dict.fromkeys(change.task for changes in both.values() for change in changes))


def since(began: int, changes: Iterable[Change]) -> list[Change]:
    return [change for change in changes if change.landed > began]


class MergeInProgress(Struct, frozen=True, kw_only=True):
    """Work that could not land, and that a conflict task merges."""

    task: TaskId
    commit: str


class FinishedMerge(Struct, frozen=True, kw_only=True):
    """How a merge that an agent finished compares with how git had begun it."""

    marked: Mapping[str, tuple[int, ...]] = {}
    """Files with lines in which a conflict marker is left."""
    dropped: tuple[str, ...] = ()
    """Files that git had merged by itself, and that are as if it had not."""
    without: tuple[str, ...] = ()
    """Files in conflict that have nothing of the work that was to be merged."""
    replaced: tuple[str, ...] = ()
    """Files in conflict that have nothing but it."""


def faults(merged: FinishedMerge, work: TaskId, left_alone: Callable[[str], bool]) -> list[str]:
    """What is wrong with a finished merge. An agent that leaves a file alone has to say so."""
    lines = {file: ", ".join(map(str, lines)) for file, lines in merged.marked.items()}
    why = "if that is right, leave the file out of `changed_files` and say why in `findings`"
    return [
        *(f"{file}: conflict markers are left in line {places}" for file, places in lines.items()),
        *(f"{file}: the change of {work}, which git had merged, is missing" for file in merged.dropped),
        *(f"{_missing(file, work)}; {why}" for file in merged.without if not left_alone(file)),
    ]


def doubts(merged: FinishedMerge, work: TaskId, left_alone: Callable[[str], bool]) -> list[str]:
    """What may be right in a finished merge, but needs a second look and a warning."""
    return [
        *(_missing(file, work) for file in merged.without if left_alone(file)),
        *(f"{file}: it is as {work} left it, without any change of other tasks" for file in merged.replaced),
    ]


def _missing(file: str, work: TaskId) -> str:
    return f"{file}: it has nothing of the change of {work}"
