"""What work that waits to land waits for: the landing queue in words."""

from collections.abc import Sequence

from iterdev.core.formatting import counted
from iterdev.core.rules.landings import waiting
from iterdev.core.session.state import State
from iterdev.core.types import TaskId

NAMED = 5
"""Tasks that a line names."""


def landing_note(state: State, task: TaskId) -> str:
    """What is done with the work now, or what it waits for; empty if it lands at once."""
    order, testing = waiting(state), state.landing_queue.testing
    if testing and task in testing.tasks:
        others = [other for other in testing.tasks if other != task]
        return f"is tested{f' together with {_names(others)}' if others else ''} on top of {testing.tip[:12]}"
    before = order[: order.index(task)] if task in order else []
    if not before:
        return ""
    return f"waits in the landing queue behind {_names(before)}, because {_reason(state, before)}"


def _reason(state: State, before: Sequence[TaskId]) -> str:
    queue, one = state.landing_queue, len(before) == 1
    whose = "its" if one else "their"
    if queue.failed and queue.failed.tip == state.branch.tip:
        failing = _names(queue.failed.tasks)
        return f"the tests fail with the work of {failing}, and which of it is to blame has to be found first"
    if queue.testing:
        return f"{'it' if one else 'they'} came first, and the tests of {_names(queue.testing.tasks)} are running"
    return f"{'it' if one else 'they'} came first, and {whose} work lands before"


def _names(tasks: Sequence[TaskId]) -> str:
    rest = len(tasks) - NAMED
    return ", ".join(tasks[:NAMED]) + (f" and {counted(rest, 'more task')}" if rest > 0 else "")
