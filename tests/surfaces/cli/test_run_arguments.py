"""What the command line makes of the words after `iterdev run` and `iterdev resolve`."""

from pathlib import Path

import click
import pytest

from iterdev.surfaces.cli.app import app


def parsed(*words: str, name: str = "run") -> dict[str, object]:
    """What the command line makes of the words after the command."""
    # Without these settings click would remember another help option for the command.
    context = click.Context(app, **app.context_settings)
    command = app.get_command(context, name)
    assert command
    return command.make_context(name, list(words), parent=context).params


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


def test_the_text_of_resolve_may_begin_with_flags() -> None:
    read = parsed("--mode=full --all-pending -y", "GH-1", name="resolve")

    assert (read["mode"], read["all_pending"], read["yes"], read["text"]) == ("full", True, True, ("GH-1",))


def test_the_value_of_another_option_of_resolve_may_have_spaces() -> None:
    read = parsed("--file=my issues/of today.txt", name="resolve")

    assert (read["file"], read["text"]) == (Path("my issues/of today.txt"), ())
