"""Answers an open question of a session."""

from collections.abc import Sequence

import msgspec

from iterdev.app import archive
from iterdev.core.errors import UserError
from iterdev.core.session.archive import GATE
from iterdev.core.session.events import Event, GateAnswered, PolicyChanged
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.core.views.session import SessionView, session_view
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.store.session_log import SessionLog
from iterdev.teams.development import sprints


def answer(repository: Repository, session: SessionId, gate: str, choice: str) -> SessionView:
    """Records the answer; the question about what becomes of a finished session is carried out at once."""
    log = SessionLog(repository.journal, session, now=clock.now)
    if gate == GATE and log.state.is_finished:
        return archive.answer(repository, session, choice)

    def rule(state: State, _: float) -> Sequence[Event]:
        question = state.gates.get(gate)
        if question is None:
            asked = ", ".join(state.gates) or "none"
            raise UserError(f'"{gate}" is not an open question of {session}', hint=f"open questions: {asked}")
        if choice not in question.choices:
            raise UserError(f'"{choice}" is not an answer to "{gate}"', hint=f"one of: {', '.join(question.choices)}")
        return [GateAnswered(gate, choice)]

    log.transact(rule)
    return session_view(log.state, engine_alive=repository.engine_alive(log.state))


def answer_with_defaults(log: SessionLog) -> None:
    """Answers every open question with its default, and has later ones answered in the same way."""

    def rule(state: State, _: float) -> Sequence[Event]:
        answers = [GateAnswered(gate.id, gate.choices[0]) for gate in state.gates.values()]
        if state.policy.auto:
            return answers
        return [PolicyChanged(msgspec.structs.replace(state.policy, auto=True)), *answers]

    log.transact(rule)


def start_next_sprint(log: SessionLog) -> None:
    """Answers the question between two sprints, unless it advises to stop, as one about overdue debt does."""

    def rule(state: State, _: float) -> Sequence[Event]:
        gate = state.gates.get(sprints.gate_of(state.sprint))
        return [GateAnswered(gate.id, sprints.GO_ON)] if gate and gate.choices[0] == sprints.GO_ON else []

    log.transact(rule)
