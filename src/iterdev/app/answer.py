"""Answers an open question of a session, and takes over an edit of the plan that one is about."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from iterdev.app import completion
from iterdev.app.inspect import view
from iterdev.core.errors import UserError
from iterdev.core.session.events import Event, GateAnswered
from iterdev.core.session.gates import GateKind, meant
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.core.views.session import SessionView
from iterdev.engine.repository import Repository
from iterdev.host import text_files
from iterdev.store.session_folder import tasks_csv
from iterdev.store.session_folder.find import TABLE


class Answered(Struct, frozen=True):
    choice: str
    """What was meant."""
    view: SessionView
    restarted: bool = False
    """The session continues in the background: its last engine ran there and had ended."""


DRAFT = "tasks.edited.csv"
"""The copy of tasks.csv that is edited: the engine reads the table itself at any time."""


def plan_draft(repository: Repository, session: SessionId) -> Path:
    """A copy of the table for the user's editor; one that could not be taken over is still there."""
    folder = repository.folder(repository.state(session))
    draft = folder / DRAFT
    if not draft.exists():
        shutil.copyfile(folder / TABLE, draft)
    return draft


def take_over_plan(repository: Repository, session: SessionId, draft: Path) -> None:
    """Replaces the table with its edited copy; raises `UserError` if it is not valid, and then keeps both."""
    state = repository.state(session)
    rows = tasks_csv.parse(_text(draft), repository.team(state), draft.name)
    if not rows:
        raise UserError(f'"{draft.name}" has no tasks', hint="keep a row under the header, or reject the plan")
    draft.replace(repository.folder(state) / TABLE)


def _text(path: Path) -> str:
    try:
        return text_files.read(path)
    except UnicodeDecodeError as error:
        raise UserError(f'"{path.name}" is not UTF-8 text: {error}', hint="save it as UTF-8") from error


def answer(repository: Repository, session: SessionId, gate: str, choice: str) -> Answered:
    """Records the answer. A session that ran in the background continues there."""
    log = repository.log(session)
    if gate == GateKind.completion and log.state.lifecycle.is_finished:
        return Answered(choice, completion.answer(repository, session, choice))

    def rule(state: State, _: float) -> Sequence[Event]:
        question = state.gates.open.get(gate)
        if question is None:
            asked = ", ".join(state.gates.open) or "none"
            raise UserError(f'"{gate}" is not an open question of {session}', hint=f"open questions: {asked}")
        chosen = meant(question.choices, choice)
        if chosen is None:
            raise UserError(f'"{choice}" is not an answer to "{gate}"', hint=f"one of: {', '.join(question.choices)}")
        return [GateAnswered(gate, chosen)]

    (answered,) = (event for event in log.transact(rule) if isinstance(event, GateAnswered))
    if log.state.lifecycle.detached and not repository.engine_alive(log.state.session):
        from iterdev.app.resume import detach  # noqa: PLC0415 - it loads the engine, which other answers do not need

        return Answered(answered.choice, detach(repository, session).view, restarted=True)
    return Answered(answered.choice, view(repository, log.state))
