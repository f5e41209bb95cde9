"""How far an engine goes: to the end, one step, or through the work of one role. What is ready is decided elsewhere."""

from collections.abc import Sequence
from typing import Protocol

from iterdev.core.session.decide import Start
from iterdev.core.session.state import State
from iterdev.core.task_description import has_inner_loop
from iterdev.core.types import Role, Status, TaskId

ERRORS = 3
"""Tasks of a worker that may fail before it stops."""


class Pace(Protocol):
    def admit(self, state: State, starts: Sequence[Start]) -> Sequence[Start]:
        """Those of the starts that were decided which this engine makes."""
        ...

    @property
    def may_rest(self) -> bool:
        """Whether the engine may end although there is something left to start."""
        ...

    @property
    def worker(self) -> Role | None:
        """The role of the one worker that the engine is, if it is not the whole team."""
        ...

    @property
    def taken(self) -> Sequence[TaskId]:
        """The tasks that the worker has taken."""
        ...


class ToTheEnd:
    may_rest = False
    worker = None
    taken = ()

    def admit(self, _: State, starts: Sequence[Start]) -> Sequence[Start]:
        return starts


class OneStep:
    """One batch of tasks."""

    worker = None
    taken = ()

    def __init__(self) -> None:
        self.may_rest = False

    def admit(self, _: State, starts: Sequence[Start]) -> Sequence[Start]:
        if self.may_rest:
            return ()
        self.may_rest = bool(starts)
        return starts


class OneRole:
    """A worker: one task at a time, and only the developer takes another one after it."""

    may_rest = True

    def __init__(self, role: Role) -> None:
        self.worker = role
        self._taken: list[TaskId] = []

    def admit(self, state: State, starts: Sequence[Start]) -> Sequence[Start]:
        mine = [start for start in starts if state.tasks[start.task].role is self.worker]
        if state.running or not mine or not self._goes_on(state):
            return ()
        self._taken.append(mine[0].task)
        return mine[:1]

    def _goes_on(self, state: State) -> bool:
        failed = sum(state.progress[task].status is Status.failed for task in self._taken)
        return not self._taken or (has_inner_loop(self.worker) and failed < ERRORS)

    @property
    def taken(self) -> Sequence[TaskId]:
        return self._taken
