"""What is answered to whoever uses a lock or a checkpoint; who that is, the caller of this module knows."""

from pathlib import Path

from iterdev.core.collaboration.locks import Ask
from iterdev.core.collaboration.tool_schemas import ResourceLock, TaskCheckpoint
from iterdev.core.ids import moment
from iterdev.core.session.state import State
from iterdev.core.types import TaskId
from iterdev.engine import collaboration
from iterdev.engine.collaboration import Document, LockAnswer, NothingRestored, Refused
from iterdev.store.session_folder.collaboration_records import checkpoint_record, lock_record, lock_records
from iterdev.store.session_log import SessionLog


def use_lock(log: SessionLog, asked: ResourceLock, *, task: TaskId, role: str, engine_alive: bool = True) -> Document:
    """Acquires or releases in the name of the task."""
    resource = asked.resource.strip()
    if not resource:
        raise Refused('The name of the resource is empty; a path such as "src/app.py" is a good one.')
    if asked.operation == "release":
        released = collaboration.release(log, resource, task, engine_alive=engine_alive)
        return {"released": released, "resource": resource, "task": task}
    ask = Ask(resource=resource, task=task, role=role)
    return _granted_or_not(ask, collaboration.acquire(log, ask, engine_alive=engine_alive))


def listed_locks(state: State, at: float, *, engine_alive: bool = True) -> Document:
    current = collaboration.current_locks(state, at, engine_alive=engine_alive)
    waiting = {task: want.resource for task, want in current.wanted.items()}
    return {"resource_locks": lock_records(current.held), "waiting": waiting}


def use_checkpoint(log: SessionLog, folder: Path, asked: TaskCheckpoint, task: TaskId) -> Document:
    """Saves or restores what the task would need to go on."""
    if asked.operation == "save":
        return checkpoint_record(collaboration.save(log, folder, task, asked.data))
    restored = collaboration.restore(log, folder, task)
    if isinstance(restored, NothingRestored):
        why = f"Nothing was restored: {restored.why}"
        return {"restored": False, "why": why, "hint": f"begin {task} at its first step"}
    return {"restored": True, **checkpoint_record(restored.checkpoint), "data": restored.data}


def listed_checkpoints(state: State, task: str) -> Document:
    """Those of one task, or of all."""
    kept = {name: all_ for name, all_ in state.checkpoints.items() if task in {"", name}}
    return {"task_checkpoints": {name: [checkpoint_record(one) for one in all_] for name, all_ in kept.items()}}


def _granted_or_not(ask: Ask, answer: LockAnswer) -> Document:
    lock = answer.lock
    document: Document = {"granted": answer.granted, "resource": ask.resource, **lock_record(lock)}
    if answer.granted:
        return document | {"until": moment(lock.ends_at)}
    held = f'The lock on "{ask.resource}" is held by {lock.task} ({lock.role}) since {moment(lock.at)}'
    if answer.aborted:
        why = f"{held}, and both waited for each other: {ask.task} is the younger one, and lost its locks"
        return document | {"aborted": True, "why": why, "hint": "begin again when the other one is done"}
    return document | {"why": held, "hint": "to wait for it, ask again every minute; if you do not wait, release it"}
