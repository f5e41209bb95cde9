"""What the command line makes of the words after `iterdev run`."""

import click
import pytest

from iterdev.surfaces.cli.app import app


def parsed(*words: str) -> dict[str, object]:
    """What the command line makes of the words after `iterdev run`."""
    # Without these settings click would remember another help option for the command.
    context = click.Context(app, **app.context_settings)
    command = app.get_command(context, "run")
    assert command
    return command.make_context("run", list(words), parent=context).params


@pytest.mark.requirement("R1")
@pytest.mark.parametrize("flag", ["-y", "--yes"])
def test_both_spellings_of_yes_turn_auto_mode_on(flag: str) -> None:
    assert parsed(flag, "Add export")["yes"] is True
    assert parsed("Add export")["yes"] is False


@pytest.mark.requirement("R2")
@pytest.mark.parametrize("flag", ["-c", "--concurrency"])
def test_both_spellings_of_the_concurrency_are_read(flag: str) -> None:
    assert parsed(flag, "4", "Add export")["concurrency"] == 4


@pytest.mark.requirement("R3")
@pytest.mark.parametrize(
    "words",
    [
        ("-y", "-c", "4", "Add export endpoint"),
        ("Add export endpoint", "--yes"),
        ("--concurrency=4", "Add", "export", "endpoint"),
    ],
)
def test_what_is_left_without_the_flags_is_the_requirement(words: tuple[str, ...]) -> None:
    text = parsed(*words)["text"]

    assert isinstance(text, tuple)
    assert " ".join(text) == "Add export endpoint"


@pytest.mark.requirement("R4")
@pytest.mark.parametrize("text", ["Mend check-yaml", "use -yes-no- words", "say --yesterday or x-c4", "why -y? no"])
def test_a_flag_inside_a_requirement_is_no_flag_and_loses_no_letter(text: str) -> None:
    read = parsed(text)

    assert read["yes"] is False
    assert read["concurrency"] is None
    assert read["text"] == (text,)
