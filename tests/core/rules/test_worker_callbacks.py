"""What follows when a worker reports a task whose output is there already."""

import pytest
from tests.core.conftest import Story, a_design, done, review, task

from iterdev.core.errors import UserError
from iterdev.core.rules import worker_callbacks
from iterdev.core.rules.worker_callbacks import Callback
from iterdev.core.session import events
from iterdev.core.types import Engine, Status, TaskId
from iterdev.teams.development import events as team_events
from iterdev.teams.development.roles import WORKERS
from iterdev.teams.development.team import DEVELOPMENT

REVIEW = TaskId("REVIEW-001")


def set_back(story: Story, name: str, **results: str) -> None:
    """A person makes a task pending again, and leaves its findings."""
    findings = story.state.tasks.progress[TaskId(name)].findings
    story.edits(events.RowEdit(task=story.row(name), status=Status.pending, findings=findings), **results)


def reports(story: Story, name: str) -> None:
    story.happens(*worker_callbacks.reported(story.state, DEVELOPMENT, [TaskId(name)]))


@pytest.mark.requirement("R93")
@pytest.mark.parametrize("cells", [{}, {"review_score": "", "gc_signal": ""}])
def test_a_verdict_that_is_there_counts_again_with_its_task(cells: dict[str, str]) -> None:
    story = Story(task("REVIEW-001"), engine=Engine.beat, rounds=0)
    story.reviews("REVIEW-001", review(5))
    story.goes_on()
    set_back(story, "REVIEW-001", **cells)
    meanwhile = DEVELOPMENT.result_cells(story.state, REVIEW)

    reports(story, "REVIEW-001")

    assert meanwhile == {"review_score": "", "gc_signal": ""}
    assert story.status("REVIEW-001") == "completed"
    assert DEVELOPMENT.result_cells(story.state, REVIEW) == {"review_score": "5", "gc_signal": "REVISION_NEEDED"}
    assert story.state.messages.sent[-1].summary == "[reviewer] REVIEW-001 scored 5.0: findings of REVIEW-001"


@pytest.mark.requirement("R93")
def test_what_follows_from_a_verdict_follows_again_when_it_counts_again() -> None:
    story = Story(task("REVIEW-001"), task("REVIEW-002"), engine=Engine.beat)
    story.starts("REVIEW-002")
    story.reviews("REVIEW-001", review(9))
    story.goes_on()
    set_back(story, "REVIEW-001")
    reports(story, "REVIEW-001")
    story.goes_on()

    assert story.seen(team_events.ReviewPassed) == [team_events.ReviewPassed(REVIEW)] * 2


def test_a_verdict_does_not_come_back_when_the_task_is_done_again() -> None:
    story = Story(task("REVIEW-001"), engine=Engine.beat, rounds=0)
    story.reviews("REVIEW-001", review(5))
    set_back(story, "REVIEW-001")
    story.reviews("REVIEW-001", review(9))
    set_back(story, "REVIEW-001")

    reports(story, "REVIEW-001")

    assert story.team.verdicts[REVIEW].score == 9


@pytest.mark.parametrize("reset", [True, False])
def test_a_task_without_output_is_not_reported(*, reset: bool) -> None:
    story = Story(task("DESIGN-001"))
    story.does("DESIGN-001", done("designed", design=a_design()))
    if reset:
        story.happens(events.TasksReset((TaskId("DESIGN-001"),)))
    else:
        story.edits(events.RowEdit(task=story.row("DESIGN-001"), status=Status.pending, findings=""))

    assert worker_callbacks.reported(story.state, DEVELOPMENT, story.state.tasks.plan) == ()


def test_no_verdict_is_taken_on_a_word() -> None:
    story = Story(task("REVIEW-001"))

    with pytest.raises(UserError, match="REVIEW-001 cannot be completed by a message: it has no review yet"):
        worker_callbacks.completed(story.state, DEVELOPMENT, Callback("reviewer", "REVIEW-001 is fine"), "a new tip")


@pytest.mark.parametrize("text", ["[developer] DEV-001 is done", " ## [developer]\nDEV-001", "[developer] done"])
def test_a_developer_s_word_for_a_commit_completes_the_task_that_it_names_or_the_next_one(text: str) -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))
    told = worker_callbacks.callback(text, WORKERS)
    assert told

    event = worker_callbacks.completed(story.state, DEVELOPMENT, told, "a new tip")
    story.happens(event)

    assert (event.task, story.state.branch.tip) == ("DEV-001", "a new tip")
    assert story.status("DEV-001") == "completed"


def test_a_task_that_waits_for_others_cannot_be_completed() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))

    with pytest.raises(UserError, match="DEV-002 cannot be completed yet: it waits for DEV-001"):
        worker_callbacks.completed(story.state, DEVELOPMENT, Callback("developer", "DEV-002 is done"), "a new tip")
