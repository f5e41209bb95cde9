"""What follows when an agent says that the team does not agree."""

import pytest
from tests.core.conftest import Story, done, task

from iterdev.core.collaboration.messages import MessageSent, compose, objection
from iterdev.core.session import events
from iterdev.core.types import Engine, Phase, TaskId
from iterdev.teams.development.roles import Role
from iterdev.teams.development.team import DEVELOPMENT

DEV = TaskId("DEV-001")
TYPES = DEVELOPMENT.message_types


def blocked(**data: object) -> MessageSent:
    return compose("developer", kind="consensus_blocked", summary="two designs", data=data, task=DEV)


def at_work(engine: Engine = Engine.beat, *, auto: bool = True) -> Story:
    """DEV-001 runs, and DEV-002 waits for it."""
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"), engine=engine, auto=auto)
    story.goes_on()
    if not auto:
        story.happens(events.GateAnswered("plan", "approve"))
        story.goes_on()
    story.starts("DEV-001")
    return story


def asked(story: Story) -> events.Gate | None:
    """The question that is open now."""
    return next(iter(story.state.gates.open.values()), None)


@pytest.mark.requirement("R177")
@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("auto", [True, False])
@pytest.mark.parametrize("word", ["HIGH", "high", "critical"])
def test_high_severity_pauses_until_the_user_has_answered(engine: Engine, word: str, auto: bool) -> None:  # noqa: FBT001
    story = at_work(engine, auto=auto)
    story.happens(blocked(severity=word))
    gate = asked(story)
    assert gate
    story.ends("DEV-001", done(""))
    paused = story.goes_on()

    story.happens(events.GateAnswered(gate.id, "go-on"))

    assert (gate.id, gate.choices) == ("consensus-DEV-001", ("go-on", "stop"))
    assert "[developer] two designs" in gate.question
    assert paused == []
    assert story.goes_on() == ["DEV-002"]


@pytest.mark.requirement("R177")
@pytest.mark.parametrize(("word", "warnings"), [("MEDIUM", 1), ("LOW", 0)])
def test_less_is_logged_and_the_pipeline_goes_on(word: str, warnings: int) -> None:
    story = at_work()
    story.happens(blocked(severity=word))
    story.ends("DEV-001", done(""))

    assert asked(story) is None
    assert story.goes_on() == ["DEV-002"]
    assert len(story.state.warnings) == warnings
    assert "consensus_blocked" in [message.type for message in story.state.messages.sent]


@pytest.mark.requirement("R177")
def test_whoever_stops_ends_the_session_when_nothing_runs_and_can_take_it_up_again() -> None:
    story = at_work()
    story.happens(blocked(severity="HIGH"))
    story.happens(events.GateAnswered("consensus-DEV-001", "stop"))
    story.goes_on()
    during = story.state.lifecycle.phase
    story.ends("DEV-001", done(""))
    story.goes_on()
    after = story.state
    story.happens(events.EngineStarted(1, after.branch.tip))

    ended = after.lifecycle.phase, after.lifecycle.why
    assert during is Phase.active
    assert ended == (Phase.completed, "the team did not agree (DEV-001)")
    assert story.goes_on() == ["DEV-002"]


def test_the_severity_has_to_be_named_by_an_agent() -> None:
    assert objection(Role.developer, blocked(severity="LOW"), TYPES) == ""
    assert "HIGH, MEDIUM, LOW" in objection(Role.developer, blocked(), TYPES)
    assert "HIGH, MEDIUM, LOW" in objection(Role.developer, blocked(severity=["HIGH"]), TYPES)


def test_the_same_task_may_disagree_again_and_is_asked_about_again() -> None:
    story = at_work()
    for _ in range(2):
        story.happens(blocked(severity="HIGH"))
        gate = asked(story)
        assert gate
        story.happens(events.GateAnswered(gate.id, "go-on"))

    assert asked(story) is None
