"""The time line of a session: all attempts on one axis, as a value that surfaces draw, and as SVG for the report.

Time in which nothing ran is cut out: a session that waited overnight for an answer would be a picture of the night.
"""

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import count, pairwise, takewhile

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.formatting import duration, one_line
from iterdev.core.types import TaskId
from iterdev.core.views.history import AttemptOutcome, History, PastAttempt, Span, SpanKind, spending

IDLE = 120.0
"""Seconds; a longer time in which nothing ran is drawn as a break."""
BREAK = 0.03
"""The width of a break, as a part of the time that is shown."""
TICKS = 8
"""The most ticks that the axis has."""
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
"""Seconds between two ticks."""
BEGINNING = "the beginning"
"""What came before the first milestone."""
MARKED = {SpanKind.milestone, SpanKind.rollback, SpanKind.question}
"""What is marked on the axis, beside the attempts."""


class Bar(Struct, frozen=True, kw_only=True):
    """One attempt; positions are parts of the whole width."""

    attempt: PastAttempt
    begin: float
    end: float


class Row(Struct, frozen=True, kw_only=True):
    task: TaskId
    bars: tuple[Bar, ...]


class Mark(Struct, frozen=True, kw_only=True):
    """A point on the axis: a tick, the beginning of a round, a question, or a break with what was cut out."""

    at: float
    text: str


class Pause(Struct, frozen=True, kw_only=True):
    """A time in which a provider was not asked."""

    provider: str
    begin: float
    end: float
    text: str


class Timeline(Struct, frozen=True, kw_only=True):
    seq: int
    """The last entry of the journal that it shows."""
    rows: tuple[Row, ...] = ()
    """In the order in which the tasks were first started."""
    ticks: tuple[Mark, ...] = ()
    """The time since the first attempt, at regular steps."""
    marks: tuple[Mark, ...] = ()
    breaks: tuple[Mark, ...] = ()
    """Where time was cut out, and how much."""
    pauses: tuple[Pause, ...] = ()
    cost: tuple[tuple[float, int], ...] = ()
    """The tokens in all, at the end of each attempt that used some: where it is on the axis, and how many."""


def timeline(history: History, now: float, *, folds: bool = True) -> Timeline:
    """All attempts up to now; those that run have no end yet. `folds`: long times in which nothing ran are cut out."""
    if not history.attempts:
        return Timeline(seq=history.seq)
    axis = _Axis([(one.started_at, one.ended_at or now) for one in history.attempts], IDLE if folds else None)
    rows: dict[TaskId, list[Bar]] = {}
    for one in history.attempts:
        bar = Bar(attempt=one, begin=axis.position(one.started_at), end=axis.position(one.ended_at or now))
        rows.setdefault(one.task, []).append(bar)
    marked = (span for span in history.spans if span.kind in MARKED and axis.begin <= span.begun_at <= axis.end)
    return Timeline(
        seq=history.seq,
        rows=tuple(Row(task=task, bars=tuple(bars)) for task, bars in rows.items()),
        ticks=tuple(axis.ticks()),
        marks=tuple(Mark(at=axis.position(span.begun_at), text=_words(span.kind, span.name)) for span in marked),
        breaks=tuple(axis.breaks()),
        pauses=tuple(_pauses(history.spans, axis)),
        cost=tuple((axis.position(one.at), one.total.tokens) for one in spending(history)),
    )


def sections(history: History) -> tuple[tuple[str, History], ...]:
    """The history in parts, from one milestone to the next, such as fix rounds; without those in which nothing ran."""
    begun = [(span.name, span.begun_at) for span in history.spans if span.kind is SpanKind.milestone]
    bounds = [(BEGINNING, float("-inf")), *begun, ("", float("inf"))]
    parts = (
        (name, replace(history, attempts=tuple(one for one in history.attempts if begin <= one.started_at < end)))
        for (name, begin), (_, end) in pairwise(bounds)
    )
    return tuple((name, part) for name, part in parts if part.attempts)


def _pauses(spans: Iterable[Span], axis: "_Axis") -> Iterator[Pause]:
    for span in spans:
        end = axis.end if span.ended_at is None else min(span.ended_at, axis.end)
        if span.kind is SpanKind.pause and span.begun_at < axis.end and end > axis.begin:
            begin = axis.position(span.begun_at)
            yield Pause(provider=span.name, begin=begin, end=axis.position(end), text=span.text)


def _words(kind: SpanKind, name: str) -> str:
    return name if kind is SpanKind.milestone else f"{kind} {name}"


class _Axis:
    """Points in time, as parts of a width from which idle time is cut out."""

    def __init__(self, busy: Iterable[tuple[float, float]], longest: float | None) -> None:
        """`longest`: seconds in which nothing ran that are still shown; None if all are."""
        self._pieces: list[tuple[float, float]] = []
        for begin, end in sorted(busy):
            if self._pieces and (longest is None or begin - self._pieces[-1][1] <= longest):
                self._pieces[-1] = self._pieces[-1][0], max(end, self._pieces[-1][1])
            else:
                self._pieces.append((begin, end))
        shown = sum(end - begin for begin, end in self._pieces)
        self._gap = shown * BREAK
        self._whole = max(shown + self._gap * (len(self._pieces) - 1), 0.001)
        self._shown = shown

    @property
    def begin(self) -> float:
        return self._pieces[0][0]

    @property
    def end(self) -> float:
        return self._pieces[-1][1]

    def position(self, at: float) -> float:
        """A time that was cut out is where the next piece begins."""
        before = 0.0
        for begin, end in self._pieces:
            if at <= end:
                return (before + max(at - begin, 0)) / self._whole
            before += end - begin + self._gap
        return 1.0

    def ticks(self) -> Iterator[Mark]:
        """At whole steps since the beginning, where they are shown."""
        step = next((step for step in STEPS if self._shown / step <= TICKS), STEPS[-1])
        for begin, end in self._pieces:
            first = -int((self.begin - begin) // step)
            points = (self.begin + number * step for number in count(first))
            for at in takewhile(lambda at, end=end: at <= end, points):  # type: ignore[misc]
                yield Mark(at=self.position(at), text=clock_text(at - self.begin))

    def breaks(self) -> Iterator[Mark]:
        for (_, ended), (begun, _) in pairwise(self._pieces):
            yield Mark(at=self.position(begun) - self._gap / self._whole / 2, text=duration(begun - ended))


def clock_text(seconds: float) -> str:
    """A length of time as a clock shows it: "0:05", "12:30", "1:02:03"."""
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


WIDTH, LABEL, CHART, ROW, TOP, FOOT = 960, 190, 750, 24, 46, 34
"""Measures of the picture, in pixels."""
PATTERNS: Mapping[AttemptOutcome, str] = {
    AttemptOutcome.running: "running",
    AttemptOutcome.done: "done",
    AttemptOutcome.reported: "done",
    AttemptOutcome.failed: "failed",
    AttemptOutcome.unmet: "failed",
    AttemptOutcome.limited: "limited",
    AttemptOutcome.interrupted: "limited",
}
LEGEND = (("done", "done"), ("failed", "failed"), ("limited", "limited or interrupted"), ("running", "running"))
STYLE = """\
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2328 }
.muted { fill: #59636e } .page { fill: #ffffff } .line { stroke: #d1d9e0 }
.mark { stroke: #8250df } .mark-text { fill: #8250df }
.done { fill: #1a7f37 } .failed { fill: #cf222e } .limited { fill: #9a6700 } .running { fill: #0969da }
.undone { opacity: 0.45 } .number { fill: #ffffff; font-size: 11px }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .muted { fill: #9198a1 } .page { fill: #0d1117 } .line { stroke: #3d444d }
.mark { stroke: #ab7df8 } .mark-text { fill: #ab7df8 }
.done { fill: #238636 } .failed { fill: #da3633 } .limited { fill: #9e6a03 } .running { fill: #1f6feb }
}
"""


def timeline_svg(drawn: Timeline, title: str) -> str:
    """The picture: a row for each task, a bar for each attempt, and the facts of each where the pointer is."""
    height, named = TOP + len(drawn.rows) * ROW + FOOT, escape(one_line(title))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{named}">',
        f"<title>{named}</title><style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        *_axis_parts(drawn, height),
        *(part for place, row in enumerate(drawn.rows) for part in _row_parts(row, TOP + place * ROW)),
        *_legend_parts(drawn, height),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _x(at: float) -> float:
    return round(LABEL + at * CHART, 1)


def _axis_parts(drawn: Timeline, height: int) -> Iterator[str]:
    bottom = height - FOOT
    for tick in drawn.ticks:
        yield f'<line class="line" x1="{_x(tick.at)}" y1="{TOP - 8}" x2="{_x(tick.at)}" y2="{bottom}"/>'
        yield f'<text class="muted" x="{_x(tick.at)}" y="{TOP - 14}" text-anchor="middle">{tick.text}</text>'
    for cut in drawn.breaks:
        told = f"<title>nothing ran for {cut.text}</title>"
        yield f'<text class="muted" x="{_x(cut.at)}" y="{TOP - 2}" text-anchor="middle">{told}//</text>'
    for mark in drawn.marks:
        x = _x(mark.at)
        yield f'<line class="mark" x1="{x}" y1="{TOP - 28}" x2="{x}" y2="{bottom}" stroke-dasharray="3 3"/>'
        side = ' text-anchor="end"' if mark.at > 0.8 else ""
        yield f'<text class="mark-text" x="{x + (-4 if side else 4)}" y="{TOP - 30}"{side}>{escape(mark.text)}</text>'


def _row_parts(row: Row, top: int) -> Iterator[str]:
    yield f'<text x="{LABEL - 12}" y="{top + 16}" text-anchor="end">{escape(row.task)}</text>'
    for bar in row.bars:
        attempt = bar.attempt
        x, width = _x(bar.begin), round(max((bar.end - bar.begin) * CHART, 3), 1)
        undone = " undone" if attempt.undone_at is not None else ""
        yield f'<g class="{PATTERNS[attempt.outcome]}{undone}"><title>{escape(attempt_text(attempt))}</title>'
        yield f'<rect x="{x}" y="{top + 3}" width="{width}" height="{ROW - 6}" rx="3"/>'
        if len(row.bars) > 1 and width > 12:
            yield f'<text class="number" x="{x + 4}" y="{top + 16}">{attempt.number}</text>'
        yield "</g>"


def _legend_parts(drawn: Timeline, height: int) -> Iterator[str]:
    """Only what occurs, as words beside colours."""
    used = {PATTERNS[bar.attempt.outcome] for row in drawn.rows for bar in row.bars}
    x = LABEL
    for name, text in LEGEND:
        if name in used:
            yield f'<rect class="{name}" x="{x}" y="{height - 20}" width="12" height="12" rx="2"/>'
            yield f'<text class="muted" x="{x + 18}" y="{height - 10}">{text}</text>'
            x += 18 + len(text) * 8 + 24


def attempt_text(attempt: PastAttempt) -> str:
    """One attempt in one line: who, how long, and how it ended."""
    took = "" if attempt.ended_at is None else f", {duration(attempt.ended_at - attempt.started_at)}"
    error = f": {one_line(attempt.error)}" if attempt.error else ""
    undone = ", rolled back" if attempt.undone_at is not None else ""
    return f"{attempt.task} attempt {attempt.number}, {attempt.agent}{took}, {attempt.outcome}{undone}{error}"
