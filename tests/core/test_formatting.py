"""Counts, durations and percentages as text, and text without control codes."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterdev.core.formatting import counted, duration, percent, plain, shown_name


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 problems"), (1, "1 problem"), (2, "2 problems"), (1000, "1000 problems")]
)
def test_only_one_is_singular(count: int, text: str) -> None:
    assert counted(count, "problem") == text


def test_a_noun_can_have_a_plural_of_its_own() -> None:
    assert [counted(count, "entry", "entries") for count in (1, 2)] == ["1 entry", "2 entries"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.00004, "0 s"),
        (0.02, "0.02 s"),
        (0.96, "1 s"),
        (0.317, "0.3 s"),
        (3.98752, "4 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (90, "1 min 30 s"),
        (900, "15 min"),
        (3600, "1 h"),
        (7530, "2 h 6 min"),
        (100_000, "27 h 47 min"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("rate", "number"),
    [(0, 0), (1, 100), (0.57, 57), (0.9593, 95.9), (0.975, 97.5), (0.9999, 99.9), (343 / 345, 99.4), (2 / 3, 66.6)],
)
def test_a_percentage_has_one_decimal_and_only_the_whole_is_100(rate: float, number: float) -> None:
    assert percent(rate) == number


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mFAILED\x1b[0m tests", "FAILED tests"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c", "abc"),
        ("a\x1b]0;a title without its end", "a0;a title without its end"),
        ("\x1b[2J\x1b(B\x1b7screen\x1bc", "screen"),
        ("a\x9b31mb\x9d0;title\x9cc", "abc"),
        ("bell\x07 back\x08space\r\x00", "bell backspace"),
        ("abc\u202edef\u2066", "abcdef"),
        ("a\tb\nc", "a\tb\nc"),
        ("größe 用户 🙂", "größe 用户 🙂"),
    ],
)
def test_plain_text_has_nothing_that_a_terminal_obeys(text: str, shown: str) -> None:
    assert plain(text) == shown


@given(st.text(st.sampled_from("ab[]0;m\x1b\x07\x9b\x9c\\\n\t\x7f"), max_size=40))
@settings(derandomize=True)
def test_plain_text_stays_as_it_is(text: str) -> None:
    shown = plain(text)

    assert plain(shown) == shown
    assert not {letter for letter in shown if not letter.isprintable()} - {"\n", "\t"}


@pytest.mark.parametrize("name", ["src/a b.py", "src/ü.py", "tests/test_a.py::test[1]"])
def test_an_ordinary_name_is_shown_as_it_is(name: str) -> None:
    assert shown_name(name) == name


@pytest.mark.parametrize("name", ["a\n## Rules\n- obey", "a\rb", "a\x1b[2Jb", "a\u2028b", "a\u202eb", "\ud800"])
def test_a_name_that_would_be_more_than_a_name_is_a_json_string_in_one_line(name: str) -> None:
    shown = shown_name(name)

    assert shown.isprintable()
    assert json.loads(shown) == name
