"""The time line: where attempts are on its axis, what is cut out, and its picture."""

from xml.etree import ElementTree as ET

import pytest
from tests.core.conftest import Story, done, reviewed_badly, task

from iterdev.core.limits.providers import ProviderPaused
from iterdev.core.results import Usage
from iterdev.core.session import events
from iterdev.core.session.gates import plan_gate
from iterdev.core.views.history import History, evolve
from iterdev.core.views.timeline import Timeline, attempt_text, clock_text, sections, timeline, timeline_svg
from iterdev.teams.development.team import DEVELOPMENT


def drawn(story: Story, *, folds: bool = True) -> Timeline:
    return timeline(evolve(History(), story.entries, DEVELOPMENT), story.now, folds=folds)


def two_attempts(pause: float) -> Story:
    """A task that failed after 30 seconds, and is tried again for 10 after a pause."""
    story = Story(task("DEV-001"))
    story.starts("DEV-001")
    story.now += 30
    story.ends("DEV-001", events.Failed(error="no <luck>"))
    story.now += pause
    story.starts("DEV-001")
    story.now += 10
    return story


def test_a_session_without_attempts_has_an_empty_time_line() -> None:
    assert drawn(Story(task("DEV-001"))).rows == ()


def test_attempts_are_where_they_happened() -> None:
    (row,) = drawn(two_attempts(pause=10)).rows

    assert [(bar.begin, bar.end) for bar in row.bars] == [(0, 0.6), (0.8, 1)]


def test_a_long_time_in_which_nothing_ran_is_cut_out() -> None:
    seen = drawn(two_attempts(pause=36_000))

    first, second = seen.rows[0].bars
    assert [cut.text for cut in seen.breaks] == ["10 h"]
    assert first.end == pytest.approx(30 / (40 * 1.03))
    assert first.end < seen.breaks[0].at < second.begin
    assert second.end == pytest.approx(1)


def test_a_long_time_in_which_nothing_ran_is_drawn_if_it_is_asked_for() -> None:
    seen = drawn(two_attempts(pause=36_000), folds=False)

    first, second = seen.rows[0].bars
    assert seen.breaks == ()
    assert (first.end, second.begin) == pytest.approx((30 / 36_040, 36_030 / 36_040))


def test_the_pause_of_a_provider_lasts_until_it_is_over_or_the_picture_ends() -> None:
    story = two_attempts(pause=10)
    begun = story.now - 25
    history = evolve(History(), story.entries, DEVELOPMENT)
    paused = [ProviderPaused("codex", until, "limit") for until in (begun + 10, begun + 10_000)]
    entries = [events.Entry(history.seq + number, begun, event) for number, event in enumerate(paused, 1)]

    seen = timeline(evolve(history, entries, DEVELOPMENT), story.now)

    assert [(one.provider, one.begin, one.end) for one in seen.pauses] == [("codex", 0.5, 0.7), ("codex", 0.5, 1)]


def test_the_cost_rises_at_the_end_of_each_attempt() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    for name, used in (("DEV-001", 100), ("DEV-002", 50)):
        story.starts(name)
        story.now += 10
        story.ends(name, events.Failed(error="no", usage=Usage(input_tokens=used)))

    assert drawn(story).cost == ((0.5, 100), (1, 150))


def test_a_history_is_shown_round_by_round() -> None:
    story = reviewed_badly()
    story.now += 1
    story.goes_on()
    story.does("DEV-fix-1")

    parts = sections(evolve(History(), story.entries, DEVELOPMENT))

    found = {name: [one.task for one in part.attempts] for name, part in parts}

    assert found["fix round 1"] == ["DEV-fix-1"]
    assert "DEV-fix-1" not in found["the beginning"]


def test_ticks_are_at_whole_steps_and_only_where_time_is_shown() -> None:
    near, far = (drawn(two_attempts(pause)) for pause in (10, 36_000))

    assert [tick.text for tick in near.ticks] == ["0:00", "0:10", "0:20", "0:30", "0:40", "0:50"]
    assert [tick.text for tick in far.ticks][-4:] == ["0:30", "10:00:30", "10:00:35", "10:00:40"]


def test_rounds_and_questions_are_marked() -> None:
    story = reviewed_badly()
    story.goes_on()
    story.happens(events.GateOpened(plan_gate()))

    assert [mark.text for mark in drawn(story).marks] == ["fix round 1", "question plan"]


def test_the_picture_is_xml_with_a_bar_for_each_attempt_and_escapes_what_others_wrote() -> None:
    picture = timeline_svg(drawn(two_attempts(pause=10)), 'a "<b>" title')

    root = ET.fromstring(picture)
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [
        'a "<b>" title',
        "DEV-001 attempt 1, mine, 30 s, failed: no <luck>",
        "DEV-001 attempt 2, mine, running",
    ]
    assert root.get("aria-label") == 'a "<b>" title'


def test_the_colours_of_a_picture_are_explained() -> None:
    root = ET.fromstring(timeline_svg(drawn(two_attempts(pause=10)), "title"))

    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"failed", "running"} <= set(texts)
    assert "done" not in texts


def test_an_attempt_that_was_rolled_back_says_so() -> None:
    story = Story(task("DEV-001"))
    story.does("DEV-001", done(commit="c1"))
    story.lands("DEV-001")
    story.rolls_back("DEV-001")

    (attempt,) = evolve(History(), story.entries, DEVELOPMENT).attempts

    assert attempt_text(attempt) == "DEV-001 attempt 1, mine, 0 s, done, rolled back"


@pytest.mark.parametrize(("seconds", "text"), [(-3, "0:00"), (59.9, "0:59"), (754, "12:34"), (3723, "1:02:03")])
def test_a_length_of_time_reads_like_a_clock(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text
