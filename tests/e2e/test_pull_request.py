"""A pull request for the work of a session."""

import json
import subprocess

import pytest
from tests.conftest import Repo
from tests.github_server import TOKEN, github_server


@pytest.fixture
def finished(repo: Repo) -> Repo:
    """A session about an issue of GitHub, a remote, and a `gh` that writes down what it gets."""
    remote = repo.home / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True, env=repo.env)
    repo.git("remote", "add", "origin", str(remote))
    program = repo.home / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" > {repo.home}/asked\ncat > {repo.home}/body\necho https://github.com/o/r/pull/3\n'
    )
    program.chmod(0o755)
    repo.env["PATH"] = f"{program.parent}:{repo.env['PATH']}"
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix GH-7: the greeting")
    return repo


def remote_branches(repo: Repo) -> list[str]:
    return repo.git("ls-remote", "--heads", "origin").split()[1::2]


def test_the_branch_is_pushed_and_the_report_is_the_text(finished: Repo) -> None:
    done = finished.iterdev("pr", "--draft")

    assert (done.returncode, done.stdout) == (0, "Opened: https://github.com/o/r/pull/3\n")
    session = finished.folder().name
    assert remote_branches(finished) == [f"refs/heads/iterdev/{session}"]
    asked, body = (finished.home / "asked").read_text(), (finished.home / "body").read_text()
    title = "Fix GH-7: the greeting"
    assert asked == f"pr create --head iterdev/{session} --base main --title {title} --body-file - --draft\n"
    assert body.startswith("<!-- iterdev: begin -->\nFixes #7\n\n# ")
    picture = "\n---\n\n## Time Line\n\n![All attempts at each task](timeline.svg)\n"
    assert finished.iterdev("report").stdout.replace(picture, "").strip() in body.replace("\u2060", "")
    assert "timeline.svg" not in body
    assert "pull request: https://github.com/o/r/pull/3 has" in finished.iterdev("follow").stdout


def test_a_dry_run_shows_it_and_pushes_nothing(finished: Repo) -> None:
    shown = json.loads(finished.iterdev("pr", "--dry-run", "--base", "next", "--json").stdout)

    assert (shown["base"], shown["url"]) == ("next", None)
    assert remote_branches(finished) == []


def test_every_option_reaches_github_and_the_second_time_it_is_brought_up_to_date(finished: Repo) -> None:
    session = finished.folder().name
    issue = {"severity": "low", "description": "too long", "file": "DEV-001.txt", "line": 1}
    scores = dict.fromkeys(("correctness", "completeness", "maintainability", "security"), 9)
    finished.behave(reviewer={"result": {"scores": scores, "issues": [issue]}})
    finished.iterdev("run", "-y", "--pipeline", "sprint", "Add a greeting")
    with github_server() as server:
        server.shown = {"DEV-001.txt": range(1, 2)}
        server.pulls.append({"head": "next", "html_url": "https://github.com/o/r/pull/1"})
        (finished.home / "bin" / "gh").unlink()
        api = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": server.address, "GH_REPO": "o/r"}
        options = ("--draft", "--base", "next", "--with-findings")

        said = [finished.iterdev("pr", *options, **api).stdout for _ in range(2)]

    address = "https://github.com/o/r/pull/2\n"
    assert said == [f"Opened: {address}", f"Brought up to date: {address}"]
    _, pull = server.pulls
    assert (pull["draft"], pull["base"], session in str(pull["head"])) == (True, "next", False)
    (review,) = server.reviews[2]
    assert [one["body"] for one in review["comments"]] == ["**low**: too long"]


def test_a_session_without_changes_has_no_pull_request(repo: Repo) -> None:
    repo.iterdev("run", "--pipeline", "patch", "Fix it")

    refused = repo.iterdev("pr")

    assert refused.returncode == 2
    assert "has landed" in refused.stderr


def test_a_branch_that_others_moved_is_not_overwritten(finished: Repo) -> None:
    session = finished.folder().name
    other = finished.git("commit-tree", "-m", "theirs", "HEAD^{tree}")
    finished.git("push", "-q", "origin", f"{other}:refs/heads/iterdev/{session}")

    refused = finished.iterdev("pr")

    assert refused.returncode == 4
    assert "cannot be pushed" in refused.stderr
    assert not (finished.home / "asked").exists()
