"""A question as every surface shows it."""

import pytest
from tests.core.conftest import Story, task

from iterdev.core.session.events import Gate, GateAnswered, GateOpened
from iterdev.core.session.gates import plan_gate
from iterdev.core.views.gates import gate_document, gate_view
from iterdev.teams.development.team import DEVELOPMENT


def opened(kind: str, subject: str = "") -> Gate:
    return Gate(kind=kind, subject=subject, question="Go on?", choices=("go-on", "stop"))


@pytest.mark.parametrize(
    ("gate", "about"),
    [
        (plan_gate(), "the session"),
        (opened("dependencies", "DEV-001"), "DEV-001"),
        (opened("wave", "2"), "wave 2"),
        (opened("sprint", "1"), "sprint 1"),
    ],
)
def test_a_question_says_what_it_is_about(gate: Gate, about: str) -> None:
    story = Story(task("DEV-001"))
    story.happens(GateOpened(gate))

    assert gate_view(gate, DEVELOPMENT, story.state).about == about


def test_a_question_knows_since_when_it_is_open_until_it_is_answered() -> None:
    story = Story(task("DEV-001"))
    story.now = 1500.0
    story.happens(GateOpened(plan_gate()))
    story.now = 1600.0
    story.happens(GateOpened(opened("consensus", "DEV-001")))
    document = gate_document(gate_view(plan_gate(), DEVELOPMENT, story.state))

    story.happens(GateAnswered("plan", "approve"))

    assert (document["opened_at"], document["default"], document["kind"]) == (1500.0, "approve", "plan")
    assert story.state.gates.opened_at == {"consensus-DEV-001": 1600.0}
