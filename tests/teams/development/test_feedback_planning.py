"""What the user said, from the design that takes it up to the work that answers it."""

import msgspec
import pytest
from tests.core.conftest import Story, a_design, done

from iterdev.core.collaboration import feedback
from iterdev.core.collaboration.feedback import Feedback, FeedbackMoved, FeedbackPlanned, FeedbackStatus
from iterdev.core.session import events
from iterdev.core.types import Severity, TaskId
from iterdev.teams.development.results import Design, WorkItem
from iterdev.teams.development.roles import Pipeline

FIRST, SECOND = TaskId("DEV-001"), TaskId("DEV-002")


def designed(*taken_up: tuple[str, ...]) -> Design:
    """One item for each, which takes up the feedback of these ids."""
    items = tuple(WorkItem(id=f"task-{number}", title="t", feedback=ids) for number, ids in enumerate(taken_up, 1))
    return msgspec.structs.replace(a_design(), tasks=items)


def told() -> Story:
    """Two developers, and a user who wants something before the design is made."""
    story = Story(pipeline=Pipeline.multi_sprint)
    story.goes_on()
    story.happens(
        feedback.give((), Feedback(description="It is slow", severity=Severity.high, timestamp=story.now), kept=50),
        feedback.give((), Feedback(description="It is red", timestamp=story.now + 1), kept=50),
    )
    return story


def ids(story: Story) -> tuple[str, str]:
    red, slow = story.state.feedback
    return slow.feedback_id, red.feedback_id


def known(story: Story, name: str) -> Feedback:
    item = feedback.by_id(story.state.feedback, name)
    assert item
    return item


def planned(*taken_up: tuple[str, ...]) -> Story:
    story = told()
    story.does("DESIGN-001", done("", design=designed(*taken_up)))
    story.goes_on()
    return story


@pytest.mark.requirement("R138", "R139")
def test_feedback_that_a_design_takes_up_is_linked_to_the_tasks_that_do_it() -> None:
    slow, red = ids(told())

    story = planned((slow, red), (slow,))

    assert (known(story, slow).status, known(story, slow).planned_in) == ("reviewed", (FIRST, SECOND))
    assert (known(story, red).status, known(story, red).planned_in) == ("reviewed", (FIRST,))
    assert known(story, slow).source_task_id == FIRST
    assert f"(because of {slow}, {red})" in story.prompt("DEV-001")


@pytest.mark.requirement("R139")
def test_feedback_is_addressed_when_every_task_that_took_it_up_is_completed() -> None:
    slow, red = ids(told())
    story = planned((slow, red), (slow,))

    story.does("DEV-001")
    story.goes_on()
    halfway = known(story, slow).status, known(story, red).status
    story.does("DEV-002")
    story.goes_on()

    assert halfway == ("reviewed", "addressed")
    assert known(story, slow).status == "addressed"
    assert len(story.seen(FeedbackPlanned)) == 2


@pytest.mark.requirement("R139")
def test_feedback_stays_open_when_the_task_that_took_it_up_fails() -> None:
    slow, _ = ids(told())
    story = planned((slow,), ())

    story.fails("DEV-001")
    story.goes_on()

    assert known(story, slow).is_open


def test_feedback_that_was_never_given_is_warned_about() -> None:
    story = planned(("FB-none",), ())

    assert story.state.warnings == ('DESIGN-001 takes up the feedback "FB-none", which does not exist',)
    assert [item.status for item in story.state.feedback] == ["new", "new"]


def test_a_person_who_opens_feedback_again_is_not_overruled() -> None:
    slow, _ = ids(told())
    story = planned((slow,), ())
    story.does("DEV-001")
    story.goes_on()

    story.happens(FeedbackMoved(feedback_id=slow, status=FeedbackStatus.new))
    story.goes_on()

    assert known(story, slow).status == "new"


def test_feedback_that_undone_work_had_addressed_is_open_and_taken_up_again() -> None:
    slow, _ = ids(told())
    story = planned((slow,), ())
    story.does("DEV-001")
    story.goes_on()

    story.rolls_back("DEV-001")
    undone = known(story, slow)
    story.happens(events.EngineStarted(1, story.state.branch.tip))
    story.goes_on()

    assert (undone.status, undone.source_task_id, undone.planned_in) == ("new", None, ())
    assert (known(story, slow).status, known(story, slow).planned_in) == ("reviewed", (FIRST,))
