from datetime import UTC, datetime

import pytest

from iterdev.agents.claude_events import Ended
from iterdev.agents.claude_troubles import kind_of, provider_wait, reset_at
from iterdev.agents.contract import TroubleKind

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


@pytest.mark.parametrize(
    ("status", "milliseconds", "wait"),
    [(429, 1000, 1), (429, 20000, 20), (429, 551, None), (429, 1103, None), (429, 0, None), (529, 1000, None)],
)
def test_only_a_wait_in_whole_seconds_comes_from_the_provider(
    status: int, milliseconds: float, wait: float | None
) -> None:
    assert provider_wait(status, milliseconds) == wait


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [
        (401, "Invalid API key · Fix external API key", TroubleKind.not_logged_in),
        (403, "Your account does not have access", TroubleKind.not_logged_in),
        (None, "Not logged in · Please run /login", TroubleKind.not_logged_in),
        (None, "OAuth token has expired", TroubleKind.not_logged_in),
        (429, "API Error: Request rejected (429)", TroubleKind.limited),
        (None, "You've hit your session limit · resets 3pm", TroubleKind.limited),
        (None, "Claude AI usage limit reached|1794000000", TroubleKind.limited),
        (500, "API Error: 500 boom", TroubleKind.overloaded),
        (529, "API Error: 529 overloaded", TroubleKind.overloaded),
        (None, "API Error: Connection error.", TroubleKind.overloaded),
        (400, "Prompt is too long · the request is ~250000 tokens", TroubleKind.too_long),
        (413, "Request too large", TroubleKind.too_long),
        (400, "Credit balance is too low", TroubleKind.over_budget),
        (404, "There's an issue with the selected model (nonesuch)", TroubleKind.crashed),
        (None, "No conversation found with session ID: 2222", TroubleKind.crashed),
    ],
)
def test_a_failure_is_known_by_its_status_and_then_by_its_words(
    status: int | None, words: str, kind: TroubleKind
) -> None:
    assert kind_of(Ended(is_error=True, subtype="success", api_error_status=status, result=words)) is kind


def test_the_end_of_a_budget_and_of_the_context_are_known_by_the_reasons_given() -> None:
    assert kind_of(Ended(is_error=True, subtype="error_max_budget_usd")) is TroubleKind.over_budget
    assert kind_of(Ended(is_error=True, terminal_reason="prompt_too_long")) is TroubleKind.too_long
