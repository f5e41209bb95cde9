"""Which tasks are worth a line where there is no room for all of them."""

import heapq
from itertools import chain, islice

from iterdev.core.state import State
from iterdev.core.words import Status, TaskId


def excerpt(state: State, room: int) -> list[TaskId]:
    """As many tasks as there is room for, in the order of the table.

    First those under way, then those that failed; the rest of the room is for what was done last and what comes next.
    """
    if len(state.order) <= room:
        return list(state.order)
    failed = (task for task, progress in state.progress.items() if progress.status is Status.failed)
    urgent = list(islice(chain(state.running, state.landing, failed), room))
    left = room - len(urgent)
    following = _following(state, left - len(_done_last(state, left // 2)))
    done = _done_last(state, left - len(following))
    return sorted((*urgent, *following, *done), key=state.order.__getitem__)


def _following(state: State, count: int) -> list[TaskId]:
    """What is ready, in the order in which it will be started, and then what waits."""
    ready = heapq.nsmallest(count, state.ready, key=state.order.__getitem__)
    pending = (task for task, progress in state.progress.items() if progress.status is Status.pending)
    waiting = (task for task in pending if task not in state.ready)
    return [*ready, *islice(waiting, count - len(ready))]


def _done_last(state: State, count: int) -> list[TaskId]:
    done = ((progress.ended_at or 0, task) for task, progress in state.progress.items() if _is_done(progress.status))
    return [task for _, task in heapq.nlargest(count, done)]


def _is_done(status: Status) -> bool:
    return status in {Status.completed, Status.skipped}
