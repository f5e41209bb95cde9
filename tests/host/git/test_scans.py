"""How often git looks at every file of a large worktree, and that what it found before is never used for too long."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.conftest import label
from tests.host.git.test_index import FILE, ways
from tests.host.git.test_landing import shell

from iterdev.host import folder_stamp
from iterdev.host.git import landing, scans, worktrees
from iterdev.host.workspaces.untracked_files import new_ignored, note_ignored, remove_new_ignored

SCANNING = {"status", "add", "checkout", "reset", "clean", "restore", "diff-files", "update-index"}
"""Commands with which git looks at every file, unless files are named to it."""


@pytest.fixture
def large(project: Repo) -> Repo:
    """A repository with more files than a stamp is made of."""
    for number in range(folder_stamp.MOST + 1):
        (project.path / f"many-{number}").write_text("")
    (project.path / ".gitignore").write_text("*.log\nbuild/\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "many")
    return project


@pytest.fixture
def base(large: Repo) -> str:
    return large.git("rev-parse", "HEAD")


@pytest.fixture
def tree(large: Repo, base: str, tmp_path: Path) -> Path:
    tree = tmp_path / "large" / "tree"
    worktrees.add(large.path, tree, base)
    return tree


@pytest.fixture
def scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Names the commands that looked at every file."""
    home, traces = tmp_path / "traced", tmp_path / "traces"
    home.mkdir()
    traces.mkdir()
    (home / ".gitconfig").write_text(f"[trace2]\n\teventTarget = {traces}\n")
    monkeypatch.setenv("HOME", str(home))

    def names() -> list[str]:
        started = [json.loads(line) for file in sorted(traces.iterdir()) for line in file.read_text().splitlines()]
        words = [line["argv"] for line in started if line["event"] == "start"]
        return [name for one in words for name in SCANNING.intersection(one) if "--pathspec-from-file=-" not in one]

    return names


def agent(tree: Path, script: str) -> None:
    with scans.occupied(tree):
        shell(tree, script)


def change(repo: Repo, name: str, text: str) -> str:
    (repo.path / name).write_text(text)
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", name)
    return repo.git("rev-parse", "HEAD")


def test_git_looks_at_every_file_once_for_each_program_that_ran(
    large: Repo, base: str, tree: Path, scanned: Callable[[], list[str]]
) -> None:
    note_ignored(tree)
    assert worktrees.is_untouched(tree, base)
    assert scanned() == ["status"]

    agent(tree, "echo work > many-7; echo new > new.txt; echo noise > new.log")
    commit = landing.keep(large.path, tree, base, label())
    assert commit
    assert new_ignored(tree) == ["new.log"]
    remove_new_ignored(tree)
    worktrees.set_head(large.path, tree, commit)
    assert worktrees.is_untouched(tree, commit)
    assert scanned() == ["status"] * 2
    assert large.git("diff", "--name-only", base, commit).split() == ["many-7", "new.txt"]

    note_ignored(tree)
    agent(tree, "echo noise > other.log")
    remove_new_ignored(tree)
    assert worktrees.is_untouched(tree, commit)
    assert scanned() == ["status"] * 3
    assert not (tree / "other.log").exists()


def test_a_large_worktree_is_moved_to_another_commit_without_looking_at_every_file(
    large: Repo, base: str, tree: Path, scanned: Callable[[], list[str]]
) -> None:
    later = change(large, "many-1", "later")
    assert worktrees.is_untouched(tree, base)

    worktrees.reset(large.path, tree, later)
    note_ignored(tree)

    assert scanned() == ["status"]
    assert worktrees.head(tree) == later
    assert (tree / "many-1").read_text() == "later"
    assert subprocess.check_output(["git", "status", "--porcelain"], cwd=tree) == b""


def test_an_ignored_file_in_the_place_of_one_of_the_commit_is_replaced(large: Repo, base: str, tree: Path) -> None:
    (large.path / "kept.log").write_text("of the commit")
    large.git("add", "-f", "kept.log")
    later = change(large, "many-1", "later")
    (tree / "kept.log").write_text("ignored")
    assert worktrees.is_untouched(tree, base)

    worktrees.reset(large.path, tree, later)

    assert (tree / "kept.log").read_text() == "of the commit"
    assert worktrees.is_untouched(tree, later)


def test_a_merge_that_an_agent_left_unfinished_ends_with_the_reset(large: Repo, base: str, tree: Path) -> None:
    later = change(large, "many-1", "later")
    admin = scans.git_dir(tree)
    agent(tree, f"echo {later} > '{admin}/CHERRY_PICK_HEAD'")
    assert worktrees.is_untouched(tree, base)

    worktrees.reset(large.path, tree, later)

    assert not (admin / "CHERRY_PICK_HEAD").exists()
    assert worktrees.is_untouched(tree, later)


@ways
def test_what_was_found_while_an_agent_had_hidden_its_change_is_not_used_later(
    base: str, tree: Path, hide: Callable[[Path], None]
) -> None:
    note_ignored(tree)
    with scans.occupied(tree):
        hide(tree)
    new_ignored(tree)

    assert not worktrees.is_untouched(tree, base)


def test_an_ignored_file_that_an_agent_added_all_the_same_is_kept_and_stays(large: Repo, base: str, tree: Path) -> None:
    note_ignored(tree)
    agent(tree, "echo wanted > wanted.log; git add -f wanted.log; echo noise > new.log")
    remove_new_ignored(tree)

    commit = landing.keep(large.path, tree, base, label())

    assert large.git("diff", "--name-only", base, str(commit)).split() == ["wanted.log"]
    assert (new_ignored(tree), (tree / "wanted.log").exists()) == ([], True)


def test_after_a_test_run_that_wrote_files_a_large_worktree_is_clean(base: str, tree: Path) -> None:
    assert worktrees.is_untouched(tree, base)
    commit = worktrees.staged(tree)
    agent(tree, f"echo changed > {FILE}; echo left > left.txt; rm many-3")

    worktrees.restore_staged(tree, commit)

    assert commit == base
    assert worktrees.is_untouched(tree, base)
    assert not (tree / "left.txt").exists()


def test_an_ignored_folder_is_looked_into_each_time(tree: Path) -> None:
    agent(tree, "mkdir -p build/inner; echo > build/inner/old.o")
    note_ignored(tree)
    agent(tree, "echo > build/inner/new.o; git init -q build/other; echo > build/other/file")

    assert new_ignored(tree) == ["build/inner/new.o", "build/other/"]
