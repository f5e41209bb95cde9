"""Updates: the user's branch is brought into a session as the work of a task."""

from tests.core.conftest import Story

from iterdev.core.session.events import EngineStarted, UpdateRequested
from iterdev.core.types import Phase, TaskKind
from iterdev.core.verification import SuiteReport
from iterdev.teams.development.events import BaselineMeasured
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT

USERS = "e" * 40
REPORTS = (SuiteReport(command="pytest", exit_code=0, counted=True),)


def patch() -> Story:
    """A patch whose tasks are done."""
    story = Story(pipeline=Pipeline.patch)
    story.goes_on()
    story.does("DEV-001")
    story.goes_on()
    story.verifies("VERIFY-001", 1)
    story.goes_on()
    return story


def asks_for_update(story: Story) -> list[str]:
    """The tasks that start after an engine has taken up the update."""
    story.happens(UpdateRequested(branch="main", commit=USERS))
    story.happens(EngineStarted(1, story.state.branch.tip))
    return story.goes_on()


def test_a_finished_session_verifies_the_update() -> None:
    story = patch()

    starts = asks_for_update(story)

    assert starts == ["VERIFY-002"]
    assert (story.status("UPDATE-001"), story.row("UPDATE-001").kind) == ("completed", TaskKind.update)
    assert story.row("UPDATE-001").title == f"Bring in main ({USERS[:12]})"
    assert story.state.branch.base == USERS


def test_a_session_that_is_to_be_updated_is_not_finished() -> None:
    story = patch()

    story.happens(UpdateRequested(branch="main", commit=USERS))

    assert story.state.lifecycle.phase is Phase.paused
    assert not story.state.lifecycle.is_finished


def test_what_could_start_waits_for_the_update_and_is_the_verification_of_it() -> None:
    story = Story(pipeline=Pipeline.sprint)
    story.goes_on()
    story.does("DESIGN-001")

    starts = asks_for_update(story)

    assert story.row("DEV-001").deps == ("DESIGN-001", "UPDATE-001")
    assert starts == ["DEV-001"]
    assert "VERIFY-002" not in story.state.tasks.plan


def test_the_baseline_of_the_tests_is_that_of_the_commit_that_was_brought_in() -> None:
    story = patch()
    story.happens(BaselineMeasured(REPORTS, story.state.branch.base))
    before = DEVELOPMENT.baseline(story.state)

    asks_for_update(story)

    assert before == REPORTS
    assert DEVELOPMENT.baseline(story.state) == ()


def test_a_conflict_with_the_users_branch_is_resolved_before_it_counts_as_brought_in() -> None:
    story = patch()
    story.happens(UpdateRequested(branch="main", commit=USERS))
    story.happens(EngineStarted(1, story.state.branch.tip))
    (due,) = story.decides()
    story.happens(*due.events)
    story.is_refused("UPDATE-001", "README.md")
    base = story.state.branch.base

    starts = story.goes_on()
    story.does("UPDATE-001-fix-conflict")

    assert base != USERS
    assert starts == ["UPDATE-001-fix-conflict"]
    assert story.row("VERIFY-002").deps == ("UPDATE-001-fix-conflict",)
    assert story.prompt("UPDATE-001-fix-conflict").count(USERS) == 1
