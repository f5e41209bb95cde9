"""Locks, checkpoints, feedback and debt on a session's log: what commands and the tools of agents call.

Each function decides on the newest state and records what follows. Texts come here without secrets.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from iterdev.core.collaboration import checkpoints, feedback, locks, tech_debt
from iterdev.core.collaboration.checkpoints import Checkpoint, CheckpointRestored, CheckpointSaved
from iterdev.core.collaboration.feedback import Feedback, FeedbackLinked, FeedbackMoved, FeedbackStatus
from iterdev.core.collaboration.locks import Ask, DeadlockBroken, Lock, LockReleased, Locks
from iterdev.core.collaboration.tech_debt import Debt, DebtMoved, DebtStatus
from iterdev.core.errors import UserError
from iterdev.core.session.events import Event, Warned
from iterdev.core.session.state import State
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.repository import Repository
from iterdev.host import clock, session_lease
from iterdev.store import atomic_files
from iterdev.store.session_folder.projector import Projector
from iterdev.store.session_log import SessionLog


class LockAnswer(Struct, frozen=True, kw_only=True):
    lock: Lock
    """The lock on the resource as it is now: the task's own, or that of somebody else."""
    granted: bool
    aborted: bool = False
    """The task lost its own locks, because it and others waited for each other."""


class Restored(Struct, frozen=True, kw_only=True):
    checkpoint: Checkpoint
    data: object


class NothingRestored(Struct, frozen=True):
    """The task begins at its beginning."""

    why: str


@contextmanager
def opened(repository: Repository, session: SessionId) -> Iterator[SessionLog]:
    """A log for a process that is not the engine; if no engine runs, the session folder follows what is written."""
    log = SessionLog(repository.journal, session, now=clock.now)
    before = log.state.seq
    yield log
    if log.state.seq == before:
        return
    folder = repository.folder(log.state)
    with suppress(session_lease.Held), session_lease.lease(folder, wait=lambda: False):
        log.refresh()
        projector = Projector(folder, repository.journal)
        projector.prepare()
        projector.write(log.state)


def dead_tasks(state: State, *, engine_alive: bool) -> tuple[TaskId, ...]:
    """Tasks that are called running, but whose agents died with their engine."""
    return () if engine_alive else tuple(state.running)


def current_locks(state: State, at: float, *, engine_alive: bool) -> Locks:
    return locks.current(state.locks, at, dead_tasks(state, engine_alive=engine_alive))


def acquire(log: SessionLog, ask: Ask, *, engine_alive: bool = True) -> LockAnswer:
    def rule(state: State, at: float) -> Sequence[Event]:
        started = {task: state.progress[task].started_at or 0 for task in state.running}
        return locks.request(state.locks, ask, at, started=started, dead=dead_tasks(state, engine_alive=engine_alive))

    broken = [event.task for event in log.transact(rule) if isinstance(event, DeadlockBroken)]
    lock = log.state.locks.held[ask.resource]
    return LockAnswer(lock=lock, granted=lock.task == ask.task, aborted=ask.task in broken)


def release(log: SessionLog, resource: str, task: TaskId, *, engine_alive: bool = True) -> bool:
    """True if the task held the lock."""

    def rule(state: State, at: float) -> Sequence[Event]:
        return locks.release(state.locks, resource, task, at, dead=dead_tasks(state, engine_alive=engine_alive))

    return LockReleased(resource=resource, task=task) in log.transact(rule)


def save(log: SessionLog, folder: Path, task: TaskId, data: object) -> Checkpoint:
    """Writes the data, then records where it is; files of checkpoints that are not kept any more go."""
    log.refresh()
    before = log.state.checkpoints
    pointer = checkpoints.pointer(before, task, log.now())
    atomic_files.write(folder / pointer, json.dumps(data, ensure_ascii=False, indent=2) + "\n", durable=True)
    log.record(CheckpointSaved(task=task, pointer=pointer))
    kept = log.state.checkpoints[task]
    for dropped in set(before.get(task, ())) - set(kept):
        (folder / dropped.pointer).unlink(missing_ok=True)
    return kept[0]


def restore(log: SessionLog, folder: Path, task: TaskId) -> Restored | NothingRestored:
    log.refresh()
    found = kept(log.state, folder, task)
    if isinstance(found, Restored):
        log.record(restoring(found, task))
    elif task in log.state.checkpoints:
        # Something was lost, and somebody should know.
        log.record(Warned(found.why))
    return found


def restoring(found: Restored, task: TaskId) -> CheckpointRestored:
    return CheckpointRestored(task=task, pointer=found.checkpoint.pointer, saved_at=found.checkpoint.at)


def kept(state: State, folder: Path, task: TaskId) -> Restored | NothingRestored:
    """What the newest checkpoint of the task holds."""
    newest = checkpoints.newest(state.checkpoints, task)
    if newest is None:
        return NothingRestored(f"there is no checkpoint of {task}")
    try:
        data: object = json.loads((folder / newest.pointer).read_text(encoding="utf-8"))
    except OSError as error:
        return NothingRestored(f'the checkpoint "{newest.pointer}" cannot be read: {error.strerror}')
    except (ValueError, RecursionError) as error:
        return NothingRestored(f'the checkpoint "{newest.pointer}" is damaged: {error}')
    return Restored(checkpoint=newest, data=data)


def give_feedback(log: SessionLog, item: Feedback) -> Feedback:
    log.transact(lambda state, _: [feedback.given(state.feedback, item)])
    return log.state.feedback[0]


def link_feedback(log: SessionLog, name: str, task: TaskId) -> Feedback:
    def rule(state: State, _: float) -> Sequence[Event]:
        _known_feedback(state, name)
        _require_task(state, task)
        return [FeedbackLinked(feedback_id=name, task=task)]

    log.transact(rule)
    return _known_feedback(log.state, name)


def move_feedback(log: SessionLog, name: str, status: FeedbackStatus) -> Feedback:
    def rule(state: State, _: float) -> Sequence[Event]:
        _known_feedback(state, name)
        return [FeedbackMoved(feedback_id=name, status=status)]

    log.transact(rule)
    return _known_feedback(log.state, name)


def note_debt(log: SessionLog, item: Debt) -> Debt:
    def rule(state: State, _: float) -> Sequence[Event]:
        if item.source_task_id:
            _require_task(state, item.source_task_id)
        return [tech_debt.identified(state.debt, item)]

    log.transact(rule)
    return log.state.debt[0]


def _require_task(state: State, task: TaskId) -> None:
    if task not in state.tasks:
        raise UserError(f'There is no task "{task}" in {state.session.id}', hint=f"iterdev status {state.session.id}")


def move_debt(log: SessionLog, name: str, status: DebtStatus) -> Debt:
    def rule(state: State, _: float) -> Sequence[Event]:
        _known_debt(state, name)
        return [DebtMoved(debt_id=name, status=status, sprint=state.sprint)]

    log.transact(rule)
    return _known_debt(log.state, name)


def _known_feedback(state: State, name: str) -> Feedback:
    if item := feedback.named(state.feedback, name):
        return item
    known = ", ".join(item.feedback_id for item in state.feedback) or "none"
    raise UserError(f'There is no feedback "{name}" in {state.session.id}', hint=f"feedback: {known}")


def _known_debt(state: State, name: str) -> Debt:
    if item := tech_debt.named(state.debt, name):
        return item
    known = ", ".join(item.debt_id for item in state.debt) or "none"
    raise UserError(f'There is no debt "{name}" in {state.session.id}', hint=f"debt: {known}")


def project(repository: Repository, log: SessionLog) -> None:
    """Brings the session folder up to date while no engine does."""
    Projector(repository.folder(log.state), repository.journal).write(log.state)


Document = dict[str, object]


class Refused(Exception):
    """A call that cannot be granted; the text tells the caller what to do about it."""
