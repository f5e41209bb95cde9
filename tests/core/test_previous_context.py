"""What a task is told of the tasks before it."""

import pytest
from tests.core.conftest import Story, done, task

from iterdev.core.prompts import NO_CONTEXT, previous_context
from iterdev.core.session import events
from iterdev.core.session.fold import replay
from iterdev.core.types import TaskId
from iterdev.store.session_folder import tasks_csv
from iterdev.teams.development.team import DEVELOPMENT

LAST = TaskId("REVIEW-001")


def told() -> Story:
    """A review that takes context from a completed task, from one whose work did not land, and from a silent one."""
    sources = ["DESIGN-001", "DEV-001", "DEV-002"]
    story = Story(*(task(name) for name in sources), task("REVIEW-001", "DESIGN-001", context=sources))
    story.does("DESIGN-001")
    story.does("DEV-001", done("findings that came to nothing", commit="c1"))
    story.is_refused(TaskId("DEV-001"), "a.py")
    story.does("DEV-002", done(""))
    return story


@pytest.mark.requirement("R51")
def test_each_completed_source_with_findings_has_one_line_with_id_and_title() -> None:
    story = Story(
        task("DESIGN-001"),
        task("DEV-001", "DESIGN-001"),
        task("REVIEW-001", "DEV-001", context=["DESIGN-001", "DEV-001"]),
    )
    story.does("DESIGN-001")
    story.does("DEV-001")

    assert previous_context(story.state, LAST).splitlines() == [
        "[Task DESIGN-001: title of DESIGN-001] findings of DESIGN-001",
        "[Task DEV-001: title of DEV-001] findings of DEV-001",
    ]


@pytest.mark.requirement("R51")
def test_sources_that_failed_or_found_nothing_are_left_out() -> None:
    assert previous_context(told().state, LAST) == "[Task DESIGN-001: title of DESIGN-001] findings of DESIGN-001"


@pytest.mark.requirement("R52")
def test_a_task_without_usable_context_is_told_so() -> None:
    story = Story(task("DEV-001"), task("REVIEW-001", "DEV-001", context=["DEV-001"]))

    assert previous_context(story.state, TaskId("DEV-001")) == NO_CONTEXT
    assert previous_context(story.state, LAST) == NO_CONTEXT == "No previous context available"


@pytest.mark.requirement("R53")
def test_a_restarted_process_tells_the_same() -> None:
    story = told()
    again = replay(story.entries, DEVELOPMENT)

    assert again
    assert previous_context(again, LAST) == previous_context(story.state, LAST)


@pytest.mark.requirement("R53")
def test_a_session_made_again_from_its_table_tells_the_same() -> None:
    story = told()
    rows = tasks_csv.parse(tasks_csv.table(story.state, DEVELOPMENT), DEVELOPMENT)
    again = Story(*(row.edit.task for row in rows))
    again.happens(events.TableEdited(tuple(row.edit for row in rows)))

    assert previous_context(again.state, LAST) == previous_context(story.state, LAST)
