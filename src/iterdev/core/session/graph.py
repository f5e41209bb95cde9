"""Reasoning about dependencies between any hashable things; it knows nothing of tasks."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


class CycleError(ValueError):
    """The nodes that wait for each other, in order, the first one again at the end."""

    def __init__(self, cycle: Sequence[Hashable]) -> None:
        super().__init__(" -> ".join(map(str, cycle)))
        self.cycle = tuple(cycle)


def depths(dependencies: Mapping[Node, Sequence[Node]]) -> dict[Node, int]:
    """One plus the greatest depth among a node's dependencies (Kahn's sort, breadth first); cycles raise."""
    waiting = _dependants(dependencies)
    missing = [len(wanted) for wanted in dependencies.values()]
    depth = [1] * len(missing)
    reached = [place for place, count in enumerate(missing) if not count]
    # The list grows while it is walked, and gets deeper from its beginning to its end.
    for place in reached:
        for follower in waiting[place]:
            missing[follower] -= 1
            if not missing[follower]:
                depth[follower] = depth[place] + 1
                reached.append(follower)
    if len(reached) < len(dependencies):
        blocked = (node for node, count in zip(dependencies, missing, strict=True) if count)
        raise CycleError(_cycle({node: dependencies[node] for node in blocked}))
    return dict(zip(dependencies, depth, strict=True))


def _dependants(dependencies: Mapping[Node, Sequence[Node]]) -> list[list[int]]:
    """Who waits for each node, as places in the mapping: small numbers are quicker to find than nodes."""
    places = {node: place for place, node in enumerate(dependencies)}
    waiting: list[list[int]] = [[] for _ in places]
    for place, wanted in enumerate(dependencies.values()):
        for other in wanted:
            waiting[places[other]].append(place)
    return waiting


def _cycle(blocked: Mapping[Node, Sequence[Node]]) -> list[Node]:
    """Follows blocked dependencies until a node comes twice; each blocked node has a blocked dependency."""
    trail: list[Node] = []
    node = next(iter(blocked))
    while node not in trail:
        trail.append(node)
        node = next(other for other in blocked[node] if other in blocked)
    return [*trail[trail.index(node) :], node]
