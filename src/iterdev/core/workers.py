"""Workers that are started one by one: which roles there are, and what a worker says when it is done."""

import re
from collections.abc import Iterable

from msgspec import Struct

from iterdev.core import critic
from iterdev.core.errors import UserError
from iterdev.core.events import RowEdit, TableEdited, TaskReported
from iterdev.core.plan import Task
from iterdev.core.results import cut
from iterdev.core.state import State
from iterdev.core.words import WORKERS, Role, Status, TaskId

_TAG = re.compile(rf"\[({'|'.join(WORKERS)})\]\s*(.*)", re.DOTALL)


class Callback(Struct, frozen=True):
    """What a worker says, after its tag."""

    role: Role
    text: str


def known_role(name: str) -> Role:
    if name not in WORKERS:
        raise UserError(f'There is no role "{name}"', hint=f"roles: coordinator, {', '.join(WORKERS)}")
    return Role(name)


def callback(text: str) -> Callback | None:
    """A message that begins with the tag of a worker, such as `[developer]`."""
    found = _TAG.match(text.strip())
    return Callback(Role(found[1]), found[2]) if found else None


def completed(state: State, told: Callback) -> TableEdited:
    """The task that the worker names, or the next one of its role, is done."""
    task = _meant(state, told)
    row = RowEdit(task=task, status=Status.completed, findings=cut(told.text))
    return TableEdited((row,))


def reported(state: State, tasks: Iterable[TaskId]) -> tuple[TaskReported, ...]:
    """Those of the tasks that a worker need not do, because what they should leave is there: it says so at once."""
    return tuple(
        TaskReported(task=task, findings=state.progress[task].findings) for task in tasks if _is_there(state, task)
    )


def _is_there(state: State, task: TaskId) -> bool:
    """Whether what an attempt left still counts.

    What was undone or tried again has no base any more, and whoever empties the findings of a row has it done again. A
    verdict is one on the work as it is now.
    """
    progress = state.progress[task]
    if not (progress.base and progress.findings):
        return False
    is_newest = state.tip in {progress.base, progress.commit}
    match state.tasks[task].role:
        case Role.architect:
            return task in state.designs
        case Role.developer:
            return progress.commit is not None and task not in state.conflicts
        case Role.tester:
            measured = state.verifications.get(task)
            return is_newest and measured is not None and not critic.fails(measured)
        case Role.reviewer:
            return is_newest and task in state.reviews
        case Role.gc_controller:
            return False


def _meant(state: State, told: Callback) -> Task:
    open_ = [task for task, progress in state.rows() if task.role is told.role and not progress.status.is_final]
    named = [task for task in open_ if re.search(rf"(?<![\w-]){re.escape(task.id)}(?![\w-])", told.text)]
    ready = [task for task in open_ if not state.unmet(task.id)]
    if not (named or ready):
        raise UserError(
            f"No task of the {told.role} is open that could be done", hint=f"iterdev status {state.session.id}"
        )
    return (named or ready)[0]
