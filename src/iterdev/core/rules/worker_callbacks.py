"""Workers that are started one by one: what a worker says when it is done, and which task it means."""

import re
from collections.abc import Collection, Iterable

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.results import shortened
from iterdev.core.rules.team_rules import Procedure, TeamRules
from iterdev.core.session.events import TaskReported
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Role, TaskId


class Callback(Struct, frozen=True):
    role: Role | None
    text: str


def callback(text: str, roles: Collection[Role]) -> Callback | None:
    """A message that begins with the tag of a worker, such as `[developer]`, also as a heading."""
    found = re.match(rf"[\s#]*\[({'|'.join(map(re.escape, roles))})\]", text)
    return Callback(found[1], text[found.end() :].strip()) if found else None


def begins_with_task(text: str, prefixes: Collection[str]) -> TaskId | None:
    """The task id that a message begins with, such as `DEV-001`, whether or not there is such a task."""
    first = text.split(maxsplit=1)[:1]
    name = first[0].rstrip(":,;.") if first else ""
    return TaskId(name) if ids.prefix_of(name) in prefixes else None


def completed(state: State, team: TeamRules, message: Callback, tip: str) -> TaskReported:
    """The task that the worker names, or the next one of its role, is completed, if its work is there.

    Work that a worker did elsewhere is what it committed on the session's branch, up to `tip`; empty if there is none.
    """
    task = _task_of(state, message)
    session = state.session.id
    if unmet := state.tasks.unmet(task.id):
        raise UserError(
            f"{task.id} cannot be completed yet: it waits for {', '.join(unmet)}",
            hint=f"iterdev why {session} {task.id}",
        )
    role = team.roles[task.role]
    is_committed = role.procedure is Procedure.change and tip not in {"", state.branch.tip}
    if not is_committed and not _has_output(state, team, task):
        commits = f"commit its work on {ids.branch(session)}, or: " if role.procedure is Procedure.change else ""
        raise UserError(
            f"{task.id} cannot be completed by a message: it has no {role.output} yet",
            hint=f"{commits}iterdev run --role {task.role} {session}",
        )
    return TaskReported(task=task.id, findings=shortened(message.text), tip=tip if is_committed else "")


def reported(state: State, team: TeamRules, tasks: Iterable[TaskId]) -> tuple[TaskReported, ...]:
    """Those of the tasks that a worker need not do, because their output is there: it reports them at once."""
    return tuple(
        TaskReported(task=task, findings=state.tasks.progress[task].findings)
        for task in tasks
        if _has_output(state, team, state.tasks.plan[task])
    )


def _has_output(state: State, team: TeamRules, task: Task) -> bool:
    """A task that was undone or reset has no base any more; emptying the findings of a row asks for the work again."""
    progress = state.tasks.progress[task.id]
    return bool(progress.base and progress.findings) and team.has_output(state, task)


def _task_of(state: State, message: Callback) -> Task:
    words = map(TaskId, re.findall(r"[\w-]+", message.text))
    named = next((state.tasks.plan[word] for word in words if word in state.tasks.plan), None)
    if named is None:
        return _next_task(state, message)
    status = state.tasks.status(named.id)
    if message.role not in {None, named.role}:
        raise UserError(
            f"{named.id} is a task of the {named.role}, not of the {message.role}",
            hint=f'iterdev run "[{named.role}] {named.id} is done"',
        )
    if status.is_final:
        raise UserError(f"{named.id} is {status} already", hint=f"iterdev status {state.session.id}")
    return named


def _next_task(state: State, message: Callback) -> Task:
    for task, progress in state.tasks.rows():
        if task.role == message.role and not progress.status.is_final and not state.tasks.unmet(task.id):
            return task
    raise UserError(
        f"The {message.role} has no open task that could be completed", hint=f"iterdev status {state.session.id}"
    )
