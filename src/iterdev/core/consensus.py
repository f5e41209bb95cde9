"""Blocked consensus: an agent says that the team does not agree, and how much that holds up decides what follows.

High severity pauses the pipeline until the user has answered; the rest is told, and the work goes on.
"""

from collections.abc import Mapping

from iterdev.core.events import Finished, Gate, GateAnswered, MessageSent
from iterdev.core.words import Severity

BLOCKED = "consensus_blocked"
"""The type of the message."""
GRADES = ("HIGH", "MEDIUM", "LOW")
GO_ON, STOP = "go-on", "stop"

_GATE = "consensus-"
_PAUSING = frozenset({Severity.critical, Severity.high})


def severity(data: Mapping[str, object]) -> Severity | None:
    """What the message says about it, in letters of any case."""
    word = str(data.get("severity", "")).lower()
    return next((known for known in Severity if known == word), None)


def pauses(message: MessageSent) -> bool:
    return severity(message.data) in _PAUSING


def gate_of(message: MessageSent) -> str:
    """One question for each task, or for whoever else said it."""
    return f"{_GATE}{message.task or message.sender}"


def gate(name: str, summary: str) -> Gate:
    question = f"The team does not agree: {summary}. Go on, or stop here?"
    return Gate(id=name, question=question, choices=(GO_ON, STOP))


def stopped(answers: Mapping[str, str]) -> tuple[GateAnswered, Finished] | None:
    """The end of the session, where somebody chose it; whoever resumes it takes it up again."""
    for name, choice in answers.items():
        if name.startswith(_GATE) and choice == STOP:
            return GateAnswered(name, ""), Finished(f"the team did not agree ({name.removeprefix(_GATE)})")
    return None
