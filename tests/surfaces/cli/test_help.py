"""The help and version commands, and what works outside of a repository."""

import json
from pathlib import Path

import pytest
from tests.conftest import Repo

from iterdev.agents.registry import KNOWN_AGENTS


@pytest.mark.parametrize("words", [[], ["status"], ["debt"], ["debt", "add"], ["check"], ["agents", "check"]])
def test_help_prints_what_the_option_prints(repo: Repo, words: list[str]) -> None:
    assert repo.iterdev("help", *words).stdout == repo.iterdev(*words, "--help").stdout


@pytest.mark.parametrize(
    ("words", "said"), [(["stats"], 'did you mean "status"?'), (["status", "x"], 'has no command "x"')]
)
def test_help_about_an_unknown_command_is_an_error(repo: Repo, words: list[str], said: str) -> None:
    done = repo.iterdev("help", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_the_short_option_prints_the_version_too(repo: Repo) -> None:
    assert repo.iterdev("-V").stdout == repo.iterdev("--version").stdout


@pytest.fixture
def outside(repo: Repo, tmp_path: Path) -> Repo:
    """The same user in a folder that is in no repository."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return Repo(folder, repo.home)


def test_agents_are_listed_outside_of_a_repository(outside: Repo) -> None:
    done = outside.iterdev("agents", "--json")

    assert done.returncode == 0
    assert [agent["name"] for agent in json.loads(done.stdout)["agents"]] == list(KNOWN_AGENTS)


def test_doctor_checks_the_machine_outside_of_a_repository(outside: Repo) -> None:
    subjects = [finding["subject"] for finding in json.loads(outside.iterdev("doctor", "--json").stdout)["findings"]]

    assert [subject.split()[0] for subject in subjects] == ["python", "git", "no", "agent", "disk"]
