import pytest
from tests.core.conftest import Story, task

from iterdev.core.collaboration import feedback
from iterdev.core.collaboration.feedback import (
    Feedback,
    FeedbackCategory,
    FeedbackLinked,
    FeedbackMoved,
    FeedbackStatus,
)
from iterdev.core.types import Severity, TaskId
from iterdev.core.views.report import report
from iterdev.core.views.session import session_view
from iterdev.teams.development.team import DEVELOPMENT

DEV = TaskId("DEV-001")


def says(story: Story, text: str, **fields: object) -> Feedback:
    item = Feedback(description=text, timestamp=story.now, **fields)
    story.happens(feedback.give(story.state.feedback, item, kept=story.state.policy.feedback_kept))
    return story.state.feedback[0]


@pytest.mark.requirement("R137")
def test_feedback_gets_an_id_from_its_time_and_is_medium_general_and_new_unless_it_says_otherwise() -> None:
    story = Story(task("DEV-001"))
    story.now = 1_772_000_000.123

    item = says(story, "too slow")

    assert item.feedback_id == "FB-mm1n1qpn"
    assert int(item.feedback_id.removeprefix("FB-"), 36) == 1_772_000_000_123
    assert (item.severity, item.category, item.status) == ("medium", "general", "new")
    assert item.source_task_id is None
    assert item.timestamp == story.now


def test_feedback_of_the_same_moment_has_different_ids() -> None:
    story = Story(task("DEV-001"))

    for number in range(20):
        says(story, f"number {number}")

    assert len({item.feedback_id for item in story.state.feedback}) == 20


@pytest.mark.requirement("R137")
def test_the_50_newest_items_are_kept_newest_first() -> None:
    story = Story(task("DEV-001"))
    for number in range(53):
        story.now += 1
        says(story, f"number {number}")

    texts = [item.description for item in story.state.feedback]
    assert texts == [f"number {number}" for number in range(52, 2, -1)]


@pytest.mark.requirement("R138")
def test_linking_sets_the_task_and_the_status_reviewed_of_that_item_only() -> None:
    story = Story(task("DEV-001"))
    first, second = says(story, "one"), says(story, "two")

    story.happens(FeedbackLinked(feedback_id=first.feedback_id, task=DEV))

    linked = feedback.by_id(story.state.feedback, first.feedback_id)
    assert linked
    assert (linked.source_task_id, linked.status, linked.description) == (DEV, "reviewed", "one")
    assert feedback.by_id(story.state.feedback, second.feedback_id) == second


@pytest.mark.requirement("R139")
def test_urgent_feedback_is_high_or_critical_and_open_with_the_gravest_and_oldest_first() -> None:
    story = Story(task("DEV-001"))
    for text, severity in (("a", "high"), ("b", "low"), ("c", "critical"), ("d", "medium"), ("e", "high")):
        story.now += 1
        says(story, text, severity=Severity(severity))
    closed = says(story, "f", severity=Severity.critical)
    story.happens(FeedbackMoved(feedback_id=closed.feedback_id, status=FeedbackStatus.closed))
    linked = story.state.feedback[-1]
    story.happens(FeedbackLinked(feedback_id=linked.feedback_id, task=DEV))

    assert [item.description for item in feedback.urgent(story.state.feedback)] == ["c", "a", "e"]


@pytest.mark.requirement("R139")
def test_every_later_prompt_shows_urgent_feedback_and_no_other() -> None:
    story = Story(task("DEV-001"))
    before = story.prompt("DEV-001")
    says(story, "the button is red", severity=Severity.high)
    says(story, "nice colours")

    after = story.prompt("DEV-001")

    assert "the button is red" in after
    assert "nice colours" not in after
    assert "What the user wants changed" not in before


@pytest.mark.requirement("R137")
def test_feedback_is_told_to_everybody_with_its_severity_and_its_first_50_characters() -> None:
    story = Story(task("DEV-001"))
    item = says(story, "x" * 50 + "y", severity=Severity.high, category=FeedbackCategory.ux)

    message = story.state.messages.sent[-1]
    assert (message.type, message.sender, message.to) == ("user_feedback_received", "coordinator", "all")
    assert message.summary.endswith("high - " + "x" * 50)
    assert message.data["ref"] == item.feedback_id


def test_open_feedback_is_counted_in_the_picture_and_the_urgent_is_listed_in_the_report() -> None:
    story = Story(task("DEV-001"))
    without = session_view(story.state, DEVELOPMENT).feedback, report(story.state, DEVELOPMENT)
    urgent = says(story, "the button\nis red", severity=Severity.critical)
    done = says(story, "nice colours")
    story.happens(FeedbackMoved(feedback_id=done.feedback_id, status=FeedbackStatus.addressed))

    assert without[0] == ""
    assert "Left open" not in without[1]
    assert session_view(story.state, DEVELOPMENT).feedback == "1 open, 1 of high or critical severity"
    assert f"- {urgent.feedback_id} (critical): the button is red\n" in report(story.state, DEVELOPMENT)
