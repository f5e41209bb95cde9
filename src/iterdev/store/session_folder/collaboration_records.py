"""Locks, checkpoints, feedback and debt as documents: what .msg/meta.json and `--json` show of them, and back."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from iterdev.core.collaboration.checkpoints import Checkpoint, CheckpointSaved
from iterdev.core.collaboration.feedback import Feedback, FeedbackGiven
from iterdev.core.collaboration.locks import Lock
from iterdev.core.collaboration.tech_debt import Debt, DebtIdentified, Report
from iterdev.core.ids import moment
from iterdev.core.session.events import CollaborationEvent
from iterdev.core.session.state import State
from iterdev.core.types import TaskId

Document = dict[str, object]
Item = TypeVar("Item")


def shared(state: State) -> Document:
    return {
        "resource_locks": lock_records(state.locks.held),
        "task_checkpoints": {
            task: [checkpoint_record(one) for one in kept] for task, kept in state.checkpoints.items()
        },
        "user_feedback_items": [feedback_record(item) for item in state.feedback],
        "tech_debt_items": [debt_record(item) for item in state.debt],
    }


def lock_records(held: Mapping[str, Lock]) -> Document:
    return {resource: lock_record(lock) for resource, lock in held.items()}


def lock_record(lock: Lock) -> Document:
    return {"locked_by_task_id": lock.task, "timestamp": moment(lock.at), "holder_role": lock.role}


def checkpoint_record(checkpoint: Checkpoint) -> Document:
    return {"timestamp": moment(checkpoint.at), "state_data_pointer": checkpoint.pointer}


def feedback_record(item: Feedback) -> Document:
    record: Document = msgspec.to_builtins(item)
    return record | {"timestamp": moment(item.timestamp)}


def debt_record(item: Debt) -> Document:
    record: Document = msgspec.to_builtins(item)
    return record | {"detection_date": moment(item.detection_date)}


def debt_report(report: Report) -> Document:
    record: Document = msgspec.to_builtins(report)
    return record | {
        "open_items": [debt_record(item) for item in report.open_items],
        "in_progress_items": [debt_record(item) for item in report.in_progress_items],
    }


def events_from(meta: Mapping[str, object]) -> Iterator[CollaborationEvent]:
    """What a rebuild can take over from the shared state, oldest first; locks died with whoever held them."""
    for record in _records(meta.get("user_feedback_items")):
        yield from (FeedbackGiven(item) for item in _read(record, "timestamp", Feedback))
    for record in _records(meta.get("tech_debt_items")):
        yield from (DebtIdentified(item) for item in _read(record, "detection_date", Debt))
    by_task = meta.get("task_checkpoints")
    for task, kept in by_task.items() if isinstance(by_task, dict) else ():
        for record in _records(kept):
            pointer = record.get("state_data_pointer")
            if isinstance(pointer, str):
                yield CheckpointSaved(task=TaskId(task), pointer=pointer)


def _records(value: object) -> Sequence[Document]:
    records = value if isinstance(value, list) else []
    return [record for record in reversed(records) if isinstance(record, dict)]


def _read(record: Document, time: str, kind: type[Item]) -> Iterator[Item]:
    try:
        at = datetime.fromisoformat(str(record.get(time))).timestamp()
        yield msgspec.convert(record | {time: at}, kind)
    except (ValueError, OverflowError):
        return
