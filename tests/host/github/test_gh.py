"""Issues of GitHub, read through a program that stands in for `gh`."""

import json
from pathlib import Path

import pytest

from iterdev.core.errors import HostError
from iterdev.host.github import IssueFilter, NoSuchIssue, PullRequest, Review, ReviewComment, github_of, read_issue

FIELDS = "number,title,body,state,labels,url,comments"
ISSUE = {
    "number": 7,
    "title": "Greet",
    "body": "Please.",
    "state": "OPEN",
    "labels": [{"id": "x", "name": "P1", "description": "", "color": "ff0000"}],
    "url": "https://github.com/o/r/issues/7",
    "comments": [{"id": "y", "author": {"login": "ann"}, "body": "Yes!", "createdAt": "2026-03-08T12:00:00Z"}],
}


@pytest.fixture
def gh(tmp_path: Path) -> Path:
    """The program `gh`, which does what is written into it."""
    path = tmp_path / "gh"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def says(gh: Path, script: str) -> dict[str, str]:
    """The environment in which `gh` does that."""
    gh.write_text(f"#!/bin/sh\n{script}\n")
    return {"PATH": f"{gh.parent}:/usr/bin:/bin"}


def answers(gh: Path, arguments: str, document: object) -> dict[str, str]:
    return says(gh, f"test \"$*\" = '{arguments}' || exit 9\ncat <<'END'\n{json.dumps(document)}\nEND")


def test_title_body_labels_and_comments_are_read(gh: Path, tmp_path: Path) -> None:
    environment = answers(gh, f"issue view 7 --json {FIELDS}", ISSUE)

    issue = read_issue(tmp_path, 7, environment)

    assert (issue.title, issue.body, issue.is_open, issue.labels) == ("Greet", "Please.", True, ("P1",))
    assert [(one.author, one.body) for one in issue.comments] == [("ann", "Yes!")]


def test_a_list_is_asked_for_with_state_limit_and_labels(gh: Path, tmp_path: Path) -> None:
    arguments = f"issue list --state all --limit 5 --label bug --label P0 --json {FIELDS}"
    environment = answers(gh, arguments, [ISSUE, {**ISSUE, "number": 8, "state": "CLOSED"}])

    found = github_of(tmp_path, environment).issues(IssueFilter(state="all", limit=5, labels=("bug", "P0")))

    assert [(one.name, one.is_open) for one in found] == [("GH-7", True), ("GH-8", False)]


def test_any_letters_any_length_and_many_issues_are_read(gh: Path, tmp_path: Path) -> None:
    text = "Ünïcödé 中文 \U0001f600 \u202e" + "x" * 10_000
    said = json.dumps([{**ISSUE, "number": number, "title": text, "body": text} for number in range(1, 251)])
    (tmp_path / "said").write_text(said)
    environment = says(gh, f"cat '{tmp_path}/said'")

    found = github_of(tmp_path, environment).issues(IssueFilter(limit=1000))

    assert [one.number for one in found] == list(range(1, 251))
    assert {(one.title, one.body) for one in found} == {(text, text)}


def test_a_rate_limit_that_is_used_up_says_what_to_wait_for(gh: Path, tmp_path: Path) -> None:
    environment = says(gh, "echo 'HTTP 403: API rate limit exceeded for user ID 1.' >&2; exit 1")

    with pytest.raises(HostError, match="HTTP 403: API rate limit exceeded") as failed:
        github_of(tmp_path, environment).issues(IssueFilter())

    assert failed.value.hint == "wait until `gh api rate_limit` allows more"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'HTTP 502: Bad Gateway' >&2; exit 1", "failed: HTTP 502"),
        ("exit 4", "it ended with 4"),
        ("echo nonsense", "unexpected answer"),
        ("echo '{}'", "unexpected answer"),
    ],
)
def test_what_goes_wrong_is_one_sentence_with_a_hint(gh: Path, tmp_path: Path, script: str, message: str) -> None:
    environment = says(gh, script)

    with pytest.raises(HostError, match=message) as failed:
        read_issue(tmp_path, 7, environment)

    assert failed.value.hint
    assert "\n" not in failed.value.message


def test_an_issue_that_does_not_exist_is_told_apart(gh: Path, tmp_path: Path) -> None:
    said = "GraphQL: Could not resolve to an issue or pull request with the number of 9. (repository.issue)"
    environment = says(gh, f"echo '{said}' >&2; exit 1")

    with pytest.raises(NoSuchIssue):
        read_issue(tmp_path, 9, environment)


WANTED = PullRequest(head="iterdev/x", base="main", title="Greet", body="the report", is_draft=True)


def test_a_pull_request_is_created_with_its_text_on_standard_input(gh: Path, tmp_path: Path) -> None:
    arguments = "pr create --head iterdev/x --base main --title Greet --body-file - --draft"
    environment = says(
        gh,
        f"test \"$*\" = '{arguments}' && test \"$(cat)\" = 'the report' || exit 9\necho https://github.com/o/r/pull/3",
    )

    opened = github_of(tmp_path, environment).open_pull_request(WANTED)

    assert (opened.url, opened.is_new) == ("https://github.com/o/r/pull/3", True)


def test_a_pull_request_that_is_open_already_is_found(gh: Path, tmp_path: Path) -> None:
    said = 'a pull request for branch "iterdev/x" into branch "main" already exists:'
    address = "https://github.com/o/r/pull/3"
    view = f'test "$*" = \'pr view {address} --json body\' && echo \'{{"body": "mine"}}\' && exit'
    environment = says(gh, f"{view}\necho '{said}' >&2; echo {address} >&2; exit 1")

    opened = github_of(tmp_path, environment).open_pull_request(WANTED)

    assert (opened.url, opened.number, opened.is_new, opened.body) == (address, 3, False, "mine")


def test_a_text_is_changed_and_a_review_is_added_through_gh(gh: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    environment = says(gh, f'echo "$*" >> {log}; cat >> {log}; echo >> {log}')
    review = Review(commit="c", text="found", comments=(ReviewComment(file="a.py", line=3, text="wrong"),))

    target = github_of(tmp_path, environment)
    target.change_text(3, "text")
    known = target.reviews(3)
    target.add_review(3, review)

    place = "repos/{owner}/{repo}/pulls/3/reviews"
    lines = log.read_text().splitlines()
    assert (known, lines[:4]) == (
        [],
        ["pr edit 3 --body-file -", "text", f"api --paginate --jq .[] | {{body}} {place}?per_page=100", ""],
    )
    assert lines[4] == f"api {place} --method POST --input -"
    assert json.loads(lines[5])["comments"] == [{"path": "a.py", "line": 3, "side": "RIGHT", "body": "wrong"}]


def test_a_pull_request_that_is_refused_says_why(gh: Path, tmp_path: Path) -> None:
    environment = says(gh, "echo 'pull request create failed: No commits between main and iterdev/x' >&2; exit 1")

    with pytest.raises(HostError, match="No commits between"):
        github_of(tmp_path, environment).open_pull_request(WANTED)


def test_reviews_of_all_pages_are_read(gh: Path, tmp_path: Path) -> None:
    lines = "".join(json.dumps({"body": str(number) if number else None}) + "\n" for number in range(250))
    (tmp_path / "said").write_text(lines)
    environment = says(gh, f"cat '{tmp_path}/said'")

    found = github_of(tmp_path, environment).reviews(3)

    assert found == ["", *map(str, range(1, 250))]
