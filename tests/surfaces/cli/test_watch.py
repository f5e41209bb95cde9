"""Where there can be no dashboard, and why."""

import pytest

from iterdev.surfaces.cli.commands.inspect.watch import unable

TERMINAL = {"TERM": "xterm-256color"}


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        (TERMINAL, ""),
        (TERMINAL | {"NO_COLOR": ""}, ""),
        (TERMINAL | {"NO_COLOR": "1"}, "NO_COLOR is set"),
        (TERMINAL | {"CI": "true"}, "CI is set"),
        ({"TERM": "dumb"}, "This terminal cannot place text (TERM is dumb)"),
        ({}, "This terminal cannot place text (TERM is dumb)"),
    ],
)
def test_the_environment_decides(environment: dict[str, str], why: str) -> None:
    assert unable(environment, is_terminal=True, has_textual=True) == why


def test_a_dashboard_needs_a_terminal() -> None:
    assert unable(TERMINAL, is_terminal=False, has_textual=True) == "This is not a terminal"


def test_a_dashboard_needs_its_extra_and_says_how_to_get_it() -> None:
    assert unable(TERMINAL, is_terminal=True, has_textual=False).endswith(" -m pip install 'iterdev[watch]'")
