"""W4: every attempt along the time, with questions, rounds and rollbacks; and the same as a table."""

import time

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.views.history import AttemptOutcome
from iterdev.core.views.timeline import Bar, Timeline, attempt_text
from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page

NAMES, WIDTH, LANE, HEAD = 190, 1000, 26, 40
"""Of the picture: the column of names, the axis, the height of a lane, and of the lines with marks and times."""
NARROWEST = 3.0
STEP = 5.0
"""Seconds by which the end of a running attempt moves."""


class Rect(Struct, frozen=True, kw_only=True):
    bar: Bar
    x: float
    width: float
    y: int
    text: str

    @property
    def style(self) -> str:
        undone = " undone" if self.bar.attempt.undone_at is not None else ""
        return f"{self.bar.attempt.outcome}{undone}"


class Drawing(Struct, frozen=True, kw_only=True):
    width: int
    height: int
    lanes: tuple[tuple[str, int], ...]
    rects: tuple[Rect, ...]
    marks: tuple[tuple[float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    breaks: tuple[tuple[float, str], ...]


def page(request: PageRequest) -> Page:
    with request.session() as watched:
        view, drawn, past = watched.view(room=0), watched.timeline(_step()), watched.history()
    values = {
        "view": view,
        "drawing": drawing(drawn) if drawn.rows else None,
        "attempts": past.attempts,
        "spans": [one for one in past.spans if one.text or one.kind != "wave"],
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
    lanes = [(row.task, HEAD + place * LANE) for place, row in enumerate(timeline.rows)]
    return Drawing(
        width=NAMES + WIDTH + 10,
        height=HEAD + len(lanes) * LANE + 8,
        lanes=tuple(lanes),
        rects=tuple(
            Rect(
                bar=bar,
                x=_x(bar.begin),
                width=max(round((bar.end - bar.begin) * WIDTH, 1), NARROWEST),
                y=y + 4,
                text=attempt_text(bar.attempt),
            )
            for row, (_, y) in zip(timeline.rows, lanes, strict=True)
            for bar in row.bars
        ),
        marks=tuple((_x(mark.at), mark.text) for mark in timeline.marks),
        ticks=tuple((_x(tick.at), tick.text) for tick in timeline.ticks),
        breaks=tuple((_x(cut.at), cut.text) for cut in timeline.breaks),
    )


def _x(place: float) -> float:
    return round(NAMES + place * WIDTH, 1)
