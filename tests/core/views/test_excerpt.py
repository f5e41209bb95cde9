"""Which tasks are shown where there is no room for all of them."""

from tests.core.conftest import Story, task

from iterdev.core.types import Engine
from iterdev.core.views.tasks import excerpt


def a_story() -> Story:
    """Ten tasks: two are done, one failed, one is under way, five are ready, and one waits."""
    names = [f"DEV-{number}" for number in range(9)]
    story = Story(*map(task, names), task("DEV-9", "DEV-8"), engine=Engine.beat)
    for name in ("DEV-1", "DEV-0"):
        story.does(name)
        story.now += 1
    story.fails("DEV-2")
    story.starts("DEV-5")
    return story


def test_a_table_that_fits_is_shown_as_it_is() -> None:
    story = a_story()

    assert excerpt(story.state, 10) == list(story.state.tasks.order)


def test_what_is_under_way_and_what_failed_come_first() -> None:
    assert excerpt(a_story().state, 2) == ["DEV-2", "DEV-5"]


def test_the_rest_of_the_room_is_for_what_was_done_last_and_what_comes_next() -> None:
    assert excerpt(a_story().state, 4) == ["DEV-0", "DEV-2", "DEV-3", "DEV-5"]


def test_what_is_ready_is_shown_before_what_waits() -> None:
    story = a_story()

    assert "DEV-9" not in excerpt(story.state, 9)
    assert len(excerpt(story.state, 9)) == 9


def test_there_is_never_more_than_fits() -> None:
    story = a_story()

    assert [len(excerpt(story.state, room)) for room in range(1, 12)] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10]
