"""Pull requests at the end of a session of the issue team, through the REST API of GitHub."""

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.conftest import Repo
from tests.github_server import TOKEN, GitHub, github_server
from tests.issue_agents import use_program
from tests.teams.issues.sessions import Run

from iterdev.app.branches.pull_request import BEGIN
from iterdev.app.issues import edit, resolve
from iterdev.app.issues.pull_requests import has_landed, landed_builds, open_for_issues, open_for_session
from iterdev.app.resume import run_session
from iterdev.app.start import Request
from iterdev.core.errors import UserError
from iterdev.core.session.events import Entry, Landed
from iterdev.core.types import SessionId, TaskId
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver


@pytest.fixture
def server() -> Iterator[GitHub]:
    with github_server() as serving:
        yield serving


@pytest.fixture
def environment(server: GitHub, tmp_path: Path) -> dict[str, str]:
    """Without `gh`, with a token."""
    return {"PATH": str(tmp_path), "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": server.address, "GH_REPO": "o/r"}


@pytest.fixture
def repository(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in ("HOME", "ITERDEV_HOME", "TMPDIR", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, repo.env[name])
    remote = repo.home / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True, env=repo.env)
    repo.git("remote", "add", "origin", str(remote))
    return Repository(repo.path)


def resolved(repository: Repository, *names: str, separately: bool = False, **request: object) -> SessionId:
    for name in names:
        edit.create(repository, {"id": name, "title": f"Problem of {name}"})
    found = resolve.find_issues(repository, names, all_pending=False)
    asked = Request(requirement=" ".join(names), auto=True, **request)
    session = resolve.start_resolving(repository, asked, found.issues, None, separately=separately)
    anyio.run(partial(run_session, resumes=True), repository, session, RunObserver())
    return session


def test_one_pull_request_names_the_issues_that_are_resolved(
    repo: Repo, repository: Repository, server: GitHub, environment: dict[str, str]
) -> None:
    use_program(repo, fails=["BUILD-002"])
    session = resolved(repository, "GH-1", "GH-2", "GH-3", "GH-4", "ISS-20260308-120000")

    (opened,) = open_for_session(repository, session, environment)

    (pull,) = server.pulls
    assert (pull["head"], pull["base"]) == (f"iterdev/{session}", "main")
    assert pull["title"] == "Resolve GH-1, GH-2, GH-3, GH-4, ISS-20260308-120000"
    # BUILD-002 has the second and the fifth.
    assert str(pull["body"]).startswith(f"{BEGIN}\nFixes #1\nFixes #3\nFixes #4\n\n# Issue Resolution Report\n")
    assert opened.url == pull["html_url"]


def test_one_pull_request_for_each_issue_goes_on_top_of_the_one_before(
    repo: Repo, repository: Repository, server: GitHub, environment: dict[str, str]
) -> None:
    use_program(repo, fails=["BUILD-003"])
    session = resolved(repository, "GH-1", "GH-2", "GH-3", "ISS-20260308-120000", separately=True)

    opened = open_for_issues(repository, session, environment)

    branches = [str(pull["head"]) for pull in server.pulls]
    assert sorted(branches) == [f"iterdev/{session}-{name}" for name in ("gh-1", "gh-2", "iss-20260308-120000")]
    assert [pull["base"] for pull in server.pulls] == ["main", *branches[:-1]]
    fixes = sorted(str(pull["body"]).partition("# ")[0].removeprefix(BEGIN).strip() for pull in server.pulls)
    assert fixes == ["", "Fixes #1", "Fixes #2"]
    assert [one.url for one in opened] == [pull["html_url"] for pull in server.pulls]
    for pull, below in zip(server.pulls, ["main", *(f"remotes/origin/{one}" for one in branches[:-1])], strict=True):
        repo.git("fetch", "-q", "origin")
        changed = repo.git("diff", "--name-only", f"{below}...remotes/origin/{pull['head']}").split()
        assert changed == [f"{str(pull['title']).partition(':')[0]}.txt"]


def test_what_landed_again_is_where_it_landed_last() -> None:
    run = Run(2, pipeline="batch")
    again = Entry(run.state.seq + 1, 3.0, Landed(task=TaskId("BUILD-001"), tip="after both"))

    first, second = landed_builds(run.state, [*run.entries, again])

    assert (first.issues, second.issues, second.tip) == (("GH-2",), ("GH-1",), "after both")


def test_issues_of_which_only_the_end_of_the_id_differs_get_branches_of_their_own(
    repo: Repo, repository: Repository, server: GitHub, environment: dict[str, str]
) -> None:
    use_program(repo)
    names = [f"the-name-of-a-project-that-is-quite-long-and-so-on-{number}" for number in (1, 2)]
    session = resolved(repository, *names, separately=True)

    open_for_issues(repository, session, environment)

    assert sorted(str(pull["head"]) for pull in server.pulls) == [f"iterdev/{session}-{name}" for name in names]


def test_only_a_batch_builds_issues_one_by_one(repo: Repo, repository: Repository) -> None:
    use_program(repo)

    with pytest.raises(UserError, match='"full" builds all issues together'):
        resolved(repository, "GH-1", "GH-2", separately=True, pipeline="full")


def test_where_nothing_has_landed_there_is_nothing_to_open(repo: Repo, repository: Repository) -> None:
    use_program(repo, fails=["BUILD-001"])

    assert not has_landed(repository, resolved(repository, "GH-1"))
