"""Answers an open question of a session."""

from collections.abc import Sequence

from iterdev.app import completion
from iterdev.app.inspect import view
from iterdev.core.errors import UserError
from iterdev.core.session.events import Event, GateAnswered
from iterdev.core.session.gates import GateKind
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.core.views.session import SessionView
from iterdev.engine.repository import Repository


def answer(repository: Repository, session: SessionId, gate: str, choice: str) -> SessionView:
    log = repository.log(session)
    if gate == GateKind.completion and log.state.lifecycle.is_finished:
        return completion.answer(repository, session, choice)

    def rule(state: State, _: float) -> Sequence[Event]:
        question = state.gates.open.get(gate)
        if question is None:
            asked = ", ".join(state.gates.open) or "none"
            raise UserError(f'"{gate}" is not an open question of {session}', hint=f"open questions: {asked}")
        if choice not in question.choices:
            raise UserError(f'"{choice}" is not an answer to "{gate}"', hint=f"one of: {', '.join(question.choices)}")
        return [GateAnswered(gate, choice)]

    log.transact(rule)
    return view(repository, log.state)
