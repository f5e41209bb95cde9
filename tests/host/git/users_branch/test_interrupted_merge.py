"""What is left of a merge into the user's checkout that was killed, at each moment of it."""

from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.conftest import contents
from tests.host.git.test_landing import SESSION, branch, tip, work

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.host.git.users_branch import interrupted_merge
from iterdev.host.git.users_branch.acceptance import accept

NEW = "deep/er/new.txt"


@pytest.fixture
def lock(project: Repo, base: str) -> Path:
    """The session changes a file and adds one; a merge of it was begun, and its git was killed."""
    project.write("kept.txt", "kept\n")
    start = project.commit()
    branch(project, work(project, work(project, start, "README.md", "theirs\nand more\n"), NEW, "new\n"))
    project.git("update-ref", ids.accepting_ref(SESSION), "HEAD")
    path = project.path / ".git" / "index.lock"
    path.touch()
    assert base != start
    return path


def undo(project: Repo) -> None:
    interrupted_merge.undo(project.path, SESSION, tip(project))


@pytest.mark.parametrize(
    ("readme", "new"),
    [("# Sample\n", None), ("theirs\nand more\n", "new\n"), ("theirs\n", ""), (None, None)],
    ids=["nothing written", "everything written", "half of a file written", "a file taken away"],
)
def test_what_git_had_written_is_taken_back(project: Repo, lock: Path, readme: str | None, new: str | None) -> None:
    before = contents(project.path)
    (project.path / "README.md").unlink() if readme is None else project.write("README.md", readme)
    if new is not None:
        project.write(NEW, new)

    undo(project)

    assert (contents(project.path), project.git("status", "--porcelain")) == (before, "")
    assert not lock.exists()
    assert not (project.path / "deep").exists()


def test_a_merge_that_was_waiting_for_its_commit_is_taken_back(project: Repo, lock: Path) -> None:
    lock.unlink()
    before = contents(project.path)
    project.git("merge", "-q", "--no-ff", "--no-commit", tip(project))

    undo(project)

    assert (contents(project.path), project.git("status", "--porcelain")) == (before, "")
    assert not (project.path / ".git" / "MERGE_HEAD").exists()


def test_what_the_user_changed_since_stays_and_accept_names_it(project: Repo, lock: Path) -> None:
    project.write("README.md", "mine\n")
    project.write(NEW, "new\n")
    project.write("kept.txt", "mine too\n")

    with pytest.raises(UserError, match=r'uncommitted changes, such as "README.md"') as refusal:
        accept(project.path, SESSION, "main", tip(project))

    assert "git stash" in (refusal.value.hint or "")
    assert (project.path / "README.md").read_text() == "mine\n"
    assert (project.path / "kept.txt").read_text() == "mine too\n"
    assert not (project.path / NEW).exists()
    assert not lock.exists()


def test_a_lock_that_a_process_has_open_is_left_alone(project: Repo, lock: Path) -> None:
    project.write(NEW, "new\n")

    with lock.open(), pytest.raises(UserError, match="has locked the index"):
        undo(project)

    assert lock.exists()
    assert (project.path / NEW).exists()


def test_accept_after_a_killed_accept_brings_in_the_work(project: Repo, lock: Path) -> None:
    project.write("README.md", "theirs\n")

    accepted = accept(project.path, SESSION, "main", tip(project))

    assert (accepted.commit, project.git("status", "--porcelain")) == (tip(project), "")
    assert not lock.exists()
    assert interrupted_merge.sessions(project.path) == []
