"""Which words are refused in an attempt; that an agent is recognised is in the end-to-end tests."""

import shlex

import click
import pytest

from iterdev.app.sessions import ATTEMPT
from iterdev.core.errors import UserError
from iterdev.surfaces.cli.app import app
from iterdev.surfaces.cli.commands.tracker.issue import issue


@pytest.fixture(autouse=True)
def attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ATTEMPT:
        monkeypatch.setenv(name, "DEV-001")


@pytest.mark.parametrize(
    "line",
    [
        "run Nested", "run Nested -- --help", "run -- --help", "rollback DEV-001 --reason --help", "export -- -h",
        "feedback add Good", "feedback -- add Good", "feedback add Good -- --help", "feedback add --severity high -h",
        "wisdom -- reject W-1", "skill -- install", "notify -- test",
    ],
)  # fmt: skip
def test_a_command_for_people_is_refused_also_if_one_of_its_words_looks_like_help(line: str) -> None:
    with pytest.raises(UserError, match="cannot be used inside of the attempt"):
        app.resolve_command(click.Context(app), shlex.split(line))


def test_so_is_one_of_the_tracker() -> None:
    with pytest.raises(UserError, match="cannot be used inside of the attempt"):
        issue.resolve_command(click.Context(issue), ["update", "GH-1", "--title", "--help"])


@pytest.mark.parametrize("line", ["run --help", "accept -h", "feedback add --help", "feedback --help", "feedback list"])
def test_help_and_what_only_reads_are_for_everybody(line: str) -> None:
    name, *rest = shlex.split(line)

    assert app.resolve_command(click.Context(app), [name, *rest])[::2] == (name, rest)
