"""What is in commits, and how they differ."""

from pathlib import Path

import pytest
from tests.conftest import Repo

from iterdev.host.git import commits
from iterdev.host.git.command import serving


@pytest.fixture
def change(repo: Repo) -> tuple[str, str]:
    """Two commits; the second one changes two files, one of which is no text."""
    old = repo.git("rev-parse", "HEAD")
    repo.write("größe.txt", "one\ntwo\n")
    (repo.path / "picture.bin").write_bytes(b"\0\1\2")
    return old, repo.commit()


def test_a_diff_is_shown_as_people_read_it(repo: Repo, change: tuple[str, str]) -> None:
    repo.git("config", "diff.external", "false")
    repo.git("config", "color.diff", "always")

    text = commits.diff_text(repo.path, *change, limit=10_000)

    assert "+++ b/größe.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n" in text
    assert "Binary files /dev/null and b/picture.bin differ" in text


def test_a_diff_that_is_too_long_is_left_out_and_its_summary_names_the_files(
    repo: Repo, change: tuple[str, str]
) -> None:
    text, stat = commits.diff_text(repo.path, *change, limit=100), commits.diff_stat(repo.path, *change, most=1)

    assert text == ""
    assert "größe.txt" in stat
    assert "picture.bin" not in stat
    assert "2 files changed" in stat


@pytest.mark.parametrize("limit", [10_000, 600])
def test_a_diff_is_shown_without_the_files_of_others_also_where_all_would_be_too_long(repo: Repo, limit: int) -> None:
    old = repo.git("rev-parse", "HEAD")
    for name in ("mine.txt", "other.txt", "to b/mine.txt"):
        repo.write(name, f"diff --git a/x b/{name}\n" * 9)
    new = repo.commit()

    with serving(repo.path):
        text = commits.diff_text(repo.path, old, new, limit, without={"mine.txt", "other.txt"})

    assert [line.strip() for line in text.splitlines() if line.startswith("+++")] == ["+++ b/to b/mine.txt"]
    assert len(text.splitlines()) == 15


def test_a_file_that_another_task_renamed_is_left_out_of_a_diff_under_both_names(repo: Repo) -> None:
    repo.write("other.txt", "a line\n" * 9)
    old = repo.commit()
    repo.git("mv", "other.txt", "renamed.txt")
    repo.write("renamed.txt", "a line\n" * 8 + "another\n")
    repo.write("mine.txt", "mine\n")
    new = repo.commit()

    with serving(repo.path):
        text = commits.diff_text(repo.path, old, new, 10_000, without={"other.txt", "renamed.txt"})

    assert [line.partition(" b/")[2] for line in text.splitlines() if line.startswith("diff ")] == ["mine.txt"]


def test_no_file_is_left_out_of_a_diff_because_its_name_is_not_utf8(repo: Repo) -> None:
    old = repo.git("rev-parse", "HEAD")
    for name in ("mine.txt", "mine\udcff.txt", "other.txt"):
        repo.write(name, "a line\n" * 90)
    new = repo.commit()

    text = commits.diff_text(repo.path, old, new, 1_700, without={"other.txt"}, most=9)

    assert text == ""


def test_the_files_of_a_commit_are_those_that_git_knows(repo: Repo, change: tuple[str, str]) -> None:
    repo.write("later.txt", "not committed")

    assert {"größe.txt", "README.md"} <= set(commits.file_names(repo.path, change[1]))
    assert "later.txt" not in commits.file_names(repo.path, change[1])
    assert commits.file_text(repo.path, change[1], "größe.txt") == "one\ntwo\n"


@pytest.mark.parametrize("setting", ["diff.noprefix=true", "diff.foo.textconv=cat -n"])
def test_a_patch_can_be_applied_whatever_form_the_user_wants_differences_in(
    repo: Repo, tmp_path: Path, setting: str
) -> None:
    repo.write(".gitattributes", "*.foo diff=foo\n")
    repo.write("a.foo", "one\n")
    old = repo.commit()
    repo.write("a.foo", "one\ntwo\n")
    new = repo.commit()
    repo.git("config", *setting.split("="))

    commits.write_patch(repo.path, old, new, tmp_path / "patch")
    repo.git("checkout", "-q", old)
    repo.git("apply", str(tmp_path / "patch"))

    assert (repo.path / "a.foo").read_text() == "one\ntwo\n"
