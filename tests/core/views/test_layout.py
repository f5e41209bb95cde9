"""The task graph as a picture."""

from itertools import pairwise

from tests.core.conftest import Story, task

from iterdev.core.types import Status
from iterdev.core.views.layout import MOST, WHOLE, Layout, layout


def crossings(drawn: Layout) -> int:
    """How many pairs of edges between neighbouring columns cross."""
    count = 0
    for left, right in pairwise(drawn.columns):
        place = {name: row for column in (left, right) for row, name in enumerate(column.tasks)}
        between = sorted((place[a], place[b]) for a, b in drawn.edges if a in left.tasks and b in right.tasks)
        ends = [end for _, end in between]
        count += sum(one > other for number, one in enumerate(ends) for other in ends[number + 1 :])
    return count


def test_a_column_has_the_tasks_of_a_wave_and_edges_lead_to_the_right() -> None:
    story = Story(task("DESIGN-001"), task("DEV-001", "DESIGN-001"), task("DEV-002", "DESIGN-001"))

    drawn = layout(story.state)

    assert [(column.first, column.last, column.tasks) for column in drawn.columns] == [
        (1, 1, ("DESIGN-001",)),
        (2, 2, ("DEV-001", "DEV-002")),
    ]
    assert drawn.edges == (("DESIGN-001", "DEV-001"), ("DESIGN-001", "DEV-002"))
    assert [column.omitted for column in drawn.columns] == [{}, {}]


def test_a_table_without_tasks_is_an_empty_picture() -> None:
    assert layout(Story().state) == Layout(columns=(), edges=())


def test_edges_are_untangled() -> None:
    # Each of ten tasks has one that depends on it, listed in the opposite order.
    first = [task(f"DEV-{number:03}") for number in range(10)]
    second = [task(f"VERIFY-{number:03}", f"DEV-{number:03}") for number in reversed(range(10))]

    drawn = layout(Story(*first, *second).state)

    assert crossings(drawn) == 0


def long_story(count: int, done: int) -> Story:
    """Waves of ten tasks, of which the first ones are completed."""
    rows = [task(f"DEV-{n:04}", *([f"DEV-{n - 10:04}"] if n >= 10 else [])) for n in range(count)]
    story = Story(*rows)
    for number in range(done):
        story.does(f"DEV-{number:04}")
    return story


def test_of_a_long_table_finished_waves_are_one_column() -> None:
    story = long_story(WHOLE + 20, done=45)

    folded, whole = layout(story.state), layout(story.state, everything=True)

    assert (folded.columns[0].first, folded.columns[0].last) == (1, 4)
    assert (folded.columns[0].tasks, folded.columns[0].omitted) == ((), {Status.completed: 40})
    assert [len(column.tasks) for column in folded.columns[1:]] == [10, 10, 10, 10]
    assert [len(column.tasks) for column in whole.columns] == [10] * 8


def test_of_a_very_long_table_only_what_says_most_is_shown_and_the_rest_counted() -> None:
    story = long_story(1000, done=20)
    story.starts("DEV-0020")

    drawn = layout(story.state)

    shown = {name for column in drawn.columns for name in column.tasks}
    assert len(shown) == MOST
    assert "DEV-0020" in shown
    assert sum(sum(column.omitted.values()) for column in drawn.columns) == 1000 - MOST
