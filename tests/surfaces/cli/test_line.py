"""One line of standard input has the arguments, as a coding agent passes them on; no shell reads it."""

import json

import pytest
from tests.conftest import Repo

from iterdev.core.errors import UserError
from iterdev.surfaces.cli.line import MOST, expanded


@pytest.mark.parametrize(
    ("arguments", "line", "meant"),
    [
        (["run", "--line", "-"], '-y -c 4 "Add login"\n', ["run", "-y", "-c", "4", "Add login"]),
        (["run", "--detach", "--line=-", "--json"], "'a  b' $(c)", ["run", "--detach", "--json", "a  b", "$(c)"]),
        (["run", "--line", "-"], "Fix the user's login", ["run", "Fix", "the", "user's", "login"]),
        (["run", "--line", "-"], "", ["run"]),
        (["run", "--", "--line", "-"], "x", ["run", "--", "--line", "-"]),
        (["resolve", "--detach", "--line", "-"], "-y GH-4", ["resolve", "--detach", "-y", "GH-4"]),
        (["run", "--detach", "--line", "-", "--json"], "status", ["status", "--json"]),
        (["run", "--detach", "--line", "-", "--json"], " resume\n", ["resume", "--detach", "--json"]),
        (["run", "--line", "-"], "status of the till", ["run", "status", "of", "the", "till"]),
    ],
)
def test_the_words_of_the_line_take_the_place_of_the_option(arguments: list[str], line: str, meant: list[str]) -> None:
    assert expanded(arguments, lambda _: line) == meant


def test_a_line_beyond_all_measure_is_refused() -> None:
    with pytest.raises(UserError, match="more than 100000 characters"):
        expanded(["run", "--line", "-"], lambda size: "x" * size)

    assert MOST == 100_000


def test_a_run_takes_its_arguments_from_a_line_and_no_shell_reads_them(repo: Repo) -> None:
    line = '-y --pipeline patch "Add $(touch never) `touch never`; touch never"'

    done = repo.iterdev("run", "--line", "-", "--json", stdin=line)

    assert json.loads(done.stdout)["requirement"] == "Add $(touch never) `touch never`; touch never"
    assert (json.loads(done.stdout)["exit_code"], repo.git("status", "--porcelain")) == (0, "")


def test_an_option_that_is_not_known_is_an_error_of_the_command(repo: Repo) -> None:
    done = repo.iterdev("run", "--line", "-", stdin="--nope text")

    assert (done.returncode, "--nope" in done.stderr) == (2, True)


def test_the_issue_team_takes_a_line_and_runs_in_the_background(repo: Repo) -> None:
    done = repo.iterdev("resolve", "--detach", "--line", "-", stdin="GH-4711")

    assert (done.returncode, 'no issue "GH-4711"' in done.stderr) == (2, True)
