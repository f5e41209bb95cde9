"""Notifications of the terminal."""

import io
import sys

import pytest

from iterdev.surfaces.cli.output.console import print_alert


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_notification_and_its_bell_without_codes_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)

    assert print_alert("iterdev: question: go\x07 \x1b]0;on\n?")

    assert screen.getvalue().startswith("\x1b]9;iterdev: question: go")
    assert (screen.getvalue().count("\x1b"), screen.getvalue().count("\x07")) == (1, 2)


def test_a_pipe_gets_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert not print_alert("iterdev: question")

    assert capsys.readouterr() == ("", "")
