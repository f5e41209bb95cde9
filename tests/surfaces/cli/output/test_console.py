"""What reaches the terminal: no control codes, no endless values."""

import json

import pytest

from iterdev.core.errors import UserError
from iterdev.surfaces.cli.output.console import print_document, print_either, print_error, print_warning

TITLE = "\x1b]0;owned\x07"


def test_text_of_others_is_printed_without_control_codes(capsys: pytest.CaptureFixture[str]) -> None:
    print_either(f"DEV-001 failed: {TITLE}no \x1b[31mluck\x1b[0m", {}, as_json=False)
    print_warning(f"{TITLE}odd")
    print_error(UserError(f'"{TITLE}x" is wrong', hint=f"remove {TITLE}it"))

    assert capsys.readouterr() == ("DEV-001 failed: no luck\n", 'odd\niterdev: "x" is wrong\nhint: remove it\n')


def test_a_document_keeps_every_character_and_prints_no_control_code(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{TITLE}\x7f\x9b31mgröße"
    print_document({"error": text})

    printed = capsys.readouterr().out
    assert json.loads(printed) == {"error": text}
    assert printed.rstrip("\n").isprintable()


@pytest.mark.parametrize("value", ["x" * 100_000, "some words " * 10_000])
def test_a_long_value_is_shortened_in_an_error(capsys: pytest.CaptureFixture[str], value: str) -> None:
    print_error(UserError(f'There is no session "{value}"', hint=f"iterdev status {value}"))

    message, hint = capsys.readouterr().err.splitlines()
    assert message.startswith(f'iterdev: There is no session "{value[:100]}')
    assert message.endswith('…"')
    assert max(len(message), len(hint)) < 5000


def test_an_error_of_ordinary_length_is_printed_whole(capsys: pytest.CaptureFixture[str]) -> None:
    message = f'iterdev.toml: "{"a" * 150}" is unknown; ' * 10
    print_error(UserError(message))

    assert capsys.readouterr().err == f"iterdev: {message}\n"
