"""W4: every attempt along the time, with questions, rounds, pauses and the cost; and the same as a table."""

import time

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.views.history import AttemptOutcome, PastAttempt
from iterdev.core.views.timeline import Bar, Timeline, attempt_text
from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.rendering import tokens
from iterdev.surfaces.web.views.session.cost import step_line
from iterdev.surfaces.web.views.session.head import session_page

NAMES, WIDTH, LANE, HEAD = 190, 1000, 26, 40
"""Of the picture: the column of names, the axis, the height of a lane, and of the lines with marks and times."""
COST = 44
"""The height of the lane of the cost."""
NARROWEST = 3.0
STEP = 5.0
"""Seconds by which the end of a running attempt moves."""
WHOLE = "no"
"""The value of `fold` with which times without work are drawn too."""


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


class PauseRect(Struct, frozen=True, kw_only=True):
    x: float
    width: float
    y: int
    text: str


class Drawing(Struct, frozen=True, kw_only=True):
    width: int
    height: int
    lanes: tuple[tuple[str, int], ...]
    rects: tuple[Rect, ...]
    marks: tuple[tuple[float, str], ...]
    ticks: tuple[tuple[float, str], ...]
    breaks: tuple[tuple[float, str], ...]
    pause_lanes: tuple[tuple[str, int], ...]
    pauses: tuple[PauseRect, ...]
    cost: str
    """The points of a line; empty if no attempt told what it used."""
    cost_y: int
    tokens: int


def page(request: PageRequest) -> Page:
    folds, number = request.query.get("fold") != WHOLE, request.number("part", 0)
    with request.session() as watched:
        view, past, parts = watched.view(room=0), watched.history(), watched.sections()
        shown = parts[number - 1][1] if 0 < number <= len(parts) else past
        drawn = watched.timeline(shown, _step(), folds=folds)
    values = {
        "view": view,
        "drawing": drawing(drawn) if drawn.rows else None,
        "attempts": shown.attempts,
        "spans": [one for one in past.spans if one.text or one.kind != "wave"],
        "outcomes": list(AttemptOutcome),
        "parts": [name for name, _ in parts],
        "part": number,
        "folds": folds,
        "whole": WHOLE,
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
    providers = dict.fromkeys(pause.provider for pause in timeline.pauses)
    below = HEAD + len(lanes) * LANE
    pause_lanes = {name: below + place * LANE for place, name in enumerate(providers)}
    cost_y = below + len(pause_lanes) * LANE + 4
    used = timeline.cost[-1][1] if timeline.cost else 0
    return Drawing(
        width=NAMES + WIDTH + 10,
        height=cost_y + (COST if used else 0) + 4,
        lanes=tuple(lanes),
        rects=tuple(
            Rect(bar=bar, x=_x(bar.begin), width=_width(bar.begin, bar.end), y=y + 4, text=_facts(bar.attempt))
            for row, (_, y) in zip(timeline.rows, lanes, strict=True)
            for bar in row.bars
        ),
        marks=tuple((_x(mark.at), mark.text) for mark in timeline.marks),
        ticks=tuple((_x(tick.at), tick.text) for tick in timeline.ticks),
        breaks=tuple((_x(cut.at), cut.text) for cut in timeline.breaks),
        pause_lanes=tuple(pause_lanes.items()),
        pauses=tuple(
            PauseRect(
                x=_x(pause.begin),
                width=_width(pause.begin, pause.end),
                y=pause_lanes[pause.provider] + 8,
                text=f"{pause.provider} was not asked: {pause.text}",
            )
            for pause in timeline.pauses
        ),
        cost=_cost_line(timeline, cost_y) if used else "",
        cost_y=cost_y,
        tokens=used,
    )


def _facts(attempt: PastAttempt) -> str:
    """What the pointer or the keyboard finds at a bar."""
    facts = [attempt_text(attempt), f"on {attempt.base[:10]}"]
    facts += [f"commit {attempt.commit[:10]}"] if attempt.commit else []
    facts += [f"{tokens(attempt.usage.tokens)} tokens"] if attempt.usage.tokens else []
    return "; ".join(facts)


def _cost_line(timeline: Timeline, top: int) -> str:
    return step_line(timeline.cost, left=NAMES, width=WIDTH, bottom=top + COST - 4, height=COST - 8)


def _x(place: float) -> float:
    return round(NAMES + place * WIDTH, 1)


def _width(begin: float, end: float) -> float:
    return max(round((end - begin) * WIDTH, 1), NARROWEST)
