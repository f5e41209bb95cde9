"""A task whose host dies at each attempt is not tried for ever: it may be the task that ends its hosts."""

import pytest
from tests.core.conftest import Story, done, task

from iterdev.core.policy import Policy
from iterdev.core.session.events import Failed, Interrupted, Limited, PolicyChanged, TasksReset, Unmet
from iterdev.core.types import Status, TaskId

DEV, OTHER = TaskId("DEV-001"), TaskId("DEV-002")
DIED = Interrupted(host_died=True)


def test_a_task_whose_host_died_three_times_in_a_row_has_failed() -> None:
    story = Story(task("DEV-001"))

    states = [story.does("DEV-001", DIED).tasks.status(DEV) for _ in range(3)]

    assert states == [Status.pending, Status.pending, Status.failed]
    error = story.state.tasks.progress[DEV].error
    assert error.startswith("the host died during each of the last 3 attempts")
    assert f"iterdev retry {story.state.session.id}" in error


def test_the_policy_says_how_often_a_host_may_die() -> None:
    story = Story(task("DEV-001"))
    story.happens(PolicyChanged(Policy(host_deaths=1)))

    story.does("DEV-001", DIED)

    assert story.state.tasks.status(DEV) is Status.failed


@pytest.mark.parametrize("outcome", [Interrupted(), Interrupted(problem="the disk is full")])
def test_an_attempt_that_was_interrupted_otherwise_is_passed_over(outcome: Interrupted) -> None:
    story = Story(task("DEV-001"))
    for one in (DIED, DIED, outcome):
        story.does("DEV-001", one)
    before = story.state.tasks.status(DEV)

    story.does("DEV-001", DIED)

    assert (before, story.state.tasks.status(DEV)) == (Status.pending, Status.failed)


@pytest.mark.parametrize("outcome", [Limited(error="later"), Unmet()], ids=["limited", "unmet"])
def test_a_host_that_brought_an_attempt_to_its_end_ends_the_row(outcome: Limited | Unmet) -> None:
    story = Story(task("DEV-001"))

    for one in (DIED, DIED, outcome, DIED, DIED):
        story.does("DEV-001", one)

    assert story.state.tasks.status(DEV) is Status.pending
    assert story.state.attempts.host_deaths == {DEV: 2}


def test_a_task_that_is_tried_again_by_the_user_may_lose_as_many_hosts_again() -> None:
    story = Story(task("DEV-001"))
    for _ in range(3):
        story.does("DEV-001", DIED)
    story.happens(TasksReset((DEV,)))

    story.does("DEV-001", DIED)

    assert story.state.tasks.status(DEV) is Status.pending


def test_hosts_that_die_at_other_tasks_do_not_count() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))

    for name in ("DEV-001", "DEV-002", "DEV-001", "DEV-002"):
        story.does(name, DIED)

    assert story.state.tasks.status(DEV) is story.state.tasks.status(OTHER) is Status.pending
    story.does("DEV-002", done())
    assert story.state.attempts.host_deaths == {DEV: 2}
    story.does("DEV-001", Failed(error="it broke"))
    assert story.state.attempts.host_deaths == {}
