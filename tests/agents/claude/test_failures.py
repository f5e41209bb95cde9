import pytest

from iterdev.agents.claude.protocol import TurnResult, failure_kind, provider_wait
from iterdev.core.limits.agent_failures import FailureKind


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
        (401, "Invalid API key · Fix external API key", FailureKind.not_logged_in),
        (403, "Your account does not have access", FailureKind.not_logged_in),
        (None, "Not logged in · Please run /login", FailureKind.not_logged_in),
        (None, "OAuth token has expired", FailureKind.not_logged_in),
        (429, "API Error: Request rejected (429)", FailureKind.limited),
        (None, "You've hit your session limit · resets 3pm", FailureKind.limited),
        (None, "Claude AI usage limit reached|1794000000", FailureKind.limited),
        (500, "API Error: 500 boom", FailureKind.overloaded),
        (529, "API Error: 529 overloaded", FailureKind.overloaded),
        (None, "API Error: Connection error.", FailureKind.overloaded),
        (400, "Prompt is too long · the request is ~250000 tokens", FailureKind.too_long),
        (413, "Request too large", FailureKind.too_long),
        (400, "Credit balance is too low", FailureKind.over_budget),
        (404, "There's an issue with the selected model (nonesuch)", FailureKind.crashed),
        (None, "No conversation found with session ID: 2222", FailureKind.crashed),
    ],
)
def test_a_failure_is_known_by_its_status_and_then_by_its_words(
    status: int | None, words: str, kind: FailureKind
) -> None:
    assert failure_kind(TurnResult(is_error=True, subtype="success", api_error_status=status, result=words)) is kind


def test_the_end_of_a_budget_and_of_the_context_are_known_by_the_reasons_given() -> None:
    assert failure_kind(TurnResult(is_error=True, subtype="error_max_budget_usd")) is FailureKind.over_budget
    assert failure_kind(TurnResult(is_error=True, terminal_reason="prompt_too_long")) is FailureKind.too_long
