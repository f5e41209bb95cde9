"""What a person means by an answer."""

import pytest

from iterdev.core.session.gates import meant

PLAN = ("approve", "edit", "reject")
WAVE = ("abort", "retry")
BUDGET = ("stop", "go-on")
COMPLETION = ("accept", "diff", "archive", "keep", "export")
PIPELINE = ("approve", "patch", "sprint", "multi-sprint")


@pytest.mark.parametrize(
    ("options", "word", "option"),
    [
        (PLAN, "approve", "approve"),
        (PLAN, " Approve ", "approve"),
        (PLAN, "2", "edit"),
        (PLAN, "0", None),
        (PLAN, "4", None),
        (PLAN, "9" * 5000, None),
        (PLAN, "²", None),
        (PLAN, "y", "approve"),
        (PLAN, "yes", "approve"),
        (PLAN, "accept", "approve"),
        (PLAN, "n", "reject"),
        (PLAN, "no", "reject"),
        (PLAN, "abort", "reject"),
        (PLAN, "e", "edit"),
        (PLAN, "r", "reject"),
        (PLAN, "", None),
        (WAVE, "y", "retry"),
        (WAVE, "n", "abort"),
        (WAVE, "abort", "abort"),
        (BUDGET, "yes", "go-on"),
        (BUDGET, "no", "stop"),
        (COMPLETION, "y", "accept"),
        (COMPLETION, "n", "keep"),
        (COMPLETION, "ac", "accept"),
        (COMPLETION, "a", None),
        (COMPLETION, "d", "diff"),
        (PIPELINE, "y", "approve"),
        (PIPELINE, "n", None),
        (PIPELINE, "multi", "multi-sprint"),
        (PIPELINE, "waterfall", None),
    ],
)
def test_a_word_its_number_its_beginning_and_yes_or_no_are_understood(
    options: tuple[str, ...], word: str, option: str | None
) -> None:
    assert meant(options, word) == option
