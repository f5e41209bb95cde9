"""The team is called from inside of real clients, which ask the user, report the end, and connect to no other host."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.clis import CLIS, OPTIONAL, alive, find_optional_cli
from tests.conformance.clients import CASES, OWN_HOSTS, REQUIREMENT, TYPED, end_processes, observe_offline

TRIED = [case for case in CASES if case != ("claude", TYPED)]
"""What a user types in Claude Code is shown by the dialog; `make conformance` plays it without a terminal too."""


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    # Not in the folder of the test, whose long name is too much for the path of a socket.
    made = tmp_path_factory.mktemp("c")
    yield made
    end_processes(made)


@pytest.mark.parametrize(("name", "form"), TRIED)
def test_a_user_of_a_client_starts_the_team_is_asked_and_is_told_the_end(
    name: str, form: str, folder: Path, record_property: Callable[[str, object], None]
) -> None:
    if name not in CLIS and find_optional_cli(name) is None:
        assert not os.environ.get("CI"), f"{name} is not in {OPTIONAL}: run `make .agents-optional/.tried`"
        record_property("conformance", f"{name} not installed, not tested as a client")
        return

    seen, asked = observe_offline(name, form, folder)

    output = seen.pop("output")
    assert {key: seen[key] for key in ("instructed", "asked", "ended")} == dict.fromkeys(
        ("instructed", "asked", "ended"), True
    ), output
    assert (seen["requirement"], seen["standing"]) == (REQUIREMENT, "completed, succeeded")
    assert (seen["while_working"], seen["litter"]) == (0, "")
    assert set(asked) <= OWN_HOSTS.get((name, form), set())
    assert alive(str(folder)) == []
