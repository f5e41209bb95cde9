"""What changed from one state to the next, as lines."""

from datetime import UTC

from tests.core.conftest import Story, done, review, reviewed_badly, task

from iterdev.core.session import events
from iterdev.core.types import Status
from iterdev.core.views.progress import progress_lines
from iterdev.teams.development.team import DEVELOPMENT


def test_nothing_is_said_of_equal_states() -> None:
    state = Story(task("DEV-001")).starts("DEV-001")

    assert list(progress_lines(state, state, DEVELOPMENT)) == []


def test_each_task_whose_status_changed_has_a_line() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("DEV-003"), task("REVIEW-001"))
    before = story.starts("DEV-001")
    story.ends("DEV-001", events.Failed(error=f"no luck with {'x' * 200}"))
    story.does("DEV-002", done(findings=f"first\n{'x' * 200}"))
    story.starts("DEV-003")
    story.reviews("REVIEW-001", review(8))

    assert list(progress_lines(before, story.state, DEVELOPMENT)) == [
        f"  DEV-001 failed: no luck with {'x' * 146}…",
        "  DEV-002 completed: first",
        "  DEV-003 started (developer, mine, attempt 1)",
        "  REVIEW-001 completed: score 8, CONVERGED",
    ]


def test_what_was_over_before_the_first_state_is_only_counted() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("DEV-003"))
    story.does("DEV-001")
    story.happens(events.EnvironmentMade("Node: made in 2 s"))
    story.starts("DEV-002")

    assert list(progress_lines(None, story.state, DEVELOPMENT)) == [
        "before: 1 completed",
        "  DEV-002 started (developer, mine, attempt 1)",
    ]


def test_a_new_wave_a_warning_and_a_pause_have_a_line_each() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"))
    before = story.state
    story.happens(events.WaveStarted(1), events.Warned("odd"))
    story.does("DEV-001", events.Limited(error="429", reset_at=2000))

    assert list(progress_lines(before, story.state, DEVELOPMENT)) == [
        "wave 1/2",
        "  warning: odd",
        "  the provider of mine is paused until 1970-01-01T08:33:20+08:00: 429",
    ]
    assert list(progress_lines(story.state, story.state, DEVELOPMENT)) == []


def test_a_warning_that_was_shown_before_is_not_repeated() -> None:
    story = Story(task("DEV-001"))
    before = story.happens(events.Warned("odd"))
    story.happens(events.Warned("odd"), events.Warned("new"), events.Warned("new"))

    assert list(progress_lines(before, story.state, DEVELOPMENT)) == ["  warning: new"]


def test_times_are_in_the_zone_of_the_reader() -> None:
    story = Story(task("DEV-001"))
    before = story.state
    story.does("DEV-001", events.Limited(error="429", reset_at=2000))

    (line,) = progress_lines(before, story.state, DEVELOPMENT, UTC)

    assert "paused until 1970-01-01T00:33:20+00:00" in line


def test_a_wave_behind_later_ones_is_run_again() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))
    for name in ("DEV-001", "DEV-002"):
        story.does(name)
    before = story.edits(events.RowEdit(task=task("DEV-003"), status=Status.pending))
    story.happens(events.WaveStarted(1))

    assert list(progress_lines(before, story.state, DEVELOPMENT)) == ["wave 1/2 again"]


def test_a_fix_round_has_a_line() -> None:
    story = reviewed_badly()
    before = story.state
    story.goes_on()

    assert "fix round 1 of 3" in progress_lines(before, story.state, DEVELOPMENT)
