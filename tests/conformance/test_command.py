"""`iterdev agents check`, as far as it needs no real coding agent."""

import json
import shutil
import subprocess
import sys

import pytest
from tests.conftest import Repo

from iterdev.conformance.scenarios import SCENARIOS

WRONG, UNABLE = 2, 4
WITHOUT_EXTRA = """
import sys
sys.modules.update(starlette=None, uvicorn=None)
sys.argv = ["iterdev", "agents", "check"]
from iterdev.__main__ import main
sys.exit(main())
"""
IMPOSTOR = "#!/bin/sh\ntest \"$1\" = --version && echo 9.9.9 && exit\necho 'I am another program' >&2\nexit 3\n"


@pytest.fixture
def impostor(repo: Repo) -> Repo:
    """A user whose `claude` is another program, and who has no other coding agent."""
    folder = repo.home / "bin"
    folder.mkdir()
    program = folder / "claude"
    program.write_text(IMPOSTOR, encoding="utf-8")
    program.chmod(0o755)
    for needed in ("git", "sh"):
        (folder / needed).symlink_to(shutil.which(needed) or needed)
    repo.env["PATH"] = str(folder)
    return repo


def test_a_program_that_does_not_conform_fails_every_scenario_with_a_message(impostor: Repo) -> None:
    done = impostor.iterdev("agents", "check", "claude", "--json")

    document = json.loads(done.stdout)
    results = document["agents"][0]["results"]
    assert (done.returncode, document["as_expected"]) == (1, False)
    assert [result["scenario"] for result in results] == [scenario.name for scenario in SCENARIOS]
    assert {result["standing"] for result in results} == {"failed"}
    assert all("I am another program" in " ".join(result["misses"]) for result in results)


def test_the_table_has_a_row_for_every_scenario_and_progress_goes_to_standard_error(impostor: Repo) -> None:
    done = impostor.iterdev("agents", "check", "claude")

    rows = [line for line in done.stdout.splitlines() if line.endswith("FAILED")]
    assert [row.removesuffix("FAILED").strip() for row in rows] == [scenario.name for scenario in SCENARIOS]
    assert "claude 9.9.9 (version 9.9.9 is newer than" in done.stdout
    assert done.stderr.count("claude ") >= len(SCENARIOS)


def test_agents_that_are_not_installed_are_listed_as_such(impostor: Repo) -> None:
    done = impostor.iterdev("agents", "--json", "check")

    agents = {agent["agent"]: agent for agent in json.loads(done.stdout)["agents"]}
    assert agents["claude"]["installed"]
    assert not agents["goose"]["installed"]
    assert agents["goose"]["results"] == []
    assert agents["goose"]["hint"].startswith("npm install")


def test_it_needs_no_repository(impostor: Repo) -> None:
    impostor.path = impostor.home

    assert impostor.iterdev("agents", "check", "claude").returncode == 1


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [("goose", UNABLE, "npm install -g @aaif/goose"), ("cloude", WRONG, 'did you mean "claude"?')],
)
def test_a_name_that_cannot_be_checked_is_refused_with_a_hint(name: str, code: int, words: str, impostor: Repo) -> None:
    done = impostor.iterdev("agents", "check", name)

    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


def test_without_the_extra_there_is_a_hint_that_can_be_pasted() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_EXTRA], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (UNABLE, "")
    problem, hint = done.stderr.splitlines()
    assert problem == "iterdev: The conformance kit is not installed"
    assert hint.startswith("hint: /")
    assert hint.endswith(" -m pip install 'iterdev[conformance]'")
