"""W3: the tasks of a session, drawn by waves and as a list."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from iterdev.app.live.watch import SessionPicture
from iterdev.core.types import Phase, Status, TaskId
from iterdev.core.views.layout import Column, Layout
from iterdev.core.views.pages.task_list import TaskFilter
from iterdev.core.views.session import SessionView
from iterdev.core.views.tasks import TaskView
from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import past_page, session_page
from iterdev.surfaces.web.views.session.preview import TITLES

WIDTH, HEIGHT = 168, 46
"""Of the box of a task, in units of the picture, which are pixels at first."""
GAP_X, GAP_Y = 44, 14
MARGIN, HEADING = 6, 24
FOLDED_WIDTH = 120
CHARACTERS = 24
"""That fit into a box; the whole text is in the title."""
STYLES = {
    Status.pending: "pending",
    Status.in_progress: "running",
    Status.landing: "running",
    Status.completed: "done",
    Status.failed: "failed",
    Status.skipped: "skipped",
}


class Box(Struct, frozen=True, kw_only=True):
    task: TaskView
    style: str
    x: int
    y: int
    label: str
    note: str


class Heading(Struct, frozen=True, kw_only=True):
    x: int
    text: str
    folded: str = ""
    """What is not drawn of these waves."""


class Picture(Struct, frozen=True, kw_only=True):
    width: int
    height: int
    headings: tuple[Heading, ...]
    boxes: tuple[Box, ...]
    edges: tuple[str, ...]
    """Paths of SVG."""
    is_whole: bool


def page(request: PageRequest) -> Page:
    wanted = TaskFilter(
        status=request.query.get("status", ""), role=request.query.get("role", ""), text=request.query.get("q", "")
    )
    everything = request.query.get("all") == "1"
    at = request.number("at", 0)
    with request.session() as watched:
        last = watched.view(room=0).seq
        shown = watched.as_of(at) if at and at < last else watched
        view = shown.view(room=0)
        tasks = shown.tasks(wanted, request.number("page", 1))
        drawn = picture(shown, shown.layout(everything=everything), {task.id: task for task in tasks.tasks})
    values = {"view": view, "list": tasks, "statuses": list(Status), "styles": STYLES, "everything": everything}
    past = shown is not watched
    parts = (
        Part(name="picture", template="picture.html", values={"picture": drawn, "view": view}),
        Part(name="tasks", template="tasks.html", values=values),
    )
    if past:
        return past_page(request, view, last, "pipeline", *parts)
    acts = list(decisions(view)) if request.may_act else []
    end = Part(name="acts", template="session_acts.html", values={"view": view, "acts": acts, "titles": TITLES})
    return session_page(request, view, "pipeline", "", *parts, end)


def decisions(view: SessionView) -> Iterator[str]:
    """What can be done with a session whose work is over, beside what it needs."""
    if view.running:
        return
    if view.phase is Phase.archived:
        yield "reopen"
    elif view.phase is Phase.completed:
        yield from ("rollback", "export", "archive")
    if view.phase is Phase.archived or view.branch.accepted:
        yield "clean"


def style_of(task: TaskView) -> str:
    return "asks" if task.asks_for_more else STYLES[task.effective_status]


def picture(watched: SessionPicture, layout: Layout, known: Mapping[TaskId, TaskView]) -> Picture:
    """The place of everything; tasks whose view is not known yet are looked up."""
    places: dict[TaskId, tuple[int, int]] = {}
    headings, boxes = [], []
    x = MARGIN
    for column in layout.columns:
        headings.append(Heading(x=x, text=_heading(column), folded=_folded(column)))
        for row, task in enumerate(column.tasks):
            y = MARGIN + HEADING + row * (HEIGHT + GAP_Y)
            places[task] = x, y
            boxes.append(_box(known.get(task) or watched.task(task), x, y))
        x += (WIDTH if column.tasks else FOLDED_WIDTH) + GAP_X
    tallest = max((len(column.tasks) for column in layout.columns), default=0)
    return Picture(
        width=max(x - GAP_X, 0) + MARGIN,
        height=MARGIN + HEADING + max(tallest, 1) * (HEIGHT + GAP_Y),
        headings=tuple(headings),
        boxes=tuple(boxes),
        edges=tuple(_edges(layout, places)),
        is_whole=not any(column.omitted for column in layout.columns),
    )


def _heading(column: Column) -> str:
    return f"wave {column.first}" if column.first == column.last else f"waves {column.first}-{column.last}"


def _folded(column: Column) -> str:
    words = {Status.completed: "done", Status.in_progress: "running"}
    counts = (f"{count} {words.get(status, status)}" for status, count in column.omitted.items() if count)
    return ", ".join(counts)


def _box(task: TaskView, x: int, y: int) -> Box:
    return Box(task=task, style=style_of(task), x=x, y=y, label=_cut(task.id), note=_cut(_note(task)))


def _note(task: TaskView) -> str:
    verdict = task.result.notes.verdict.partition(",")[0]
    if task.effective_status is Status.completed and verdict:
        return f"{task.role} · {verdict}"
    return f"{task.role} · {task.agent}" if task.agent else task.role


def _cut(text: str) -> str:
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 1]}…"


def _edges(layout: Layout, places: Mapping[TaskId, tuple[int, int]]) -> Iterator[str]:
    for first, then in layout.edges:
        (x1, y1), (x2, y2) = places[first], places[then]
        start, end = (x1 + WIDTH, y1 + HEIGHT // 2), (x2, y2 + HEIGHT // 2)
        middle = max((end[0] - start[0]) // 2, GAP_X // 2)
        yield f"M{start[0]} {start[1]}C{start[0] + middle} {start[1]} {end[0] - middle} {end[1]} {end[0]} {end[1]}"
