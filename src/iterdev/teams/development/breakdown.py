"""The architect's breakdown: in which order its items are done, in which sprint, and by which developer's row."""

import math
from collections.abc import Sequence

from iterdev.teams.development.results import Design, WorkItem


def execution_order(items: Sequence[WorkItem]) -> list[WorkItem]:
    """Dependencies first, otherwise as the architect listed them; a circle keeps the listed order."""
    waiting = {item.id: item for item in items}
    done: list[WorkItem] = []
    while waiting:
        free = (item for item in waiting.values() if not any(dep in waiting for dep in item.dependencies))
        chosen = next(free, next(iter(waiting.values())))
        done.append(waiting.pop(chosen.id))
    return done


def towards(design: Design, goal: str) -> list[WorkItem]:
    """What has to be done to reach a milestone: everything that is not put into another one.

    A design that knows nothing of the milestone, or puts nothing into it, is all about it.
    """
    ordered = execution_order(design.tasks)
    if goal not in {milestone.title for milestone in design.milestones}:
        return ordered
    others = {item for milestone in design.milestones if milestone.title != goal for item in milestone.tasks}
    return [item for item in ordered if item.id not in others] or ordered


def rows_needed(items: Sequence[WorkItem], least: int, batch: int) -> int:
    """How many developer tasks the items take, one after the other."""
    return max(least, math.ceil(len(items) / batch))


def batch(items: Sequence[WorkItem], place: int, rows: int) -> Sequence[WorkItem]:
    """The items of one row among all rows of the sprint; every item belongs to exactly one of them."""
    size = math.ceil(len(items) / rows)
    return items[place * size : (place + 1) * size]
