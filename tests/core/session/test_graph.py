"""Depths and cycles of any graph."""

from collections.abc import Hashable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterdev.core.session.graph import CycleError, depths


@st.composite
def graphs(draw: st.DrawFn) -> dict[int, list[int]]:
    """Any graph, with or without cycles; its nodes come in any order."""
    count = draw(st.integers(0, 12))
    nodes = draw(st.permutations(range(count)))
    return {node: draw(st.lists(st.sampled_from(nodes), max_size=2, unique=True)) for node in nodes}


@pytest.mark.requirement("R45")
@pytest.mark.parametrize(
    ("dependencies", "expected"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"a": []}, {"a": 1}, id="one"),
        pytest.param({"b": ["a"], "a": []}, {"a": 1, "b": 2}, id="the dependency comes later"),
        pytest.param(
            {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}, {"a": 1, "b": 2, "c": 2, "d": 3}, id="diamond"
        ),
        pytest.param({"a": [], "b": ["a"], "c": ["b", "a"]}, {"a": 1, "b": 2, "c": 3}, id="the longest way counts"),
    ],
)
def test_depth_is_one_plus_the_deepest_dependency(dependencies: dict[str, list[str]], expected: dict[str, int]) -> None:
    assert depths(dependencies) == expected


@pytest.mark.requirement("R46")
@pytest.mark.parametrize(
    ("dependencies", "cycle"),
    [
        ({"a": ["a"]}, "a -> a"),
        ({"a": ["b"], "b": ["a"]}, "a -> b -> a"),
        ({"x": [], "a": ["x", "c"], "b": ["a"], "c": ["b"], "z": ["c"]}, "a -> c -> b -> a"),
    ],
)
def test_a_cycle_is_named_from_a_node_back_to_itself(dependencies: dict[str, list[str]], cycle: str) -> None:
    with pytest.raises(CycleError) as caught:
        depths(dependencies)

    assert str(caught.value) == cycle


@given(graphs())
@settings(derandomize=True)
def test_a_graph_has_depths_or_a_cycle_that_is_really_there(graph: dict[int, list[int]]) -> None:
    depth, cycle = depths_or_cycle(graph)

    assert bool(graph) <= (bool(depth) != bool(cycle))
    assert all(depth[node] == 1 + max((depth[dep] for dep in graph[node]), default=0) for node in depth)
    assert cycle[:1] == cycle[-1:]
    assert all(after in graph[before] for before, after in pairwise(cycle))


def depths_or_cycle(graph: dict[int, list[int]]) -> tuple[dict[int, int], tuple[Hashable, ...]]:
    try:
        return depths(graph), ()
    except CycleError as error:
        return {}, error.cycle
