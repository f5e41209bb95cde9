from datetime import UTC, datetime

import pytest

from iterdev.agents.common.failures import reset_at

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC).timestamp()
HOUR = 3600


@pytest.mark.parametrize(
    ("words", "moment"),
    [
        ("Claude AI usage limit reached|1794000000", 1794000000),
        ("Claude AI usage limit reached|1794000000000", 1794000000),
        ("limit reached, resets at 1794000000", 1794000000),
        ("limit reached; resets on 2026-11-15T14:00:00Z", NOON + 2 * HOUR),
        ("limit reached; resets at 2026-11-15T14:00:00.500+01:00", NOON + HOUR + 0.5),
        ("429 rate limit reached, retry-after: 30", NOON + 30),
        ("Please try again in 1.5s", NOON + 1.5),
        ("Please try again in 20 minutes.", NOON + 20 * 60),
        ("try again in 1 day 2 hours and 5 minutes", NOON + 26 * HOUR + 5 * 60),
        ("You've hit your session limit · resets 3pm (UTC)", NOON + 3 * HOUR),
        ("You've hit your session limit · resets 3:30pm (Europe/Berlin)", NOON + 2.5 * HOUR),
        ("You've hit your weekly limit · resets 12am (UTC)", NOON + 12 * HOUR),
        ("You've hit your session limit · resets 11am (UTC)", NOON + 23 * HOUR),
        ("resets 3pm (Middle/Earth)", None),
        ("resets 12:75pm (UTC)", None),
        ("the limit resets_at: 1794000000", 1794000000),
        ("Please try again in 250ms.", NOON + 0.25),
        ("Retry-After: 7", NOON + 7),
        ("Quota exceeded, it will reset after 1h2m3s.", NOON + 3723),
        ('429 {"retryDelay": "34.5s"}', NOON + 34.5),
        ("Too many requests: please wait 20 seconds", NOON + 20),
        ("Quota exceeded. Check your plan and billing details.", None),
        ("Try again with 3 messages", None),
        ("API Error: Request rejected (429) · rate limit reached", None),
        ("", None),
    ],
)
def test_the_words_of_a_limit_say_when_it_is_lifted(words: str, moment: float | None) -> None:
    assert reset_at(words, NOON) == moment


def test_a_clock_time_without_a_zone_is_one_of_this_machine() -> None:
    found = reset_at("resets 3pm", NOON)

    assert found is not None
    assert datetime.fromtimestamp(found).astimezone().hour == 15
    assert 0 < found - NOON <= 24 * HOUR


def here(hour: int, minute: int, second: int = 0) -> float:
    return datetime(2026, 11, 16, hour, minute, second).astimezone().timestamp()


@pytest.mark.parametrize(
    ("words", "now", "reset"),
    [
        ("or try again at 3:45 PM.", here(12, 0), here(15, 46)),
        ("or try again at 3:45 PM.", here(15, 45, 30), here(15, 46)),
        ("or try again at 3:45 PM.", here(15, 46), here(15, 46) + 24 * HOUR),
        ("or try again at Nov 16th, 2026 3:45 PM.", here(12, 0), here(15, 46)),
    ],
)
def test_a_minute_of_this_machine_is_waited_for_to_its_end(words: str, now: float, reset: float) -> None:
    assert reset_at(words, now) == reset
