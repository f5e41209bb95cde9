from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.github_server import TOKEN, GitHub

from iterdev.core.errors import HostError, UserError
from iterdev.host.github import IssueFilter, NoSuchIssue, PullRequest, github_of
from iterdev.host.github.project import Project, project_of
from iterdev.host.github.rest import RestApi


@pytest.fixture
def api(server: GitHub) -> RestApi:
    return RestApi(server.address, Project("github.com", "o", "r"), TOKEN)


def test_every_page_is_read_up_to_the_limit(server: GitHub, api: RestApi) -> None:
    for number in range(1, 251):
        server.add(number)

    assert [one.number for one in api.issues(IssueFilter(limit=1000))] == list(range(1, 251))
    assert len(server.asked) == 3
    assert len(api.issues(IssueFilter(limit=120))) == 120
    assert len(server.asked) == 5


def test_pull_requests_are_no_issues(server: GitHub, api: RestApi) -> None:
    server.add(1)
    server.add(2, pull_request={"url": "x"})

    assert [one.number for one in api.issues(IssueFilter())] == [1]
    with pytest.raises(NoSuchIssue, match="2 is a pull request"):
        api.issue(2)


def test_text_labels_state_and_comments_come_along_whatever_their_letters_and_length(
    server: GitHub, api: RestApi
) -> None:
    server.say(7, ("änne", "中文 \U0001f600"), *((f"u{number}", "text") for number in range(120)))
    server.add(7, "Ünïcödé \u202e", body="x" * 10_000, state="closed", labels=[{"name": "P0"}, {"name": "bug"}])

    issue = api.issue(7)

    assert (issue.title, len(issue.body), issue.is_open, issue.labels) == (
        "Ünïcödé \u202e",
        10_000,
        False,
        ("P0", "bug"),
    )
    assert (issue.comments[0].author, issue.comments[0].body) == ("änne", "中文 \U0001f600")
    assert len(issue.comments) == 121


def test_state_and_labels_are_asked_for(server: GitHub, api: RestApi) -> None:
    server.add(1, labels=[{"name": "good first"}])
    server.add(2)
    server.add(3, state="closed")

    assert [one.number for one in api.issues(IssueFilter(labels=("good first",)))] == [1]
    assert [one.number for one in api.issues(IssueFilter(state="all"))] == [1, 2, 3]


def test_an_issue_that_does_not_exist_is_told_apart_from_a_repository_that_does_not(
    server: GitHub, api: RestApi
) -> None:
    with pytest.raises(NoSuchIssue, match='no issue 9 in "o/r"'):
        api.issue(9)

    elsewhere = RestApi(server.address, Project("github.com", "o", "gone"), TOKEN)
    with pytest.raises(HostError, match='knows no "o/gone"'):
        elsewhere.issues(IssueFilter())


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (
            403,
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772942400"},
            "rate limit is used up until 2026-03-08",
        ),
        (429, {"Retry-After": "60"}, "rate limit is used up until 20"),
        (403, {}, "answered with 403 Forbidden: because"),
        (500, {}, "answered with 500 Internal Server Error: because"),
        (200, {}, "unexpected answer"),
    ],
)
def test_what_goes_wrong_is_one_sentence(
    server: GitHub, api: RestApi, status: int, headers: dict[str, str], words: str
) -> None:
    server.instead = lambda _: (status, headers, {"message": "because"})

    with pytest.raises(HostError, match=words) as failed:
        api.issues(IssueFilter())

    assert "\n" not in failed.value.message
    assert failed.value.hint
    assert TOKEN not in failed.value.message


def test_a_token_that_is_refused_is_named_without_its_value(server: GitHub) -> None:
    with pytest.raises(HostError, match="does not accept the token"):
        RestApi(server.address, Project("github.com", "o", "r"), "wrong").issues(IssueFilter())


@pytest.mark.parametrize("way", ["redirect", "page"])
def test_the_token_never_goes_to_another_host(server: GitHub, api: RestApi, way: str) -> None:
    elsewhere = "http://127.0.0.2:9/repos/o/r/issues"
    redirected = (301, {"Location": elsewhere}, {})
    server.instead = lambda _: redirected if way == "redirect" else (200, {"Link": f'<{elsewhere}>; rel="next"'}, [])

    with pytest.raises(HostError, match="leads to another host"):
        api.issues(IssueFilter())


def test_a_repository_that_was_renamed_is_followed(server: GitHub) -> None:
    server.add(1)
    server.instead = lambda path: (301, {"Location": path.replace("/old/", "/r/")}, {}) if "/old/" in path else None

    found = RestApi(server.address, Project("github.com", "o", "old"), TOKEN).issues(IssueFilter())

    assert [one.number for one in found] == [1]


def test_the_token_is_not_sent_without_encryption() -> None:
    with pytest.raises(UserError, match="is not encrypted"):
        RestApi("http://ghe.example.invalid/api/v3", Project("h", "o", "r"), TOKEN)


def test_no_server_is_one_sentence() -> None:
    with pytest.raises(HostError, match="No answer from"):
        RestApi("http://127.0.0.1:9", Project("github.com", "o", "r"), TOKEN).issue(1)


@pytest.mark.parametrize(
    ("address", "project"),
    [
        ("git@github.com:o/r.git", ("github.com", "o", "r")),
        ("https://github.com/o/r", ("github.com", "o", "r")),
        ("https://token@github.com/o/r.git/", ("github.com", "o", "r")),
        ("ssh://git@ghe.example.com:22/o/my.repo.git", ("ghe.example.com", "o", "my.repo")),
    ],
)
def test_the_repository_is_that_of_the_remote(repo: Repo, address: str, project: tuple[str, str, str]) -> None:
    repo.git("remote", "add", "origin", address)

    assert project_of(repo.path, {}) == project
    assert project_of(repo.path, {"GH_REPO": "a/b"}) == ("github.com", "a", "b")


def test_without_a_remote_of_github_the_hint_says_how_to_add_one(repo: Repo) -> None:
    with pytest.raises(UserError, match="No remote") as refused:
        project_of(repo.path, {})

    assert "git remote add" in refused.value.hint


def test_without_gh_and_without_a_token_both_are_named(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="`gh` is not installed, and there is no token"):
        github_of(tmp_path, {"PATH": str(tmp_path)})


def test_a_pull_request_is_opened_once_for_a_branch(server: GitHub, api: RestApi) -> None:
    wanted = PullRequest(head="iterdev/x", base="main", title="Greet", body="Fixes #7\n中", is_draft=True)

    first, second = api.open_pull_request(wanted), api.open_pull_request(wanted)

    assert (first.is_new, second.is_new) == (True, False)
    assert first.url == second.url == "https://github.com/o/r/pull/1"
    assert (server.pulls[0]["body"], server.pulls[0]["draft"]) == ("Fixes #7\n中", True)


def test_a_pull_request_that_is_refused_says_why(api: RestApi) -> None:
    with pytest.raises(HostError, match="Validation Failed: no branch trunk"):
        api.open_pull_request(PullRequest(head="iterdev/x", base="trunk", title="t", body=""))
