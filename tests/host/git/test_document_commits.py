"""Files that are in no worktree, as commits."""

from pathlib import Path

from tests.conftest import Repo

from iterdev.host.git import commits
from iterdev.host.git.commits import commit_documents


def test_files_come_out_of_a_commit_as_they_went_in_and_no_ref_is_left(repo: Repo, tmp_path: Path) -> None:
    files = {"context.md": b"# Context\n", "wisdom/a.md": "grün\n".encode(), ".msg/messages.jsonl": b""}
    before = repo.git("for-each-ref")

    commit = commit_documents(repo.path, files, known=repo.git("rev-parse", "HEAD"))

    commits.copy_files(repo.path, commit, tmp_path / "copy")
    assert {name: (tmp_path / "copy" / name).read_bytes() for name in commits.file_names(repo.path, commit)} == files
    assert repo.git("for-each-ref") == before


def test_a_later_commit_has_only_its_own_files_and_the_earlier_one_as_parent(repo: Repo) -> None:
    known = repo.git("rev-parse", "HEAD")
    first = commit_documents(repo.path, {"a.md": b"a", "b.md": b"b"}, known=known)

    second = commit_documents(repo.path, {"b.md": b"b"}, known=known, parent=first)

    assert commits.file_names(repo.path, second) == ["b.md"]
    assert repo.git("rev-parse", f"{second}^") == first


def test_names_that_lead_elsewhere_are_left_out(repo: Repo) -> None:
    files = {"../a": b"", "/etc/passwd": b"", ".git/config": b"", "two words": b"", "a\nM 100644": b"", "ok": b"1"}

    commit = commit_documents(repo.path, files, known=repo.git("rev-parse", "HEAD"))

    assert commits.file_names(repo.path, commit) == ["ok"]
