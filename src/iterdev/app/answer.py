"""Answers an open question of a session."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from iterdev.app import archive
from iterdev.app.inspect import view
from iterdev.core.errors import UserError
from iterdev.core.session.events import Event, GateAnswered, PolicyChanged
from iterdev.core.session.gates import GateKind
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.core.views.session import SessionView
from iterdev.engine.repository import Repository
from iterdev.store.session_log import SessionLog


class GateAnswer(Struct, frozen=True, kw_only=True):
    view: SessionView
    completes: bool
    """The question was how to complete a finished session, and the answer has been carried out."""


def answer(repository: Repository, session: SessionId, gate: str, choice: str) -> GateAnswer:
    log = repository.log(session)
    if gate == GateKind.completion and log.state.lifecycle.is_finished:
        return GateAnswer(view=archive.answer(repository, session, choice), completes=True)

    def rule(state: State, _: float) -> Sequence[Event]:
        question = state.gates.open.get(gate)
        if question is None:
            asked = ", ".join(state.gates.open) or "none"
            raise UserError(f'"{gate}" is not an open question of {session}', hint=f"open questions: {asked}")
        if choice not in question.choices:
            raise UserError(f'"{choice}" is not an answer to "{gate}"', hint=f"one of: {', '.join(question.choices)}")
        return [GateAnswered(gate, choice)]

    log.transact(rule)
    return GateAnswer(view=view(repository, log.state), completes=False)


def answer_with_defaults(log: SessionLog) -> None:
    """Answers every open question with its default, and has later ones answered in the same way."""

    def rule(state: State, _: float) -> Sequence[Event]:
        answers = [GateAnswered(gate.id, gate.choices[0]) for gate in state.gates.open.values()]
        if state.policy.auto:
            return answers
        return [PolicyChanged(msgspec.structs.replace(state.policy, auto=True)), *answers]

    log.transact(rule)


def answer_on_resume(log: SessionLog) -> None:
    """Answers the open questions whose answer is that the user resumes the session."""

    def rule(state: State, _: float) -> Sequence[Event]:
        choices = ((gate.id, log.team.choice_on_resume(gate)) for gate in state.gates.open.values())
        return [GateAnswered(gate, choice) for gate, choice in choices if choice]

    log.transact(rule)
