"""The tasks of a session as a list: those that fit a filter, and of many one page."""

from datetime import tzinfo

from msgspec import Struct

from iterdev.core.ids import ZONE
from iterdev.core.session.state import State
from iterdev.core.types import Status, TaskId
from iterdev.core.views.tasks import TaskView, task_view
from iterdev.core.views.team import TeamViews

SIZE = 200
"""Tasks of a page."""


class TaskFilter(Struct, frozen=True, kw_only=True):
    """What is empty fits every task."""

    status: str = ""
    role: str = ""
    text: str = ""
    """A part of the id or of the title, in letters of any case."""


class TaskList(Struct, frozen=True, kw_only=True):
    tasks: tuple[TaskView, ...]
    """By wave."""
    filter: TaskFilter
    matching: int
    total: int
    page: int
    pages: int
    roles: tuple[str, ...]
    """Those that there are."""


def task_list(
    state: State,
    team: TeamViews,
    wanted: TaskFilter,
    page: int = 1,
    *,
    engine_alive: bool = True,
    zone: tzinfo = ZONE,
) -> TaskList:
    tasks = state.tasks
    found = sorted(
        (task for task in tasks.order if _fits(state, task, wanted)),
        key=lambda task: (tasks.plan[task].wave, tasks.order[task]),
    )
    pages = max(-(-len(found) // SIZE), 1)
    shown = min(max(page, 1), pages)
    return TaskList(
        tasks=tuple(
            task_view(state, team, task, engine_alive=engine_alive, zone=zone)
            for task in found[(shown - 1) * SIZE : shown * SIZE]
        ),
        filter=wanted,
        matching=len(found),
        total=len(tasks.order),
        page=shown,
        pages=pages,
        roles=tuple(dict.fromkeys(row.role for row in tasks.plan.values())),
    )


def _fits(state: State, task: TaskId, wanted: TaskFilter) -> bool:
    row, text = state.tasks.plan[task], wanted.text.casefold()
    return (
        (not wanted.status or state.tasks.status(task) is _STATUSES.get(wanted.status))
        and (not wanted.role or row.role == wanted.role)
        and (not text or text in task.casefold() or text in row.title.casefold())
    )


_STATUSES = {status.value: status for status in Status}
