"""A report counts only for the attempt that is open: a host that was given up may still say what became of its own."""

import pytest
from tests.core.conftest import Story, done, task

from iterdev.core.rules.outcomes import attempt_ended, attempt_placed
from iterdev.core.session.attempts import AttemptReport, Placement, Success
from iterdev.core.session.events import AttemptPlaced, Failed, Interrupted, Limited, Unmet, Warned
from iterdev.core.types import Status, TaskId
from iterdev.teams.development.team import DEVELOPMENT

DEV = TaskId("DEV-001")
OUTCOMES = [
    done(commit="late"),
    Failed(error="it broke"),
    Limited(error="no more"),
    Interrupted(commit="late"),
    Unmet(),
]


def late_report(outcome: Success | Failed | Limited | Interrupted | Unmet, fence: int) -> AttemptReport:
    return AttemptReport(task=DEV, number=1, fence=fence, requests=1, outcome=outcome)


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_the_report_of_an_attempt_that_was_given_up_changes_nothing_but_a_warning(
    outcome: Success | Failed | Limited | Interrupted | Unmet,
) -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    first = story.state.attempts.running[DEV].fence
    story.ends("DEV-001", Interrupted())
    story.starts("DEV-001")
    before = story.state

    events = attempt_ended(before, DEVELOPMENT, late_report(outcome, first), story.now)
    after = story.happens(*events)

    assert [type(event) for event in events] == [Warned]
    assert after.tasks.status(DEV) is Status.in_progress
    assert after.attempts == before.attempts
    assert after.tasks.progress == before.tasks.progress


def test_attempts_that_share_a_number_are_told_apart() -> None:
    """One that could not begin does not count, and the next one has its number."""
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    first = story.state.attempts.running[DEV]
    story.ends("DEV-001", Unmet())
    story.starts("DEV-001")

    second = story.state.attempts.running[DEV]

    assert first.number == second.number
    assert first.fence != second.fence


def test_a_report_that_comes_twice_counts_once() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    fence = story.state.attempts.running[DEV].fence
    report = late_report(Failed(error="it broke"), fence)
    story.happens(*attempt_ended(story.state, DEVELOPMENT, report, story.now))

    again = story.happens(*attempt_ended(story.state, DEVELOPMENT, report, story.now))
    third = attempt_ended(again, DEVELOPMENT, report, story.now)

    assert again.tasks.progress[DEV].error == "it broke"
    assert again.warnings == ("DEV-001: the report of attempt 1 came too late and was not used",)
    assert third == ()


def test_the_host_of_an_attempt_is_recorded_once_and_only_while_it_is_open() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    placement = Placement(task=DEV, number=1, fence=story.state.attempts.running[DEV].fence, host="builder-1")
    first = attempt_placed(story.state, placement)
    story.happens(*first)
    again = attempt_placed(story.state, placement)
    story.ends("DEV-001", Interrupted())
    story.starts("DEV-001")

    late = attempt_placed(story.state, placement)

    assert first == (AttemptPlaced(DEV, 1, "builder-1"),)
    assert (again, late) == ((), ())
    assert story.state.attempts.hosts == {}


def test_the_work_of_a_late_report_is_named() -> None:
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    fence = story.state.attempts.running[DEV].fence
    story.ends("DEV-001", Interrupted())

    (warning,) = attempt_ended(story.state, DEVELOPMENT, late_report(Interrupted(commit="1f3c"), fence), 0)

    assert warning == Warned(
        "DEV-001: the report of attempt 1 came too late and was not used; its work is kept as 1f3c"
    )
