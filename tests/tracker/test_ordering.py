from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from iterdev.core.errors import UserError
from iterdev.tracker.ordering import Candidate, ordered, without_common_files


def one(
    name: str, *files: str, after: Sequence[str] = (), priority: int = 3, tasks: int = 1, **more: bool
) -> Candidate:
    return Candidate(
        issue_id=name,
        solution_id=f"SOL-{name}-1",
        priority=priority,
        task_count=tasks,
        files=files,
        dependencies=tuple(after),
        **more,
    )


def names(candidates: Sequence[Candidate], preferred: Sequence[str] = ()) -> list[str]:
    return [entry.candidate.issue_id for entry in ordered(candidates, preferred).entries]


def test_solutions_without_common_files_wait_for_nothing() -> None:
    order = ordered([one("A", "a.py"), one("B", "b.py")])

    assert [entry.depends_on for entry in order.entries] == [(), ()]
    assert order.conflicts == ()


def test_of_solutions_that_touch_the_same_file_each_waits_for_the_one_before_it() -> None:
    order = ordered([one("A", "a.py", "x.py"), one("B", "./a.py".removeprefix("./")), one("C", "a.py")])

    assert [entry.depends_on for entry in order.entries] == [(), ("A",), ("B",)]
    assert [(found.issues, found.files) for found in order.conflicts] == [(("A", "B", "C"), ("a.py",))]


def test_a_folder_is_shared_with_what_is_in_it_but_files_in_it_are_not_shared_by_that() -> None:
    order = ordered([one("A", "src/a.py"), one("B", "src/b.py"), one("C", "src"), one("D", "src/d.py")])

    waits = {entry.candidate.issue_id: entry.depends_on for entry in order.entries}
    assert waits == {"A": (), "B": (), "C": ("A", "B"), "D": ("C",)}


def test_a_declared_dependency_goes_before_any_priority() -> None:
    assert names([one("A", after=["B"], priority=5), one("B", priority=1)]) == ["B", "A"]


def test_a_dependency_may_be_named_by_its_solution_and_an_unknown_one_is_not_waited_for() -> None:
    order = ordered([one("A", after=["SOL-B-1", "GH-99", "A"]), one("B")])

    assert [(entry.candidate.issue_id, entry.depends_on) for entry in order.entries] == [("B", ()), ("A", ("B",))]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"priority": 5}, {"priority": 4}),
        ({"tasks": 3}, {"tasks": 2}),
        ({"creates": True}, {}),
    ],
)
def test_where_dependencies_leave_a_choice_the_more_important_comes_first(first: dict, second: dict) -> None:
    assert names([one("B", **second), one("A", **first)]) == ["A", "B"]


def test_what_others_depend_on_comes_before_what_they_do_not() -> None:
    assert names([one("A"), one("B"), one("C", after=["B"])]) == ["B", "A", "C"]


def test_a_preferred_order_decides_where_dependencies_leave_a_choice() -> None:
    candidates = [one("A", "x"), one("B", "x"), one("C", "x", after=["A"])]

    assert names(candidates, ["C", "B", "A"]) == ["B", "A", "C"]


def test_a_circle_is_refused_and_named() -> None:
    circle = [one("A", after=["B"]), one("B", after=["C"]), one("C", after=["A"]), one("D")]

    with pytest.raises(UserError, match="in a circle: A -> B -> C -> A"):
        ordered(circle)


def test_independent_solutions_are_dealt_out_to_groups_of_about_equal_work() -> None:
    order = ordered([one("A", tasks=4), *(one(name) for name in "BCDEFG")])

    assert order.groups == (("A",), ("B", "D", "F"), ("C", "E", "G"))


def test_a_group_waits_for_the_groups_that_its_members_depend_on_and_for_no_other() -> None:
    order = ordered([one("A", "x"), one("B", "x"), one("C", "y")])

    assert order.groups == (("A",), ("C",), ("B",))
    assert [order.waits_for(number) for number in (1, 2, 3)] == [(), (), (1,)]


@pytest.mark.parametrize(
    ("priority", "tasks", "after", "expected"),
    [(5, 1, (), 0.95), (4, 1, (), 0.75), (3, 3, (), 0.6), (2, 5, (), 0.45), (1, 1, (), 0.35), (5, 5, (), 1.0)],
)
def test_the_semantic_priority_adds_up(priority: int, tasks: int, after: tuple[str, ...], expected: float) -> None:
    (entry,) = ordered([one("A", priority=priority, tasks=tasks, after=after)]).entries

    assert entry.semantic_priority == expected


FILES = some.lists(some.sampled_from(["a", "b", "c", "d/e", "d/f", "d"]), max_size=3, unique=True)


@given(some.lists(some.tuples(FILES, some.integers(1, 5)), max_size=12))
def test_no_group_has_two_solutions_with_a_common_file(drawn: list[tuple[list[str], int]]) -> None:
    candidates = [one(f"I{number}", *files, priority=rank) for number, (files, rank) in enumerate(drawn)]

    order = ordered(candidates)

    files = {candidate.issue_id: set(candidate.files) for candidate in candidates}
    pairs = (pair for group in order.groups for pair in combinations(group, 2))
    assert [pair for pair in pairs if files[pair[0]] & files[pair[1]]] == []
    assert sorted(name for group in order.groups for name in group) == sorted(files)


@given(some.lists(FILES, max_size=12))
def test_what_waits_stands_in_a_later_group_and_later_in_the_order(drawn: list[list[str]]) -> None:
    order = ordered([one(f"I{number}", *files) for number, files in enumerate(drawn)])

    places = {entry.candidate.issue_id: (entry.group, entry.order) for entry in order.entries}
    for entry in order.entries:
        assert all(places[name] < (entry.group, entry.order) for name in entry.depends_on)


@given(some.dictionaries(some.integers(0, 40).map(str), FILES, max_size=20))
def test_batches_have_no_common_files_and_nothing_could_stand_earlier(files: dict[str, list[str]]) -> None:
    batches = without_common_files(files)

    assert sorted(name for batch in batches for name in batch) == sorted(files)
    for number, batch in enumerate(batches):
        assert all(not set(files[one]) & set(files[other]) for one, other in combinations(batch, 2))
        for name in batch:
            earlier = batches[:number]
            assert all(any(set(files[name]) & set(files[other]) for other in before) for before in earlier)
