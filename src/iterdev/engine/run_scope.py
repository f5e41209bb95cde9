"""How far an engine goes: to the end, one step, or through the work of one role. What is ready is decided elsewhere."""

from collections.abc import Sequence
from typing import Protocol

from iterdev.core.rules.schedule import Start
from iterdev.core.rules.team_rules import RoleSpec
from iterdev.core.session.state import State
from iterdev.core.types import Role, Status, TaskId

ERRORS = 3
"""Tasks of a worker that may fail before it stops."""


class RunScope(Protocol):
    def admit(self, state: State, starts: Sequence[Start]) -> Sequence[Start]:
        """Those of the starts that were decided which this engine makes."""
        ...

    @property
    def may_stop(self) -> bool:
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


class WholeSession:
    may_stop = False
    worker = None
    taken = ()

    def admit(self, _: State, starts: Sequence[Start]) -> Sequence[Start]:
        return starts


class OneStep:
    """One batch of tasks."""

    worker = None
    taken = ()

    def __init__(self) -> None:
        self.may_stop = False

    def admit(self, _: State, starts: Sequence[Start]) -> Sequence[Start]:
        if self.may_stop:
            return ()
        self.may_stop = bool(starts)
        return starts


class OneWorker:
    """One task of a role at a time; a role that loops goes on with further ones."""

    may_stop = True

    def __init__(self, role: RoleSpec) -> None:
        self.worker = role.name
        self._loops = role.loops
        self._taken: list[TaskId] = []

    def admit(self, state: State, starts: Sequence[Start]) -> Sequence[Start]:
        mine = [start for start in starts if state.tasks.plan[start.task].role == self.worker]
        if state.attempts.running or not mine or not self._goes_on(state):
            return ()
        self._taken.append(mine[0].task)
        return mine[:1]

    def _goes_on(self, state: State) -> bool:
        failed = sum(state.tasks.status(task) is Status.failed for task in self._taken)
        return not self._taken or (self._loops and failed < ERRORS)

    @property
    def taken(self) -> Sequence[TaskId]:
        return self._taken
