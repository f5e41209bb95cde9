"""Workers that are started one by one: which roles there are, and what a worker says when it is done."""

import re
from collections.abc import Iterator

from msgspec import Struct

from iterdev.core import critic
from iterdev.core.errors import UserError
from iterdev.core.events import RowEdit, TableEdited
from iterdev.core.plan import Task
from iterdev.core.results import Result, cut
from iterdev.core.state import State
from iterdev.core.words import WORKERS, Role, Signal, Status

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


def already_done(state: State, role: Role) -> TableEdited | None:
    """Tasks that a worker need not do, because what they should leave is there: their row says so from now on."""
    rows = [
        RowEdit(task=task, status=Status.completed, findings=cut(left.findings), score=score, signal=signal)
        for task, progress in state.rows()
        if task.role is role and progress.status is Status.pending and not state.unmet(task.id)
        for left, score, signal in _left_by(state, task)
    ]
    return TableEdited(tuple(rows)) if rows else None


def _left_by(state: State, task: Task) -> Iterator[tuple[Result, float | None, Signal | None]]:
    if design := state.designs.get(task.id):
        yield design, None, None
    if review := state.reviews.get(task.id):
        yield review, critic.score(review.scores), critic.signal(review)


def _meant(state: State, told: Callback) -> Task:
    open_ = [task for task, progress in state.rows() if task.role is told.role and not progress.status.is_final]
    named = [task for task in open_ if re.search(rf"(?<![\w-]){re.escape(task.id)}(?![\w-])", told.text)]
    ready = [task for task in open_ if not state.unmet(task.id)]
    if not (named or ready):
        raise UserError(
            f"No task of the {told.role} is open that could be done", hint=f"iterdev status {state.session.id}"
        )
    return (named or ready)[0]
