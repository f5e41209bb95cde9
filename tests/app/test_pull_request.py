"""Pull requests against a server that answers as GitHub does."""

import subprocess
from collections.abc import Iterator, Mapping

import pytest
from tests.app.conftest import Team
from tests.github_server import TOKEN, GitHub, github_server

from iterdev.app.branches.pull_request import (
    BEGIN,
    END,
    OpenedPullRequest,
    PullRequestOptions,
    open_pull_request,
    with_report,
)
from iterdev.app.rollback import roll_back
from iterdev.core.errors import HostError, UserError
from iterdev.core.session.delivery import PullRequestOpened

NOTHING_MORE = PullRequestOptions()
FINDINGS = PullRequestOptions(with_findings=True)


@pytest.fixture
def server() -> Iterator[GitHub]:
    with github_server() as serving:
        yield serving


@pytest.fixture
def done(team: Team) -> Team:
    """A session of the patch pipeline that is finished, in a repository with a remote."""
    remote = team.repo.home / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True, env=team.repo.env)
    team.repo.git("remote", "add", "origin", str(remote))
    team.run(pipeline="patch")
    return team


def environment(server: GitHub) -> Mapping[str, str]:
    return {"PATH": "", "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": server.address, "GH_REPO": "o/r"}


def opened(team: Team, server: GitHub, options: PullRequestOptions = NOTHING_MORE) -> OpenedPullRequest:
    return open_pull_request(team.repository, team.session, options=options, environment=environment(server))


def test_what_is_open_is_brought_up_to_date_and_the_text_of_people_stays(done: Team, server: GitHub) -> None:
    first = opened(done, server)
    server.pulls[0]["body"] = f"Please look, @ann.\n\n{BEGIN}\nolder\n{END}\n\nThanks!"

    second = opened(done, server)

    text = str(server.pulls[0]["body"])
    assert (first.is_new, second.is_new, len(server.pulls)) == (True, False, 1)
    assert text.startswith(f"Please look, @ann.\n\n{BEGIN}\n# ")
    assert text.endswith(f"{END}\n\nThanks!")
    assert "older" not in text


def test_it_is_in_the_journal_once_for_each_state_of_the_branch(done: Team, server: GitHub) -> None:
    opened(done, server)
    opened(done, server)

    entries = done.repository.journal.read(done.session)
    state = done.repository.state(done.session)
    (event,) = (entry.event for entry in entries if isinstance(entry.event, PullRequestOpened))
    assert (event.url, event.number, event.head) == ("https://github.com/o/r/pull/1", 1, state.branch.tip)
    assert state.delivery.pull_requests == {f"iterdev/{done.session}": event}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "NEW"),
        ("mine", "mine\n\nNEW"),
        (f"a {BEGIN} old {END} b", "a NEW b"),
        (f"a {BEGIN} the end is missing", f"a {BEGIN} the end is missing\n\nNEW"),
    ],
)
def test_the_report_takes_the_place_of_the_earlier_one(text: str, said: str) -> None:
    assert with_report(text, "NEW") == said


def redo(team: Team) -> None:
    """Does the work again, in another way."""
    roll_back(team.repository, team.session, "DEV-001")
    team.repo.behave(developer={"write": {"DEV-001.txt": "another way\n"}})
    team.resume()


def test_an_agent_cannot_end_the_report(done: Team, server: GitHub) -> None:
    done.repo.behave(developer={"result": {"findings": f"{END} mine now"}})
    roll_back(done.repository, done.session, "DEV-001")
    done.resume()

    text = opened(done, server).body

    assert "mine now" in text
    assert (text.count(BEGIN), text.count(END), text.endswith(END)) == (1, 1, True)


def test_after_a_rollback_what_iterdev_pushed_is_replaced(done: Team, server: GitHub) -> None:
    opened(done, server)
    redo(done)

    opened(done, server)

    pushed = done.repo.git("ls-remote", "origin", f"refs/heads/iterdev/{done.session}").split()[0]
    assert pushed == done.repository.state(done.session).branch.tip


def test_commits_that_others_pushed_are_never_replaced(done: Team, server: GitHub) -> None:
    opened(done, server)
    theirs = done.repo.git("commit-tree", "-m", "theirs", "-p", f"iterdev/{done.session}", "HEAD^{tree}")
    done.repo.git("push", "-q", "origin", f"{theirs}:refs/heads/iterdev/{done.session}")
    redo(done)

    with pytest.raises(HostError, match="cannot be pushed"):
        opened(done, server)

    assert done.repo.git("ls-remote", "origin", f"refs/heads/iterdev/{done.session}").split()[0] == theirs


def test_a_session_that_is_not_finished_has_no_pull_request(done: Team, server: GitHub) -> None:
    roll_back(done.repository, done.session, "VERIFY-001")

    with pytest.raises(UserError, match="is not finished"):
        opened(done, server)


def issue(line: object, severity: str = "low", file: str = "DEV-001.txt", what: str = "wrong") -> dict[str, object]:
    return {"severity": severity, "description": f"{file} is {what}", "file": file, "line": line}


@pytest.fixture
def reviewed(done: Team, server: GitHub) -> Team:
    """A sprint whose review has 22 findings: one on the change, one elsewhere, and 20 less grave ones."""
    issues = [
        *(issue(1, what=f"slow in way {name}") for name in "abcdefghijklmnopqrst"),
        issue("1", "high"),
        issue(7, "medium", "README.md"),
    ]
    scores = dict.fromkeys(("correctness", "completeness", "maintainability", "security"), 9)
    done.repo.behave(reviewer={"result": {"scores": scores, "issues": issues}})
    done.run(pipeline="sprint")
    server.shown = {"DEV-001.txt": range(1, 2)}
    return done


def test_findings_become_comments_of_one_review(reviewed: Team, server: GitHub) -> None:
    opened(reviewed, server, FINDINGS)
    opened(reviewed, server, FINDINGS)

    (review,) = server.reviews[1]
    comments = review["comments"]
    assert isinstance(comments, list)
    assert (review["event"], len(comments)) == ("COMMENT", 19)
    assert comments[0]["body"] == "**high**: DEV-001.txt is wrong"
    assert (comments[0]["path"], comments[0]["line"], comments[0]["side"]) == ("DEV-001.txt", 1, "RIGHT")
    assert "- **medium** README.md: README.md is wrong" in str(review["body"])
    assert "2 more findings" in str(review["body"])
