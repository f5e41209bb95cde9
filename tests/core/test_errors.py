"""Errors for people."""

from iterdev.core.errors import TEXT_LIMIT, UserError


def test_a_long_value_is_cut_and_the_sentence_goes_on() -> None:
    error = UserError(f'There is no session "{"x" * 100_000}" in "here"', hint="iterdev sessions")

    assert error.message == f'There is no session "{"x" * 200}…" in "here"'


def test_a_value_at_the_limit_is_left_alone() -> None:
    message = f'There is no role "{"x" * 200}"'

    assert UserError(message).message == message


def test_a_very_long_message_and_a_very_long_hint_are_cut() -> None:
    error = UserError("problem; " * 10_000, hint="one of: " + "name, " * 10_000)

    assert (len(error.message), len(error.hint)) == (TEXT_LIMIT + 1, TEXT_LIMIT + 1)
