"""What git processes that stay answer is what a process for each question answers."""

import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.git.test_git import ODD_NAMES

from iterdev.core.types import SessionId
from iterdev.host.git import commits, refs, session_branch
from iterdev.host.git.command import GitFailed, Identity, git, serving

AUTHOR = Identity("developer (mine)", "developer@iterdev.invalid")
NAMES = ["developer (mine)", ' ."Größe, 中;: ', "a <b>\nc"]


@pytest.fixture
def served(project: Repo) -> Iterator[Repo]:
    with serving(project.path):
        yield project


def children() -> list[int]:
    listed = subprocess.run(["pgrep", "-P", str(os.getpid()), "-x", "git"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listed.stdout.split()]


def sha256(folder: Path) -> str:
    git("init", "--quiet", "--object-format=sha256", str(folder), cwd=folder.parent)
    tree = git("hash-object", "-t", "tree", "-w", "--stdin", cwd=folder, stdin="").stdout.strip()
    return git("commit-tree", tree, cwd=folder, stdin="start\n", env=AUTHOR.variables).stdout.strip()


@pytest.mark.parametrize("name", NAMES)
def test_a_commit_is_the_one_that_git_makes(project: Repo, base: str, name: str) -> None:
    time = datetime(2026, 11, 18, 12, 30, 15, 900_000, timezone(timedelta(hours=-3, minutes=-30)))
    tree, message = commits.tree_of(project.path, base), "Größe\n\nbody\n\nIterdev-Task: A\n"
    author = Identity(name, "a@iterdev.invalid")
    dates = {f"GIT_{who}_DATE": f"{int(time.timestamp())} -0330" for who in ("AUTHOR", "COMMITTER")}

    parents = ("-p", base, "-p", base)
    made = git("commit-tree", tree, *parents, cwd=project.path, stdin=message, env=author.variables | dates).stdout

    # Git leaves out a parent that is named twice.
    text = commits.commit_text(tree, [base], message, author, time)
    assert text.decode() == git("cat-file", "commit", made.strip(), cwd=project.path).stdout


def test_a_commit_that_was_written_is_whole(served: Repo, base: str) -> None:
    commit = commits.commit_tree(served.path, commits.tree_of(served.path, base), [base], "new\n", AUTHOR)

    assert served.git("log", "-1", "--format=%an <%ae>%n%s%n%P", commit).splitlines() == [
        f"{AUTHOR.name} <{AUTHOR.email}>",
        "new",
        base,
    ]
    served.git("fsck", "--strict")


def test_a_repository_with_longer_hashes_is_served_too(project: Repo, tmp_path: Path) -> None:
    folder = tmp_path / "longer"
    start = sha256(folder)

    with serving(folder):
        commit = commits.commit_tree(folder, commits.tree_of(folder, start), [start], "new\n", AUTHOR)
        assert refs.move_ref(folder, "refs/iterdev/x", commit, refs.ZERO)
        assert commits.changed_files(folder, start, commit) == ()

    assert refs.resolve(folder, "refs/iterdev/x") == commit
    assert len(commit) == 64


def test_the_changed_files_are_the_same(project: Repo, base: str) -> None:
    for name in ODD_NAMES:
        (project.path / name).write_text("new")
    (project.path / "deep" / "er").mkdir(parents=True)
    (project.path / "deep" / "er" / "file").write_text("new")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "odd")
    expected = commits.changed_files(project.path, base, "HEAD")

    with serving(project.path):
        found = [commits.changed_files(project.path, *pair) for pair in ((base, "HEAD"), ("HEAD", base), (base, base))]

    assert found == [expected, expected, ()]


def test_the_text_of_a_difference_is_the_same(project: Repo, base: str) -> None:
    lines = "".join(f"line {number}\n" for number in range(50))
    project.write("old.txt", lines)
    project.write("bytes", "\0\1\2")
    before = project.commit("before")
    project.git("mv", "old.txt", "new.txt")
    for name, text in (("new.txt", f"{lines}more\n"), ("Größe.txt", "a\r\nb"), ("bytes", "\0\3"), ("deep/file", "x")):
        project.write(name, text)
    after = project.commit("after")
    expected = commits.diff_text(project.path, before, after, 10_000)

    with serving(project.path):
        found = commits.diff_text(project.path, before, after, 10_000)

    assert found == expected
    assert "rename from old.txt" in found


def test_a_difference_above_the_limit_is_left_out_and_the_next_one_is_shown(served: Repo, base: str) -> None:
    served.write("large.txt", "line\n" * 100_000)
    large = served.commit("large")
    served.write("small.txt", "x\n")
    small = served.commit("small")

    shown = [commits.diff_text(served.path, *pair, 1000) for pair in ((base, large), (large, small))]

    assert shown[0] == ""
    assert "small.txt" in shown[1]


def test_a_ref_that_is_elsewhere_is_not_moved(served: Repo, base: str) -> None:
    assert refs.move_ref(served.path, "refs/iterdev/x", base, refs.ZERO)

    assert not refs.move_ref(served.path, "refs/iterdev/x", base, refs.ZERO)

    assert refs.move_refs(served.path, ("refs/iterdev/y", base, refs.ZERO), ("refs/iterdev/x", base, base))


def test_of_several_refs_all_are_moved_or_none(served: Repo, base: str) -> None:
    refs.move_ref(served.path, "refs/iterdev/x", base)

    assert not refs.move_refs(served.path, ("refs/iterdev/y", base, refs.ZERO), ("refs/iterdev/x", base, refs.ZERO))

    assert refs.resolve(served.path, "refs/iterdev/y") is None


def test_what_git_refuses_is_told_as_ever(served: Repo) -> None:
    with pytest.raises(GitFailed, match=r"not a valid SHA1|invalid|nonexistent"):
        refs.move_ref(served.path, "refs/iterdev/x", "0" * 39 + "1")


def test_a_process_that_was_killed_is_replaced(served: Repo, base: str) -> None:
    refs.move_ref(served.path, "refs/iterdev/x", base)
    for pid in children():
        os.kill(pid, signal.SIGKILL)

    assert refs.move_ref(served.path, "refs/iterdev/y", base)


def test_in_the_end_no_process_is_left(project: Repo, base: str) -> None:
    with serving(project.path):
        refs.move_ref(project.path, "refs/iterdev/x", base)
        assert children()

    assert not children()


def test_a_branch_that_is_checked_out_is_found_without_git(project: Repo, base: str, tmp_path: Path) -> None:
    session = SessionId("ids-demo")
    session_branch.create(project.path, session, base)
    before = session_branch.is_checked_out(project.path, session)

    project.git("worktree", "add", "-q", str(tmp_path / "elsewhere"), "iterdev/ids-demo")

    assert (before, session_branch.is_checked_out(project.path, session)) == (False, True)
