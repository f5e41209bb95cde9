"""Checkpoints: where a task laid down what it would need to go on. What is in them is nobody's business here."""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core.types import TaskId

KEPT = 5
"""Checkpoints of a task; older ones are dropped."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    at: float
    pointer: str
    """The file, relative to the session folder."""


Checkpoints = Mapping[TaskId, tuple[Checkpoint, ...]]
"""By task, the newest first."""


class CheckpointSaved(Struct, frozen=True, kw_only=True, tag=True):
    task: TaskId
    pointer: str


class CheckpointRestored(Struct, frozen=True, kw_only=True, tag=True):
    task: TaskId
    pointer: str
    saved_at: float


CheckpointEvent = CheckpointSaved | CheckpointRestored


def pointer(checkpoints: Checkpoints, task: TaskId, at: float) -> str:
    """A file that no checkpoint of the task has yet."""
    taken = {checkpoint.pointer for checkpoint in checkpoints.get(task, ())}
    moment = round(at * 1000)
    while (name := f"checkpoints/{task}-{moment}.json") in taken:
        moment += 1
    return name


def newest(checkpoints: Checkpoints, task: TaskId) -> Checkpoint | None:
    return next(iter(checkpoints.get(task, ())), None)


def evolve(checkpoints: Checkpoints, event: CheckpointEvent, at: float) -> Checkpoints:
    match event:
        case CheckpointSaved(task=task, pointer=pointer):
            saved = (Checkpoint(at=at, pointer=pointer), *checkpoints.get(task, ()))
            return {**checkpoints, task: saved[:KEPT]}
        case CheckpointRestored():
            return checkpoints
