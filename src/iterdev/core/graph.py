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
    missing = {node: len(wanted) for node, wanted in dependencies.items()}
    waiting = dependants(dependencies)
    depth: dict[Node, int] = {}
    level = [node for node, count in missing.items() if not count]
    number = 0
    while level:
        number += 1
        reached: list[Node] = []
        for node in level:
            depth[node] = number
            for follower in waiting[node]:
                missing[follower] -= 1
                if not missing[follower]:
                    reached.append(follower)
        level = reached
    if len(depth) < len(dependencies):
        raise CycleError(_cycle({node: dependencies[node] for node in dependencies if node not in depth}))
    return depth


def dependants(dependencies: Mapping[Node, Sequence[Node]]) -> dict[Node, list[Node]]:
    """Who waits for each node."""
    waiting: dict[Node, list[Node]] = {node: [] for node in dependencies}
    for node, wanted in dependencies.items():
        for other in wanted:
            waiting[other].append(node)
    return waiting


def _cycle(stuck: Mapping[Node, Sequence[Node]]) -> list[Node]:
    """Follows blocked dependencies until a node comes twice; each stuck node has a stuck dependency."""
    trail: list[Node] = []
    node = next(iter(stuck))
    while node not in trail:
        trail.append(node)
        node = next(other for other in stuck[node] if other in stuck)
    return [*trail[trail.index(node) :], node]
