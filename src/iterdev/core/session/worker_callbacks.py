"""Workers that are started one by one: which roles there are, and what a worker says when it is done."""

import re
from collections.abc import Iterable

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.results import cut
from iterdev.core.session.events import TaskReported
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import WORKERS, Role, TaskId
from iterdev.teams.development import critic

_TAG = re.compile(rf"\[({'|'.join(WORKERS)})\]\s*", re.DOTALL)
VERDICTS = {Role.tester: "test run", Role.reviewer: "review", Role.gc_controller: "decision"}
"""What has to be there before a task of these roles is done."""


class Callback(Struct, frozen=True):
    """What a worker says: its role, if it gives it, and the rest."""

    role: Role | None
    text: str


def known_role(name: str) -> Role:
    if name not in WORKERS:
        raise UserError(f'There is no role "{name}"', hint=f"roles: coordinator, {', '.join(WORKERS)}")
    return Role(name)


def callback(text: str) -> Callback | None:
    """A message with the tag of a worker, such as `[developer]`."""
    found = _TAG.search(text)
    return Callback(Role(found[1]), (text[: found.start()] + text[found.end() :]).strip()) if found else None


def begins_with_task(text: str) -> TaskId | None:
    """The task id that a message begins with, such as `DEV-001`, whether or not there is such a task."""
    first = text.split(maxsplit=1)[:1]
    name = first[0].rstrip(":,;.") if first else ""
    return TaskId(name) if ids.role_of(name) else None


def completed(state: State, told: Callback) -> TaskReported:
    """The task that the worker names, or the next one of its role, is done. No verdict is taken on a word."""
    task = _meant(state, told)
    session = state.session.id
    if unmet := state.unmet(task.id):
        raise UserError(
            f"{task.id} cannot be done yet: it waits for {', '.join(unmet)}", hint=f"iterdev why {session} {task.id}"
        )
    if task.role in VERDICTS and not _is_there(state, task.id):
        raise UserError(
            f"{task.id} is not done by saying so: there is no {VERDICTS[task.role]} of it",
            hint=f"iterdev run --role {task.role} {session}",
        )
    return TaskReported(task=task.id, findings=cut(told.text))


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
    named = next((state.tasks[word] for word in _words(told.text) if word in state.tasks), None)
    if named is None:
        return _next_of(state, told)
    status = state.progress[named.id].status
    if told.role not in {None, named.role}:
        raise UserError(
            f"{named.id} is a task of the {named.role}, not of the {told.role}",
            hint=f'iterdev run "[{named.role}] {named.id} is done"',
        )
    if status.is_final:
        raise UserError(f"{named.id} is {status} already", hint=f"iterdev status {state.session.id}")
    return named


def _words(text: str) -> list[TaskId]:
    return [TaskId(word) for word in re.findall(r"[\w-]+", text)]


def _next_of(state: State, told: Callback) -> Task:
    for task, progress in state.rows():
        if task.role is told.role and not progress.status.is_final and not state.unmet(task.id):
            return task
    raise UserError(f"No task of the {told.role} is open that could be done", hint=f"iterdev status {state.session.id}")
