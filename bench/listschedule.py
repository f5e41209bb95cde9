"""List scheduling: how long tasks take when no free place waits while a task is ready, and nothing else costs time.

The order of preference is that of the table, as in the beat engine.
"""

import heapq
from collections.abc import Iterable, Sequence

from msgspec import Struct


class Work(Struct, frozen=True, kw_only=True):
    id: str
    seconds: float
    deps: tuple[str, ...] = ()


def makespan(table: Sequence[Work], places: int) -> float:
    """Seconds from the first start to the last end; dependencies stand above those who wait for them."""
    rows = {work.id: row for row, work in enumerate(table)}
    missing = [len(work.deps) for work in table]
    followers: list[list[int]] = [[] for _ in table]
    for row, work in enumerate(table):
        for dep in work.deps:
            followers[rows[dep]].append(row)
    ready = [row for row, count in enumerate(missing) if not count]
    running: list[tuple[float, int]] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < places:
            row = heapq.heappop(ready)
            heapq.heappush(running, (now + table[row].seconds, row))
        now, ended = heapq.heappop(running)
        for follower in followers[ended]:
            missing[follower] -= 1
            if not missing[follower]:
                heapq.heappush(ready, follower)
    return now


def least(table: Sequence[Work], places: int) -> float:
    """What no schedule can beat: the longest chain, or all the work spread evenly over the places."""
    return max(_longest_chain(table), sum(work.seconds for work in table) / places)


def _longest_chain(table: Iterable[Work]) -> float:
    ends: dict[str, float] = {}
    for work in table:
        ends[work.id] = work.seconds + max((ends[dep] for dep in work.deps), default=0.0)
    return max(ends.values(), default=0.0)
