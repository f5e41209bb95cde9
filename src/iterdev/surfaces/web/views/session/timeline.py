"""W4: every attempt along the time, with questions, pauses, rounds and the cost; and the same as a table."""

import time

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.views.history import AttemptOutcome, SpanKind
from iterdev.core.views.pages.timeline import Bar, Timeline
from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page

NAMES, WIDTH, LANE, HEAD = 190, 1000, 26, 28
"""Of the picture: the column of names, the axis, the height of a lane, and of the line with the times."""
COST = 44
NARROWEST = 3.0
STEP = 5.0
"""Seconds by which the end of a running attempt moves; the browser gets a new picture when it does."""


class Rect(Struct, frozen=True, kw_only=True):
    bar: Bar
    x: float
    width: float
    y: int

    @property
    def style(self) -> str:
        undone = " undone" if self.bar.attempt.undone_at is not None else ""
        return f"{self.bar.attempt.outcome}{undone}"


class Line(Struct, frozen=True, kw_only=True):
    kind: SpanKind
    x: float
    width: float
    text: str


class Drawing(Struct, frozen=True, kw_only=True):
    width: int
    height: int
    lanes: tuple[tuple[str, int], ...]
    rects: tuple[Rect, ...]
    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, float], ...]
    folds: tuple[tuple[float, float, float], ...]
    cost: str
    """The points of a line."""
    cost_y: int


def page(request: PageRequest) -> Page:
    fold = request.query.get("fold") != "no"
    with request.session() as watched:
        view = watched.view(room=0)
        drawn = watched.timeline(_step(), fold_idle=fold)
    values = {
        "view": view,
        "timeline": drawn,
        "drawing": drawing(drawn) if drawn else None,
        "fold": fold,
        "outcomes": list(AttemptOutcome),
    }
    part = Part(name="timeline", template="timeline.html", values=values)
    made = session_page(request, view, "timeline", "Time line", part)
    return replace(made, changes_with=_step) if view.running else made


def _step() -> float:
    """The picture of a session at work changes in steps, so that it is not sent again for every second."""
    return time.time() // STEP * STEP


def drawing(timeline: Timeline) -> Drawing:
    """Where everything is, in units of the picture."""
    lanes = [(lane.task, HEAD + row * LANE) for row, lane in enumerate(timeline.lanes)]
    bottom = HEAD + len(lanes) * LANE
    most = max((point.tokens for point in timeline.cost), default=0)
    points = (
        [(_x(point.at), bottom + COST - (COST - 8) * point.tokens / most) for point in timeline.cost] if most else []
    )
    return Drawing(
        width=NAMES + WIDTH + 10,
        height=bottom + (COST + 8 if points else 8),
        lanes=tuple(lanes),
        rects=tuple(
            Rect(bar=bar, x=_x(bar.begin), width=max(round((bar.end - bar.begin) * WIDTH, 1), NARROWEST), y=y + 4)
            for lane, (_, y) in zip(timeline.lanes, lanes, strict=True)
            for bar in lane.bars
        ),
        lines=tuple(
            Line(
                kind=mark.span.kind,
                x=_x(mark.begin),
                width=round((mark.end - mark.begin) * WIDTH, 1),
                text=_text(mark.span.kind, mark.span.name, mark.span.text),
            )
            for mark in timeline.marks
        ),
        ticks=tuple((_x(tick.at), tick.seconds) for tick in timeline.ticks),
        folds=tuple(
            (_x(fold.begin), round((fold.end - fold.begin) * WIDTH, 1), fold.seconds) for fold in timeline.folds
        ),
        cost=" ".join(
            f"{x:g},{y:g}" for x, y in [(NAMES, bottom + COST), *_steps(points), (NAMES + WIDTH, points[-1][1])]
        )
        if points
        else "",
        cost_y=bottom,
    )


def _x(place: float) -> float:
    return round(NAMES + place * WIDTH, 1)


def _steps(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The cost rises at the end of an attempt, and not before."""
    found: list[tuple[float, float]] = []
    before = None
    for x, y in points:
        if before is not None:
            found.append((x, before))
        found.append((x, y))
        before = y
    return found


def _text(kind: SpanKind, name: str, text: str) -> str:
    match kind:
        case SpanKind.milestone:
            return name
        case SpanKind.rollback:
            return f"rolled back to before {name}"
        case SpanKind.pause:
            return f"{name} is paused: {text}"
        case _:
            return f"{kind} {name}: {text}"
