"""W1: what needs the user, what only waits, and what runs."""

from msgspec import Struct

from iterdev.core.types import Status
from iterdev.core.views.attention import NeedKind
from iterdev.core.views.pages.task_list import TaskFilter
from iterdev.core.views.session import SessionView
from iterdev.core.views.tasks import TaskView
from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.need_cards import need_cards

NEWEST = "newest"
NAMED = 6
"""Tasks of a running session that are named."""


class RunningSession(Struct, frozen=True, kw_only=True):
    view: SessionView
    tasks: tuple[TaskView, ...]


def page(request: PageRequest) -> Page:
    with request.sessions() as sessions:
        views = {need.session: sessions.session(need.session).view(room=0) for need in sessions.needs()}
        found = [card for need in sessions.needs() for card in need_cards([need], views[need.session])]
        alive = [line.summary.id for line in sessions.sessions() if line.running]
        running = []
        for name in alive:
            watched = sessions.session(name)
            at_work = watched.tasks(TaskFilter(status=Status.in_progress)).tasks[:NAMED]
            running.append(RunningSession(view=watched.view(room=0), tasks=at_work))
        is_empty = not sessions.sessions()
    if request.query.get("order") == NEWEST:
        found.sort(key=lambda card: card.need.since, reverse=True)
    values = {
        "cards": [card for card in found if card.need.kind is not NeedKind.paused],
        "waiting": [card for card in found if card.need.kind is NeedKind.paused],
        "running": running,
        "newest": request.query.get("order") == NEWEST,
        "is_empty": is_empty,
        "top": str(request.watching.top),
        "may_act": request.may_act,
    }
    part = Part(name="needs", template="needs.html", values=values)
    return Page(title="Needs you", place="needs", parts=(part,))
