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
    """The tokens in all, from the first attempt that used some to the last one."""
    if not points or not points[-1].total.tokens:
        return ""
    begin, span = points[0].at, max(points[-1].at - points[0].at, 1)
    placed = [((one.at - begin) / span, one.total.tokens) for one in points]
    return step_line(placed, left=0, width=WIDTH, bottom=HEIGHT, height=HEIGHT - 8)


def step_line(points: Sequence[tuple[float, int]], *, left: int, width: int, bottom: int, height: int) -> str:
    """A line that rises at each point to its value, of which the last is the largest; as points of SVG."""
    found, before = [f"{left},{bottom}"], float(bottom)
    for at, value in points:
        x, y = round(left + at * width, 1), round(bottom - value / points[-1][1] * height, 1)
        found += [f"{x:g},{before:g}", f"{x:g},{y:g}"]
        before = y
    return " ".join([*found, f"{left + width},{before:g}"])
