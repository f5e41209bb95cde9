"""A private key is removed in whatever form, and in whatever part, a program prints it."""

import base64
import json
import random
from collections.abc import Callable

import pytest

from iterdev.core.formatting import MASK
from iterdev.host.private_keys import PrivateKeys, lines_of, without_private_keys
from iterdev.host.secrets import LineRedactor, Redactor

RANDOM = random.Random(8192)
LINES = tuple(base64.b64encode(RANDOM.randbytes(48)).decode() for _ in range(98))
"""As many as an RSA key of 8192 bits has."""
KEY = ("-----BEGIN RSA PRIVATE KEY-----", *LINES, "wJ9Kx0Qd3A==", "-----END RSA PRIVATE KEY-----")
FORMS: dict[str, Callable[[], str]] = {
    "whole": lambda: "\n".join(KEY),
    "head -n 12": lambda: "\n".join(KEY[:12]),
    "tail -n 12": lambda: "\n".join(KEY[-12:]),
    "all but the first line": lambda: "\n".join(KEY[1:]),
    "cat -n": lambda: "\n".join(f"{number:6}\t{line}" for number, line in enumerate(KEY, 1)),
    "cat -n | head": lambda: "\n".join(f"{number:6}\t{line}" for number, line in enumerate(KEY[:9], 1)),
    "cat -n | tail": lambda: "\n".join(f"{number:6}\t{line}" for number, line in enumerate(KEY[-9:], 90)),
    "grep -n": lambda: "\n".join(f"deploy/server.pem:{number}:{line}" for number, line in enumerate(KEY, 1)),
    "a diff": lambda: "\n".join(f"+{line}" for line in KEY),
    "indented": lambda: "\n".join(f"\t    {line}" for line in KEY),
    "quoted": lambda: "\n".join(f'    "{line}\\n" +' for line in KEY),
    "a list of strings": lambda: "\n".join(f"  '{line}'," for line in KEY),
    "with carriage returns": lambda: "\r\n".join(KEY),
    "in JSON": lambda: json.dumps({"key": "\n".join(KEY)}),
    "in JSON, cut off": lambda: json.dumps({"key": "\n".join(KEY[:9])}),
    "its end in JSON, behind other text": lambda: json.dumps({"a": "words " * 20, "b": "\n".join(KEY[-9:])}),
    "its beginning and its end in JSON": lambda: json.dumps({"a": "\n".join(KEY[:9]), "b": "\n".join(KEY[-9:])}),
    "in JSON in JSON": lambda: json.dumps(json.dumps({"key": "\n".join(KEY)})),
    "as bytes of Python": lambda: repr("\n".join(KEY).encode()),
    "in one line": lambda: " ".join(KEY),
    "in one line, cut off": lambda: " ".join(KEY[:9]),
    "the last three lines of an error": lambda: " / ".join(KEY[-3:]),
    "coloured": lambda: "\n".join(f"\x1b[31m{line}\x1b[0m" for line in KEY),
    "once more encoded": lambda: base64.b64encode("\n".join(KEY).encode()).decode(),
}


def leaks(text: str) -> list[str]:
    """The lines of the key of which the text has a part."""
    return [line for line in KEY[1:-1] if line[:12] in text or line[-12:] in text or base64_of(line) in text]


def base64_of(line: str) -> str:
    return base64.b64encode(line.encode()).decode()[4:24]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_nothing_of_a_key_stays_in_a_text(form: Callable[[], str]) -> None:
    clean = Redactor([])(f"the text before\n{form()}\nthe text behind\n")

    assert leaks(clean) == []
    assert clean.startswith("the text before\n")
    assert clean.endswith("the text behind\n")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_nothing_of_a_key_stays_in_a_text_that_comes_line_by_line(form: Callable[[], str]) -> None:
    redact = LineRedactor(Redactor([]))

    text = f"the text before\n{form()}\nthe text behind"
    lines = [line for part in text.split("\n") for line in redact.feed(part)] + redact.flush()

    assert leaks("\n".join(lines)) == []
    assert (lines[0], lines[-1]) == ("the text before", "the text behind")


def test_text_that_only_mentions_a_key_stays() -> None:
    text = 'src/keys.py has "-----BEGIN RSA PRIVATE KEY-----" in line 3.\nMove it out of src/production/settings.py.\n'

    assert without_private_keys(text) == text.replace("-----BEGIN RSA PRIVATE KEY-----", MASK)


def test_what_follows_a_key_that_was_cut_off_stays() -> None:
    assert without_private_keys("\n".join([*KEY[:9], "10 passed", "done"])) == f"{MASK}\n10 passed\ndone"


def test_lines_that_resemble_a_key_are_passed_on_with_the_next_line() -> None:
    keys = PrivateKeys()

    assert keys.feed(f"{LINES[0]}\n") == ""
    assert keys.feed("not a key\n") == f"{LINES[0]}\nnot a key\n"


@pytest.mark.parametrize("text", ["", "a", "\n", "a\nb", "a\\nb\\\\n", "C:\\new\\repo\r\n\r\n"])
def test_lines_with_their_ends_are_the_whole_text(text: str) -> None:
    assert "".join(lines_of(text)) == text
