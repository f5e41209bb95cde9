"""A capability gap: somebody says that the team lacks something.

The roles of the team are fixed, so that no role is made for it: the question names the one that covers it, and the user
gives it a row of the table, or goes on without.
"""

from collections.abc import Mapping

from iterdev.core.session import gates
from iterdev.core.session.events import Finished, Gate, GateAnswered, MessageSent
from iterdev.core.types import Role
from iterdev.teams.development.requirement_analysis import analyse

GAP = "capability_gap"
"""The type of the message, and the word with which a person says it."""

_GATE = "capability-"


def told(text: str) -> str | None:
    """What is lacking, if the text is about a gap."""
    words = text.strip()
    return words.removeprefix(GAP).lstrip(": ") if words.startswith(GAP) else None


def covered_by(text: str) -> Role:
    """The first role whose words stand in the text; what is nobody's is the developer's."""
    found = analyse(text.partition("]")[2] or text).capabilities
    return found[0].role if found else Role.developer


def gate_of(message: MessageSent) -> str:
    return gates.gate_of(_GATE, message)


def is_gap(gate: str) -> bool:
    return gate.startswith(_GATE)


def gate(name: str, summary: str) -> Gate:
    statement = (
        f"The team lacks something: {summary}. To have it done, add a row for the {covered_by(summary)} to tasks.csv "
        "before you answer."
    )
    return gates.gate(name, statement)


def stopped(answers: Mapping[str, str]) -> tuple[GateAnswered, Finished] | None:
    return gates.stopped(_GATE, "the team lacked something", answers)
