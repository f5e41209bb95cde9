"""The past of a session along an axis of time, on which long times without any work are folded.

Positions are parts of the axis, from 0 to 1; what draws them multiplies by its own width.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from msgspec import Struct

from iterdev.core.types import TaskId
from iterdev.core.views.history import AttemptOutcome, History, PastAttempt, Span, SpanKind, spending

IDLE = 120.0
"""Seconds without work that are folded."""
FOLDED = 0.03
"""The part of the axis that a fold takes."""
TICKS = 6
"""About how many times are written along the axis."""
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)


class Bar(Struct, frozen=True, kw_only=True):
    attempt: PastAttempt
    begin: float
    end: float

    @property
    def seconds(self) -> float | None:
        ended = self.attempt.ended_at
        return None if ended is None else ended - self.attempt.started_at


class Lane(Struct, frozen=True, kw_only=True):
    """One task with all its attempts."""

    task: TaskId
    bars: tuple[Bar, ...]


class Mark(Struct, frozen=True, kw_only=True):
    """Something beside the attempts."""

    span: Span
    begin: float
    end: float


class Tick(Struct, frozen=True):
    at: float
    seconds: float
    """Since the beginning."""


class Fold(Struct, frozen=True):
    begin: float
    end: float
    seconds: float
    """How long nothing was done."""


class CostPoint(Struct, frozen=True):
    at: float
    tokens: int
    cost_usd: float


class Timeline(Struct, frozen=True, kw_only=True):
    lanes: tuple[Lane, ...]
    """In the order in which the tasks were started."""
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    folds: tuple[Fold, ...]
    cost: tuple[CostPoint, ...]
    begun_at: float
    ended_at: float


def timeline(history: History, now: float, *, fold_idle: bool = True) -> Timeline | None:
    """None if nothing was tried yet; an attempt that runs lasts until now."""
    if not history.attempts:
        return None
    begun = min(one.started_at for one in history.attempts)
    ended = max([*(_end(one, now) for one in history.attempts), begun + 1])
    axis = _Axis(begun, ended, list(_idle(history.attempts, now)) if fold_idle else [])
    order = dict.fromkeys(map(attrgetter("task"), history.attempts))
    by_task: dict[TaskId, list[PastAttempt]] = {task: [] for task in order}
    for one in history.attempts:
        by_task[one.task].append(one)
    kinds = {SpanKind.question, SpanKind.pause, SpanKind.milestone, SpanKind.rollback}
    return Timeline(
        lanes=tuple(
            Lane(
                task=task,
                bars=tuple(
                    Bar(attempt=one, begin=axis.place(one.started_at), end=axis.place(_end(one, now)))
                    for one in by_task[task]
                ),
            )
            for task in order
        ),
        marks=tuple(
            Mark(
                span=one, begin=axis.place(one.begun_at), end=axis.place(now if one.ended_at is None else one.ended_at)
            )
            for one in history.spans
            if one.kind in kinds
        ),
        ticks=tuple(axis.ticks()),
        folds=tuple(axis.folds),
        cost=tuple(CostPoint(axis.place(one.at), one.total.tokens, one.total.cost_usd) for one in spending(history)),
        begun_at=begun,
        ended_at=ended,
    )


def _end(attempt: PastAttempt, now: float) -> float:
    if attempt.ended_at is not None:
        return attempt.ended_at
    return max(now, attempt.started_at) if attempt.outcome is AttemptOutcome.running else attempt.started_at


def _idle(attempts: Iterable[PastAttempt], now: float) -> Iterator[tuple[float, float]]:
    """Times between attempts that are long enough to be folded."""
    latest: float | None = None
    for one in sorted(attempts, key=attrgetter("started_at")):
        if latest is not None and one.started_at - latest > IDLE:
            yield latest, one.started_at
        latest = max(latest or one.started_at, _end(one, now))


class _Axis:
    def __init__(self, begun: float, ended: float, idle: Sequence[tuple[float, float]]) -> None:
        self._begun, self._ended, self._idle = begun, ended, idle
        worked = (ended - begun) - sum(end - begin for begin, end in idle)
        self._scale = (1 - FOLDED * len(idle)) / worked if worked > 0 and FOLDED * len(idle) < 1 else 0.0
        self.folds = [Fold(self.place(begin), self.place(end), end - begin) for begin, end in idle]

    def place(self, at: float) -> float:
        position, reached = 0.0, self._begun
        for begin, end in self._idle:
            if at <= begin:
                break
            position += (begin - reached) * self._scale
            position += FOLDED * min((at - begin) / (end - begin), 1)
            reached = end
        position += max(min(at, self._ended) - reached, 0) * self._scale
        return min(max(position, 0.0), 1.0)

    def ticks(self) -> Iterator[Tick]:
        worked = 1 / self._scale if self._scale else 1.0
        step = next((one for one in STEPS if worked / one <= TICKS), STEPS[-1])
        last = -1.0
        count = int((self._ended - self._begun) // step) + 1
        # A session of many days has more steps than an axis has room for.
        for number in range(min(count, 100_000)):
            seconds = number * step
            at = self.place(self._begun + seconds)
            if not self._is_folded(self._begun + seconds) and at - last >= 1 / (2 * TICKS):
                last = at
                yield Tick(at, seconds)

    def _is_folded(self, at: float) -> bool:
        return any(begin < at < end for begin, end in self._idle)
