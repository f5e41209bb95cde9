"""What follows when somebody says that the team lacks something."""

import pytest
from tests.core.conftest import Story, task

from iterdev.core.collaboration.messages import Escalation, compose
from iterdev.core.session import events
from iterdev.core.types import Phase
from iterdev.teams.development.roles import Role


def lacking(*, auto: bool, what: str = "nobody can test the payment") -> Story:
    story = Story(task("DEV-001"), auto=auto)
    story.goes_on()
    story.happens(events.GateAnswered("plan", "approve"))
    story.happens(compose("developer", kind=Escalation.capability_gap, summary=what))
    story.goes_on()
    return story


def test_the_user_is_asked_and_told_which_role_covers_it() -> None:
    story = lacking(auto=False)

    (gate,) = story.state.gates.open.values()
    assert gate.id == "capability-developer"
    assert "nobody can test the payment. To have it done, add a row for the tester to tasks.csv" in gate.question
    assert story.goes_on() == []


def test_where_nobody_wants_to_be_asked_it_is_a_warning() -> None:
    story = lacking(auto=True)

    assert story.state.gates.open == {}
    assert any("nobody can test the payment" in warning for warning in story.state.warnings)
    assert story.goes_on() == ["DEV-001"]


@pytest.mark.parametrize(("choice", "phase"), [("go-on", Phase.active), ("stop", Phase.completed)])
def test_the_answer_counts(choice: str, phase: Phase) -> None:
    story = lacking(auto=False)
    story.happens(events.GateAnswered("capability-developer", choice))
    story.goes_on()

    assert story.state.lifecycle.phase is phase


@pytest.mark.parametrize(
    ("text", "role"),
    [
        ("a design of the schema", Role.architect),
        ("[developer] a design of the schema", Role.architect),
        ("a security audit", Role.reviewer),
        ("knowledge of COBOL", Role.developer),
    ],
)
def test_a_role_covers_what_its_words_say(text: str, role: Role) -> None:
    (gate,) = lacking(auto=False, what=text).state.gates.open.values()

    assert f"add a row for the {role} to tasks.csv" in gate.question
