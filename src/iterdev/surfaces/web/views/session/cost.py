"""W11: what a session has cost, over time, by role, by agent and by task."""

from collections.abc import Sequence

from iterdev.core.views.history import Spent
from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page

WIDTH, HEIGHT = 900, 160


def page(request: PageRequest) -> Page:
    with request.session() as watched:
        view, cost = watched.view(room=0), watched.cost()
    values = {"view": view, "cost": cost, "line": _line(cost.over_time), "width": WIDTH, "height": HEIGHT}
    return session_page(request, view, "cost", "Cost", Part(name="cost", template="cost.html", values=values))


def _line(points: Sequence[Spent]) -> str:
    """The tokens in all, which rise at the end of an attempt; as points of SVG."""
    if not points or not points[-1].total.tokens:
        return ""
    begin, end, most = points[0].at, points[-1].at, points[-1].total.tokens
    span = max(end - begin, 1)
    found: list[str] = []
    before: float = HEIGHT
    for point in points:
        x, y = round((point.at - begin) / span * WIDTH, 1), round(HEIGHT - point.total.tokens / most * (HEIGHT - 8), 1)
        found += [f"{x:g},{before:g}", f"{x:g},{y:g}"]
        before = y
    return " ".join([f"0,{HEIGHT}", *found, f"{WIDTH},{before:g}"])
