"""The architect's breakdown, cut to sprints and rows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterdev.teams.development import sprints
from iterdev.teams.development.events import Thresholds
from iterdev.teams.development.results import Component, Design, Milestone, WorkItem


def design(items: list[WorkItem], *milestones: Milestone) -> Design:
    parts = (Component(name="app", dependencies=()),)
    return Design(
        id="DESIGN-001", status="completed", design="d", components=parts, tasks=tuple(items), milestones=milestones
    )


def items(count: int) -> list[WorkItem]:
    return [WorkItem(id=f"t{number}", title="t") for number in range(count)]


def ids(found: list[WorkItem]) -> list[str]:
    return [item.id for item in found]


def test_what_others_depend_on_comes_first() -> None:
    given_items = [
        WorkItem(id="c", title="c", dependencies=("b",)),
        WorkItem(id="a", title="a"),
        WorkItem(id="b", title="b", dependencies=("a", "elsewhere")),
    ]

    assert ids(sprints.execution_order(given_items)) == ["a", "b", "c"]


def test_a_circle_keeps_the_listed_order() -> None:
    circle = [WorkItem(id="a", title="a", dependencies=("b",)), WorkItem(id="b", title="b", dependencies=("a",))]

    assert ids(sprints.execution_order(circle)) == ["a", "b"]


@pytest.mark.parametrize(
    ("goal", "found"), [("now", ["t0", "t1"]), ("later", ["t1", "t2"]), ("something else", ["t0", "t1", "t2"])]
)
def test_a_milestone_takes_what_is_not_put_into_another_one(goal: str, found: list[str]) -> None:
    milestones = (Milestone(title="now", tasks=("t0",)), Milestone(title="later", tasks=("t2",)))

    assert ids(sprints.items_towards(design(items(3), *milestones), goal)) == found


def test_a_design_that_puts_nothing_into_a_milestone_is_all_about_it() -> None:
    milestones = (Milestone(title="now", tasks=("t0", "t1")), Milestone(title="later"))

    assert ids(sprints.items_towards(design(items(2), *milestones), "later")) == ["t0", "t1"]


@pytest.mark.parametrize(("count", "rows"), [(1, 2), (10, 2), (11, 3), (15, 3), (16, 4)])
def test_a_developer_is_given_at_most_five_items(count: int, rows: int) -> None:
    assert sprints.rows_needed(items(count), 2, Thresholds().batch) == rows


@given(count=st.integers(1, 40), rows=st.integers(1, 10))
def test_every_item_belongs_to_exactly_one_row(count: int, rows: int) -> None:
    batches = [sprints.batch(items(count), place, rows) for place in range(rows)]

    assert [item.id for batch in batches for item in batch] == ids(items(count))
