"""The environment of a project while a team works: made beside the architect, once, and its failure ends nothing."""

import os
from pathlib import Path

import pytest
from tests.app.conftest import Team
from tests.conftest import Repo

from iterdev.core.session.events import AttemptEnded, AttemptStarted, EnvironmentMade
from iterdev.host.processes.identity import identity

INSTALL = 'mkdir -p node_modules/dep && echo \'{"name": "dep", "version": "1.0"}\' > node_modules/dep/package.json'


class Npm:
    """A program in place of npm that installs one package, and notes how often it was called."""

    def __init__(self, repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self._program = repo.home / "npm-calls", repo.home / "bin" / "npm"
        self._program.parent.mkdir()
        self.does(INSTALL)
        monkeypatch.setenv("PATH", f"{self._program.parent}{os.pathsep}{repo.env['PATH']}")
        repo.write("package.json", '{"name": "app", "dependencies": {"dep": "1"}}')
        repo.write(".gitignore", "node_modules\n")
        repo.commit("a project of Node")

    def does(self, script: str) -> None:
        self._program.write_text(f"#!/bin/sh\necho $$ >> {self.calls}\n{script}\n")
        self._program.chmod(0o755)

    def pids(self) -> list[int]:
        return [int(line) for line in self.calls.read_text().split()]


@pytest.fixture
def npm(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Npm:
    return Npm(repo, monkeypatch)


@pytest.fixture
def pipe(repo: Repo) -> Path:
    os.mkfifo(repo.home / "pipe")
    return repo.home / "pipe"


def happened(team: Team) -> list[object]:
    return [entry.event for entry in team.repository.journal.read(team.session)]


def test_the_environment_is_made_once_while_the_architect_works(repo: Repo, team: Team, npm: Npm, pipe: Path) -> None:
    # Each of the two waits for the other at the pipe.
    npm.does(f"read -r line < {pipe} && {INSTALL}")
    uses = {"run": "test -e node_modules/dep/package.json"}
    repo.behave(architect={"run": f"echo go > {pipe}"}, developer=uses)

    run = team.run(pipeline="sprint")

    assert run.succeeded, run.lines
    assert len(npm.pids()) == 1
    [made] = [event.text for event in happened(team) if isinstance(event, EnvironmentMade)]
    assert made.startswith("Node: made by `npm install --no-package-lock` in ")
    assert made.endswith(": 1 package, none downloaded: dep@1.0")
    assert [line for line in run.lines if "environment: " in line] == [f"  environment: {made}"]
    assert run.view.environments == (made,)


def test_a_developer_that_starts_before_the_environment_is_made_waits_for_it(
    repo: Repo, team: Team, npm: Npm, pipe: Path
) -> None:
    npm.does(f"read -r line < {pipe} && {INSTALL}")
    reviewer = {"run": f"echo go > {pipe}"}
    repo.behave(developer={"run": "test -e node_modules/dep/package.json"}, reviewer=reviewer)
    table = "id,description,role\nREVIEW-001,Look,reviewer\nDEV-001,Do,developer\n"

    run = team.run(table=table, concurrency=2)

    kinds = [
        (type(event), getattr(event, "task", ""))
        for event in happened(team)
        if isinstance(event, (AttemptStarted, AttemptEnded, EnvironmentMade))
    ]
    assert run.view.counts["completed"] == 2, run.lines
    assert len(npm.pids()) == 1
    assert kinds.index((AttemptStarted, "DEV-001")) < kinds.index((EnvironmentMade, ""))
    assert kinds.index((EnvironmentMade, "")) < kinds.index((AttemptEnded, "DEV-001"))


def test_an_environment_that_cannot_be_made_is_said_once_and_the_run_goes_on(repo: Repo, team: Team, npm: Npm) -> None:
    npm.does("echo 'npm error 404 dep is not in the registry' >&2; exit 1")

    run = team.run(pipeline="sprint")

    assert run.succeeded, run.lines
    [warning] = [text for text in run.view.warnings if "npm" in text]
    assert warning.startswith("`npm install --no-package-lock --loglevel=http` failed: npm error 404 dep is not in the")
    assert "setup" in warning


def test_what_makes_the_environment_is_ended_with_the_session(repo: Repo, team: Team, npm: Npm, pipe: Path) -> None:
    npm.does(f"echo started > {pipe}; exec cat {pipe}")
    repo.behave(architect={"run": f"read -r line < {pipe}", "result": {"status": "failed", "error": "no idea"}})

    run = team.run(pipeline="sprint")

    [pid] = npm.pids()
    assert not run.succeeded
    assert identity(pid) is None
    assert len(repo.worktrees()) == 1
