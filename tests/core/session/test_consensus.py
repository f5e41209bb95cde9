"""What follows when an agent says that the team does not agree."""

import pytest
from tests.core.conftest import Story, task

from iterdev.core.collaboration.messages import composed, objection
from iterdev.core.session import events
from iterdev.core.session.decide import Record
from iterdev.core.types import Engine, Phase, Role, TaskId

DEV = TaskId("DEV-001")


def blocked(**data: object) -> events.MessageSent:
    return composed("developer", kind="consensus_blocked", summary="two designs", data=data, task=DEV)


def at_work(engine: Engine = Engine.beat, *, auto: bool = True) -> Story:
    """DEV-001 runs, and DEV-002 waits for it."""
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"), engine=engine, auto=auto)
    if not auto:
        story.happens(events.GateAnswered("plan", "approve"))
    story.goes_on()
    story.starts("DEV-001")
    return story


def asked(story: Story) -> events.Gate | None:
    """The question that is due now."""
    for command in story.decides():
        if isinstance(command, Record) and isinstance(command.events[0], events.GateOpened):
            return command.events[0].gate
    return None


@pytest.mark.requirement("R177")
@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("auto", [True, False])
@pytest.mark.parametrize("word", ["HIGH", "high", "critical"])
def test_high_severity_pauses_until_the_user_has_answered(engine: Engine, word: str, auto: bool) -> None:  # noqa: FBT001
    story = at_work(engine, auto=auto)
    story.happens(blocked(severity=word))
    gate = asked(story)
    assert gate
    story.happens(events.GateOpened(gate))
    story.ends("DEV-001", events.Done(findings=""))
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
    story.ends("DEV-001", events.Done(findings=""))

    assert asked(story) is None
    assert story.goes_on() == ["DEV-002"]
    assert len(story.state.warnings) == warnings
    assert "consensus_blocked" in [message.type for message in story.state.messages]


@pytest.mark.requirement("R177")
def test_whoever_stops_ends_the_session_when_nothing_runs_and_can_take_it_up_again() -> None:
    story = at_work()
    story.happens(
        blocked(severity="HIGH"), events.GateOpened(events.Gate(id="consensus-DEV-001", question="?", choices=("a",)))
    )
    story.happens(events.GateAnswered("consensus-DEV-001", "stop"))
    story.goes_on()
    during = story.state.phase
    story.ends("DEV-001", events.Done(findings=""))
    story.goes_on()
    after = story.state
    story.happens(events.EngineStarted(1, after.tip))

    assert (during, after.phase, after.why) == (Phase.active, Phase.completed, "the team did not agree (DEV-001)")
    assert story.goes_on() == ["DEV-002"]


def test_the_severity_has_to_be_named_by_an_agent() -> None:
    assert objection(Role.developer, blocked(severity="LOW")) == ""
    assert "HIGH, MEDIUM, LOW" in objection(Role.developer, blocked())
    assert "HIGH, MEDIUM, LOW" in objection(Role.developer, blocked(severity=["HIGH"]))


def test_the_same_task_may_disagree_again_and_is_asked_about_again() -> None:
    story = at_work()
    for _ in range(2):
        story.happens(blocked(severity="HIGH"))
        gate = asked(story)
        assert gate
        story.happens(events.GateOpened(gate), events.GateAnswered(gate.id, "go-on"))

    assert asked(story) is None
