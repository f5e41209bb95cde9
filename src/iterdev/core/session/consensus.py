"""Blocked consensus: an agent says that the team does not agree, and how much that holds up decides what follows.

High severity pauses the pipeline until the user has answered; the rest is told, and the work goes on.
"""

from collections.abc import Mapping

from iterdev.core.session import gates
from iterdev.core.session.events import Finished, Gate, GateAnswered, MessageSent
from iterdev.core.types import Severity

BLOCKED = "consensus_blocked"
"""The type of the message."""
GRADES = ("HIGH", "MEDIUM", "LOW")

_GATE = "consensus-"
_PAUSING = frozenset({Severity.critical, Severity.high})


def severity(data: Mapping[str, object]) -> Severity | None:
    """What the message says about it, in letters of any case."""
    word = str(data.get("severity", "")).lower()
    return next((known for known in Severity if known == word), None)


def pauses(message: MessageSent) -> bool:
    return severity(message.data) in _PAUSING


def gate_of(message: MessageSent) -> str:
    return gates.gate_of(_GATE, message)


def gate(name: str, summary: str) -> Gate:
    return gates.gate(name, f"The team does not agree: {summary}.")


def stopped(answers: Mapping[str, str]) -> tuple[GateAnswered, Finished] | None:
    return gates.stopped(_GATE, "the team did not agree", answers)
