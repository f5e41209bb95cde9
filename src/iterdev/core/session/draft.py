"""A state that is being made: its maps, and the rows of the table with all that follows from them.

A map is copied before its first change and then changed in place; which events change what is not known here.
"""

from collections.abc import Collection, Iterable
from itertools import count
from typing import Generic, TypeVar

import msgspec

from iterdev.core.collaboration import locks, wisdom
from iterdev.core.results import Design, Review, Usage
from iterdev.core.session import events, graph, notices
from iterdev.core.session.conflicts import Change, Conflict
from iterdev.core.session.state import Message, Pause, Progress, Shared, State
from iterdev.core.session.tasks import Task
from iterdev.core.types import FINAL, LOST, Role, Status, TaskId
from iterdev.core.verification import Verification

Key = TypeVar("Key")
Value = TypeVar("Value")


class _Map(Generic[Key, Value]):
    """A map of the state that a fold may change: its own copy, made when it is first asked for."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name, self.field = name, name.removeprefix("_")

    def __get__(self, fold: "Draft", _: type) -> dict[Key, Value]:
        own = fold.own(self)
        # An attribute of the object goes before one of its class that cannot be set.
        setattr(fold, self._name, own)
        return own


class Draft:
    """A map is changed through an attribute here, and looked at in the state, which is free."""

    _order = _Map[TaskId, int]()
    _tasks = _Map[TaskId, Task]()
    _progress = _Map[TaskId, Progress]()
    _removed = _Map[TaskId, Progress]()
    _blockers = _Map[TaskId, int]()
    _dependants = _Map[TaskId, tuple[TaskId, ...]]()
    _ready = _Map[TaskId, None]()
    _doomed = _Map[TaskId, None]()
    _running = _Map[TaskId, events.AttemptStarted]()
    _landing = _Map[TaskId, None]()
    _work = _Map[TaskId, int]()
    _touched = _Map[str, tuple[Change, ...]]()
    _conflicts = _Map[TaskId, Conflict]()
    _colliding = _Map[TaskId, None]()
    _open_in_wave = _Map[int, int]()
    _gates = _Map[str, events.Gate]()
    _answers = _Map[str, str]()
    _judged = _Map[TaskId, None]()
    _unjudged = _Map[TaskId, None]()
    _decisions = _Map[TaskId, str]()
    _designs = _Map[TaskId, Design]()
    _revised = _Map[TaskId, None]()
    _reviews = _Map[TaskId, Review]()
    _verifications = _Map[TaskId, Verification]()
    _iterations = _Map[TaskId, int]()
    _shared = _Map[str, Shared]()
    _last_words = _Map[TaskId, str]()
    _disputes = _Map[str, str]()
    _aborted = _Map[TaskId, str]()
    _pauses = _Map[str, Pause]()
    _unusable = _Map[str, str]()
    _spent_by = _Map[str, Usage]()

    def __init__(self, state: State) -> None:
        self._state = state
        self._seq = state.seq
        self._last = state.last
        self._warnings = list(state.warnings)
        self._messages = list(state.messages)
        self._notes = list(state.notes)

    def own(self, of: _Map[Key, Value]) -> dict[Key, Value]:
        copy: dict[Key, Value] = dict(getattr(self._state, of.field))
        self._set(**{of.field: copy})
        return copy

    def _set(self, **fields: object) -> None:
        self._state = msgspec.structs.replace(self._state, **fields)

    def _tell(self, event: events.ProtocolEvent, at: float) -> None:
        if message := notices.notice(event, at):
            self._say(message)

    def _say(self, message: Message) -> None:
        """Puts a message on the bus, with its own number or else the one after the highest there."""
        last = self._messages[-1].number if self._messages else 0
        self._messages.append(msgspec.structs.replace(message, number=max(message.number, last + 1)))

    def _free(self, task: TaskId, at: float) -> None:
        """The locks of a task that is over are free at once."""
        before = self._state.locks
        if before.held or before.wanted:
            for released in locks.released_by(before, task):
                self._tell(released, at)
            self._set(locks=locks.ended(before, task))

    def _note(self, file: str, texts: Iterable[str], task: str, commit: str, at: float) -> None:
        session = self._state.session.id
        notes = (wisdom.note(file, text, session=session, task=task, commit=commit, at=at) for text in texts)
        self._notes.extend(notes)

    def _close(self, task: TaskId, status: Status, at: float, **fields: object) -> None:
        """A task reaches its final status, and its dependants learn of it."""
        was = self._progress[task]
        if was.status in FINAL:
            return
        self._ready.pop(task, None)
        self._doomed.pop(task, None)
        self._free(task, at)
        self._update(task, status=status, ended_at=was.ended_at or at, **fields)
        self._open_in_wave[self._state.tasks[task].wave] -= 1
        self._await_judgement(task)
        for other in self._state.dependants.get(task, ()):
            self._hear(other, status)

    def _await_judgement(self, task: TaskId) -> None:
        """A completed review or verification is put before the critic, once."""
        state = self._state
        progress = state.progress[task]
        has_verdict = progress.signal is not None or task in state.verifications
        if has_verdict and progress.status is Status.completed and task not in state.judged:
            self._unjudged[task] = None

    def _hear(self, task: TaskId, status: Status) -> None:
        if status is Status.completed:
            self._blockers[task] -= 1
            if not self._blockers[task] and self._progress[task].status is Status.pending:
                self._ready[task] = None
        elif self._progress[task].status is Status.pending:
            self._doomed[task] = None

    def _again(self, task: TaskId) -> None:
        self._update(task, status=Status.pending)
        self._queue(self._state.tasks[task])

    def _update(self, task: TaskId, **fields: object) -> None:
        self._progress[task] = msgspec.structs.replace(self._progress[task], **fields)

    def _judge(self, *tasks: TaskId) -> None:
        for task in tasks:
            self._judged[task] = None
            self._unjudged.pop(task, None)

    def _add(self, tasks: Collection[Task]) -> None:
        added = {task.id: task for task in tasks}
        self._order.update(zip(added, count(len(self._order))))
        self._tasks.update(added)
        self._progress.update({task: _counted(self._state.removed.get(task, Progress())) for task in added})
        self._index(tasks)

    def _index(self, tasks: Collection[Task]) -> None:
        waiting: dict[TaskId, list[TaskId]] = {}
        for task in tasks:
            is_open = self._progress[task.id].status not in FINAL
            self._open_in_wave[task.wave] = self._open_in_wave.get(task.wave, 0) + is_open
            self._queue(task)
            for dep in task.deps:
                waiting.setdefault(dep, []).append(task.id)
        for dep, others in waiting.items():
            self._dependants[dep] = (*self._dependants.get(dep, ()), *others)

    def _queue(self, task: Task) -> None:
        """A pending task is ready, or doomed, or waits."""
        awaited = [self._progress[dep].status for dep in task.deps]
        self._blockers[task.id] = len(awaited) - awaited.count(Status.completed)
        if self._progress[task.id].status is not Status.pending:
            return
        if not self._blockers[task.id]:
            self._ready[task.id] = None
        elif not LOST.isdisjoint(awaited):
            self._doomed[task.id] = None

    def _edit(self, rows: Iterable[events.RowEdit]) -> None:
        for row in rows:
            self._order.setdefault(row.task.id, len(self._order))
            self._tasks[row.task.id] = row.task
            before = self._progress.get(row.task.id) or _counted(self._state.removed.get(row.task.id, Progress()))
            under_way = before.status in {Status.in_progress, Status.landing}
            if row.status is Status.pending:
                self._judged.pop(row.task.id, None)
            self._progress[row.task.id] = msgspec.structs.replace(
                before,
                status=before.status if under_way else row.status,
                findings=row.findings,
                score=row.score,
                signal=row.signal,
                error=row.error,
            )
        self._reindex()
        self._set(wave=0)

    def _reindex(self) -> None:
        """Makes every derived map again, after a change that may have touched any row."""
        maps = (self._blockers, self._dependants, self._ready, self._doomed, self._open_in_wave, self._unjudged)
        for derived in maps:
            derived.clear()
        depth = graph.depths({task.id: task.deps for task in self._tasks.values()})
        for name, task in self._tasks.items():
            self._tasks[name] = msgspec.structs.replace(task, wave=depth[name])
        self._index(self._tasks.values())
        for name in self._tasks:
            if not self._is_answered(name):
                self._await_judgement(name)

    def _is_answered(self, task: TaskId) -> bool:
        """Whether a fix of a later round already waits for this verdict, as in a table that was read back."""
        mine = self._tasks[task].round
        others = (self._tasks[other] for other in self._dependants.get(task, ()))
        return any(other.role is Role.developer and other.round > mine for other in others)

    def _start_over(self, tasks: Iterable[TaskId]) -> None:
        for name in tasks:
            before = self._progress[name]
            kept = (*before.unlanded, before.commit) if before.commit else before.unlanded
            self._progress[name] = msgspec.structs.replace(_counted(before), unlanded=kept)
        self._reindex()
        self._set(wave=0)

    def _reopen_sprint(self) -> None:
        """What was found at the end of the sprint no longer holds; it will end again."""
        current = self._state.sprint
        self._set(sprints={sprint: record for sprint, record in self._state.sprints.items() if sprint != current})


def _counted(before: Progress) -> Progress:
    """A new beginning that knows what was spent before it; no two attempts at a task have the same number."""
    return Progress(requests=before.requests, number=before.number, usage=before.usage)
