"""Issues of GitHub, read through a program that stands in for `gh`."""

import json
from pathlib import Path

import pytest

from iterdev.core.errors import HostError
from iterdev.host.github import read_issue


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program `gh`, which does what is written into it."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    path = tmp_path / "gh"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def says(gh: Path, script: str) -> None:
    gh.write_text(f"#!/bin/sh\n{script}\n")


def test_title_body_and_comments_are_read(gh: Path, tmp_path: Path) -> None:
    document = {"title": "Greet", "body": "Please.", "comments": [{"author": {"login": "ann"}, "body": "Yes!"}]}
    says(
        gh,
        f"test \"$*\" = 'issue view 7 --json title,body,comments' || exit 9\ncat <<'END'\n{json.dumps(document)}\nEND",
    )

    issue = read_issue(tmp_path, 7)

    assert (issue.title, issue.body) == ("Greet", "Please.")
    assert [(comment.author.login, comment.body) for comment in issue.comments if comment.author] == [("ann", "Yes!")]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'no such issue' >&2; exit 1", "failed: no such issue"),
        ("exit 4", "it ended with 4"),
        ("echo nonsense", "unexpected answer"),
        ("echo '{}'", "unexpected answer"),
    ],
)
def test_what_goes_wrong_is_one_sentence_with_a_way_out(gh: Path, tmp_path: Path, script: str, message: str) -> None:
    says(gh, script)

    with pytest.raises(HostError, match=message) as failed:
        read_issue(tmp_path, 7)

    assert "--file PATH" in failed.value.hint
    assert "\n" not in failed.value.message


def test_without_gh_the_hint_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(HostError, match="not installed"):
        read_issue(tmp_path, 7)
