"""Issues of GitHub in the tracker of a repository."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.github_server import TOKEN, GitHub, github_server

from iterdev.app.issues import show
from iterdev.app.issues.pull import issue_filter, pull, pull_named
from iterdev.core.errors import HostError, UserError
from iterdev.engine.repository import Repository

OPEN = issue_filter("open", 100, "")


@pytest.fixture
def server() -> Iterator[GitHub]:
    with github_server() as serving:
        yield serving


@pytest.fixture
def environment(server: GitHub, tmp_path: Path) -> dict[str, str]:
    """Without `gh`, with a token."""
    return {"PATH": str(tmp_path), "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": server.address, "GH_REPO": "o/r"}


@pytest.fixture
def repository(repo: Repo) -> Repository:
    return Repository(repo.path)


def ids(repository: Repository) -> list[str]:
    return [issue.id for issue in show.issue_list(repository).issues]


def test_new_issues_are_added_changed_ones_updated_and_closed_ones_completed(
    repository: Repository,
    server: GitHub,
    environment: dict[str, str],
) -> None:
    for number in (1, 2, 3):
        server.add(number)
    assert pull(repository, OPEN, environment).added == ("GH-1", "GH-2", "GH-3")
    server.issues[0]["title"] = "Another title"
    server.issues[1]["state"] = "closed"
    server.add(4)

    found = pull(repository, OPEN, environment)

    assert (found.added, found.updated, found.unchanged) == (("GH-4",), ("GH-1", "GH-2"), ("GH-3",))
    assert ids(repository) == ["GH-1", "GH-3", "GH-4"]
    assert [issue.id for issue in show.history(repository)] == ["GH-2"]


def test_an_issue_that_is_gone_is_named_and_stays(
    repository: Repository,
    server: GitHub,
    environment: dict[str, str],
) -> None:
    server.add(1)
    pull(repository, OPEN, environment)
    server.issues.clear()

    assert pull(repository, OPEN, environment).missing == ("GH-1",)
    assert ids(repository) == ["GH-1"]


def test_a_single_issue_is_read_by_its_id(
    repository: Repository,
    server: GitHub,
    environment: dict[str, str],
) -> None:
    server.add(42, "The answer", body=f"with {TOKEN}")

    found = pull_named(repository, ["GH-42", "ISS-20260308-120000", "GH-43"], environment)

    assert (found.added, found.missing) == (("GH-42",), ("GH-43",))
    (issue,) = show.issue_list(repository).issues
    assert (issue.description.title, issue.description.context) == ("The answer", "with [secret]")


def test_a_failure_in_the_middle_of_the_pages_changes_nothing(
    repository: Repository,
    server: GitHub,
    environment: dict[str, str],
) -> None:
    for number in range(1, 151):
        server.add(number)
    limited = (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772942400"}, {})
    server.instead = lambda path: limited if "page=2" in path else None

    with pytest.raises(HostError, match="rate limit"):
        pull(repository, issue_filter("open", 500, ""), environment)

    assert ids(repository) == []


def test_a_limit_below_1_is_refused() -> None:
    with pytest.raises(UserError, match='"0" is not a number of issues'):
        issue_filter("open", 0, "")
