"""The past of a session along an axis of time."""

import pytest

from iterdev.core.results import Usage
from iterdev.core.types import TaskId
from iterdev.core.views.history import AttemptOutcome, History, PastAttempt, Span, SpanKind
from iterdev.core.views.pages.timeline import FOLDED, IDLE, timeline


def attempt(task: str, begin: float, end: float | None, number: int = 1, tokens: int = 0) -> PastAttempt:
    return PastAttempt(
        task=TaskId(task),
        number=number,
        agent="mine",
        base="",
        started_at=begin,
        ended_at=end,
        outcome=AttemptOutcome.running if end is None else AttemptOutcome.done,
        usage=Usage(input_tokens=tokens),
    )


def test_nothing_was_tried() -> None:
    assert timeline(History(), 10.0) is None


def test_attempts_are_placed_by_their_time_in_one_lane_for_each_task() -> None:
    history = History(attempts=(attempt("A", 0, 50), attempt("B", 50, 60), attempt("A", 60, 100, 2)))

    found = timeline(history, 1000.0)

    assert found
    assert [(lane.task, [(bar.begin, bar.end) for bar in lane.bars]) for lane in found.lanes] == [
        ("A", [(0.0, 0.5), (0.6, 1.0)]),
        ("B", [(0.5, 0.6)]),
    ]


def test_an_attempt_that_runs_lasts_until_now() -> None:
    found = timeline(History(attempts=(attempt("A", 0, 50), attempt("B", 50, None))), 100.0)

    assert found
    assert found.lanes[1].bars[0].end == 1.0
    assert found.lanes[1].bars[0].seconds is None


def test_a_long_time_without_work_takes_little_room_unless_it_is_wanted() -> None:
    history = History(attempts=(attempt("A", 0, 100), attempt("B", 100 + 9 * IDLE, 200 + 9 * IDLE)))

    folded, whole = timeline(history, 0.0), timeline(history, 0.0, fold_idle=False)

    assert folded
    assert whole
    (fold,) = folded.folds
    assert fold.end - fold.begin == pytest.approx(FOLDED)
    assert fold.seconds == 9 * IDLE
    assert folded.lanes[0].bars[0].end == pytest.approx((1 - FOLDED) / 2)
    assert whole.folds == ()
    assert not any(fold.begin < tick.at < fold.end for tick in folded.ticks)


@pytest.mark.parametrize("count", [1, 30, 40, 200])
def test_every_place_is_on_the_axis_also_with_many_folds(count: int) -> None:
    history = History(attempts=tuple(attempt(f"T{n}", n * 1000, n * 1000 + 10) for n in range(count)))

    found = timeline(history, 1e9)

    assert found
    places = [place for lane in found.lanes for bar in lane.bars for place in (bar.begin, bar.end)]
    assert all(0 <= place <= 1 for place in places)
    assert places == sorted(places)


def test_questions_and_the_cost_are_on_the_same_axis() -> None:
    span = Span(kind=SpanKind.question, name="plan", begun_at=20.0, ended_at=40.0, text="approve")
    wave = Span(kind=SpanKind.wave, name="1", begun_at=0.0)
    history = History(attempts=(attempt("A", 0, 50, tokens=5), attempt("B", 50, 100, tokens=7)), spans=(span, wave))

    found = timeline(history, 100.0)

    assert found
    assert [(mark.begin, mark.end) for mark in found.marks] == [(0.2, 0.4)]
    assert [(point.at, point.tokens) for point in found.cost] == [(0.5, 5), (1.0, 12)]
