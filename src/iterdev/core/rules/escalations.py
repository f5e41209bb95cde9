"""Escalations: an agent or a person says that the team does not agree, or that it lacks something.

A serious one opens a question at once; any other is a warning, and the work continues.
"""

from iterdev.core.collaboration.messages import Escalation, MessageSent, severity
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session.events import AnswerApplied, Event, Finished, Gate, GateOpened, Warned
from iterdev.core.session.gates import GateKind, Gates, GoOnChoice
from iterdev.core.session.state import State
from iterdev.core.types import Severity

_PAUSING = frozenset({Severity.critical, Severity.high})
_ENDED = {GateKind.consensus: "the team did not agree", GateKind.capability: "the team lacked something"}


def escalated(state: State, team: TeamRules, message: MessageSent) -> tuple[Event, ...]:
    """What follows from a message that was sent just now."""
    if message.sent_at is not None:
        return ()
    match message.kind:
        case Escalation.consensus_blocked:
            return _consensus(message)
        case Escalation.capability_gap:
            return _capability(state, team, message)
        case _:
            return ()


def _consensus(message: MessageSent) -> tuple[Event, ...]:
    """High severity is asked about even in auto mode."""
    if severity(message.data) in _PAUSING:
        return (_question(GateKind.consensus, message, f"The team does not agree: {message.summary}."),)
    if severity(message.data) is Severity.low:
        return ()
    return (Warned(f"the team does not agree: {message.summary}", announced=False),)


def _capability(state: State, team: TeamRules, message: MessageSent) -> tuple[Event, ...]:
    """The roles of a team are fixed: the question names the one that covers the gap. Auto mode continues without it."""
    if state.policy.auto:
        return (Warned(f"the team lacks something: {message.summary}", announced=False),)
    role = team.role_for(message.summary.partition("]")[2] or message.summary)
    statement = (
        f"The team lacks something: {message.summary}. To have it done, add a row for the {role} to tasks.csv "
        "before you answer."
    )
    return (_question(GateKind.capability, message, statement),)


def _question(kind: GateKind, message: MessageSent, statement: str) -> GateOpened:
    """One question for each task, or for each other sender."""
    subject, question = message.task or message.sender, f"{statement} Go on, or stop here?"
    return GateOpened(Gate(kind=kind, subject=subject, question=question, choices=tuple(GoOnChoice)))


def stopped(gates: Gates) -> tuple[Event, ...]:
    """The end of the session, where the user chose it; resuming takes it up again."""
    for kind, why in _ENDED.items():
        if gate := gates.chosen(kind, GoOnChoice.stop):
            return AnswerApplied(gate.id), Finished(f"{why} ({gate.subject})")
    return ()


def capability_gap(text: str) -> str | None:
    """What a person says is lacking, if the text begins with the word for it."""
    words = text.strip()
    return words.removeprefix(Escalation.capability_gap).lstrip(": ") if words.startswith("capability_gap") else None
