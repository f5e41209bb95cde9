"""Lines that are broken between words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterdev.surfaces.cli.output.wrapping import wrapped

NAME = "ids-a-session-with-a-long-name-20261118"


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("short", ["short"]),
        ("one two three four five", ["one two three four", "  five"]),
        ("  one two three four five", ["  one two three four", "    five"]),
        ("path/that/is/longer/than/a/line and more", ["path/that/is/longer/than/a/line", "  and more"]),
        (f"Then: iterdev resume {NAME} --step", ["Then:", f"  iterdev resume {NAME} --step"]),
        ("undo it with: git revert -m 1 c0ffee", ["undo it with:", "  git revert -m 1 c0ffee"]),
        (f"  iterdev answer {NAME} plan approve", [f"  iterdev answer {NAME} plan approve"]),
        (f"go on with `iterdev resume {NAME}`, now", ["go on with", f"  `iterdev resume {NAME}`,", "  now"]),
        ("用户登录 用户登录 用户登录", ["用户登录 用户登录", "  用户登录"]),
        ("a  b", ["a  b"]),
        ("1  DEV  a title of some words", ["1  DEV  a title of", "        some words"]),
        ("a long first column  and words", ["a long first column", "  and words"]),
        ("", [""]),
    ],
)
def test_a_line_is_broken_between_words_and_commands_stay_whole(line: str, lines: list[str]) -> None:
    assert wrapped(line, 20).split("\n") == lines


def test_each_line_of_a_text_is_broken_on_its_own() -> None:
    assert wrapped("a b c\n\nd e f", 3) == "a b\n  c\n\nd e\n  f"


@given(st.text(st.sampled_from("ab `:\n-"), max_size=60), st.integers(1, 30))
@settings(derandomize=True)
def test_no_word_is_lost_or_broken(text: str, width: int) -> None:
    assert wrapped(text, width).split() == text.split()
