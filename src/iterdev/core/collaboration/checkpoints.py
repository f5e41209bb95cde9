"""Checkpoints: opaque data that a task saves so that a later attempt can continue."""

from collections.abc import Mapping
from itertools import count
from typing import assert_never

from msgspec import Struct

from iterdev.core.types import TaskId


class Checkpoint(Struct, frozen=True, kw_only=True):
    at: float
    pointer: str
    """The file, relative to the session folder."""


Checkpoints = Mapping[TaskId, tuple[Checkpoint, ...]]
"""By task, the newest first."""


class CheckpointSaved(Struct, frozen=True, kw_only=True, tag=True):
    task: TaskId
    pointer: str
    dropped: tuple[str, ...] = ()
    """Older checkpoints of the task that are not kept any longer."""


class CheckpointRestored(Struct, frozen=True, kw_only=True, tag=True):
    task: TaskId
    pointer: str
    saved_at: float


CheckpointEvent = CheckpointSaved | CheckpointRestored


def save(checkpoints: Checkpoints, task: TaskId, at: float, *, kept: int) -> CheckpointSaved:
    """A checkpoint under a new name; only the newest ones of the task are kept."""
    known = checkpoints.get(task, ())
    taken = {checkpoint.pointer for checkpoint in known}
    names = (f"checkpoints/{task}-{moment}.json" for moment in count(round(at * 1000)))
    pointer = next(name for name in names if name not in taken)
    return CheckpointSaved(task=task, pointer=pointer, dropped=tuple(one.pointer for one in known[kept - 1 :]))


def newest(checkpoints: Checkpoints, task: TaskId) -> Checkpoint | None:
    return next(iter(checkpoints.get(task, ())), None)


def evolve(checkpoints: Checkpoints, event: CheckpointEvent, at: float) -> Checkpoints:
    match event:
        case CheckpointSaved(task=task, pointer=pointer, dropped=dropped):
            kept = (one for one in checkpoints.get(task, ()) if one.pointer not in dropped)
            return {**checkpoints, task: (Checkpoint(at=at, pointer=pointer), *kept)}
        case CheckpointRestored():
            return checkpoints
        case _:
            assert_never(event)
