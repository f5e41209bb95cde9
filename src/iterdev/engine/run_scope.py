"""How far an engine goes: to the end, one step, or through the work of one role. What is ready is decided elsewhere."""

from collections.abc import Sequence

from iterdev.core.rules.schedule import Start
from iterdev.core.rules.team_rules import RoleSpec
from iterdev.core.session.state import State
from iterdev.core.types import Role, Status, TaskId

ERRORS = 3
"""Tasks of a worker that may fail before it stops."""


class RunScope:
    """The whole session."""

    may_stop = False
    """Whether the engine may end although there is something left to start."""
    worker: Role | None = None
    """The role of the one worker that the engine is, if it is not the whole team."""

    def __init__(self) -> None:
        self.taken: list[TaskId] = []
        """The tasks that the worker has taken."""

    def admit(self, _: State, starts: Sequence[Start]) -> Sequence[Start]:
        """The part of the decided starts that this engine carries out."""
        return starts


class OneStep(RunScope):
    """One batch of tasks."""

    def admit(self, _: State, starts: Sequence[Start]) -> Sequence[Start]:
        if self.may_stop:
            return ()
        self.may_stop = bool(starts)
        return starts


class OneWorker(RunScope):
    """One task of a role at a time; a role that loops goes on with further ones."""

    may_stop = True

    def __init__(self, role: RoleSpec) -> None:
        super().__init__()
        self.worker, self._loops = role.name, role.loops

    def admit(self, state: State, starts: Sequence[Start]) -> Sequence[Start]:
        mine = [start for start in starts if state.tasks.plan[start.task].role == self.worker]
        failed = sum(state.tasks.status(task) is Status.failed for task in self.taken)
        goes_on = not self.taken or (self._loops and failed < ERRORS)
        if state.attempts.running or not mine or not goes_on:
            return ()
        self.taken.append(mine[0].task)
        return mine[:1]
