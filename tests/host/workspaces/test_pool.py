import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.conftest import contents, label, without_power_over_files

from iterdev.core.errors import HostError
from iterdev.host.git import landing, refs
from iterdev.host.git.worktrees import head, is_untouched
from iterdev.host.workspaces.pool import Pool, Workspace


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "state" / "project" / "ids-demo"


@pytest.fixture
def pool(project: Repo, home: Path) -> Pool:
    return pool_at(project, home)


def pool_at(project: Repo, home: Path) -> Pool:
    return Pool(project.path, home, home.parent.parent / "tmp")


def lend(pool: Pool, commit: str, task: str = "DEV-001", number: int = 1) -> Workspace:
    return pool.borrow(commit, task=task, number=number)[0]


def worktrees(repo: Repo) -> set[Path]:
    lines = repo.git("worktree", "list", "--porcelain").splitlines()
    found = {Path(line.removeprefix("worktree ")) for line in lines if line.startswith("worktree ")}
    return found - {repo.path}


def test_a_workspace_is_a_worktree_at_the_commit_outside_of_the_checkout(project: Repo, pool: Pool, base: str) -> None:
    before = contents(project.path)

    workspace, fresh = pool.borrow(base, task="DEV-001", number=1)

    assert fresh
    assert contents(workspace.tree) == before == contents(project.path)
    assert head(workspace.tree) == base
    assert refs.current_branch(workspace.tree) == ""
    assert workspace.temp.is_dir()
    assert not workspace.tree.is_relative_to(project.path)


def test_workspaces_that_are_lent_at_once_are_different_ones(pool: Pool, base: str) -> None:
    slots = [lend(pool, base, f"DEV-00{number}").slot for number in range(3)]

    assert len(set(slots)) == 3


def test_threads_never_get_the_same_workspace(project: Repo, pool: Pool, base: str) -> None:
    lent: list[Path] = []
    errors: list[Exception] = []

    def attempt(task: str) -> None:
        try:
            for number in range(3):
                workspace = lend(pool, base, task, number)
                lent.append(workspace.slot)
                (workspace.tree / "mine").write_text(task)
                assert (workspace.tree / "mine").read_text() == task
                assert json.loads((workspace.slot / "attempt.json").read_text())["task"] == task
                pool.give_back(workspace)
        except Exception as error:  # noqa: BLE001 - a thread's error has to be told to the test
            errors.append(error)

    threads = [threading.Thread(target=attempt, args=(f"DEV-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    assert errors == []
    assert len(set(lent)) <= 4
    pool.close()
    assert worktrees(project) == set()


def test_a_workspace_is_used_again_with_every_file_reset_but_ignored_ones(project: Repo, pool: Pool, base: str) -> None:
    project.write(".gitignore", "node_modules/\n")
    later = project.commit()
    first = lend(pool, later)
    (first.tree / "node_modules").mkdir()
    (first.tree / "node_modules" / "made-by-setup").touch()
    (first.tree / "README.md").write_text("changed")
    (first.tree / "iterdev.toml").unlink()
    (first.tree / "new").mkdir()
    (first.tree / "new" / "file").touch()
    (first.temp / "scratch").touch()
    first.result.write_text("{}")
    pool.give_back(first)

    second, fresh = pool.borrow(later, task="DEV-002", number=1)

    setup = {"node_modules", "node_modules/made-by-setup"}
    assert (second, fresh) == (first, False)
    assert contents(second.tree).keys() - contents(project.path).keys() == setup
    assert (second.tree / "README.md").read_text() == "# Sample\n"
    assert is_untouched(second.tree, later)
    assert list(second.temp.iterdir()) == []
    assert not second.result.exists()


READ_ONLY = """
import subprocess, sys
from pathlib import Path
from tests.host.conftest import label
from iterdev.host.git import landing
from iterdev.host.workspaces.pool import Pool
top, home, base = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
pool = Pool(top, home, home.parent.parent / "tmp")
first, _ = pool.borrow(base, task="DEV-001", number=1)
script = 'mkdir -p new/deep "$0/cache"; touch new/deep/file "$0/cache/file"; chmod -R a-w . "$0/cache"'
subprocess.run(["sh", "-e", "-c", script, str(first.temp)], cwd=first.tree, check=True)
assert landing.keep(top, first.tree, base, label())
pool.give_back(first)
second, _ = pool.borrow(base, task="DEV-002", number=1)
print(second.slot == first.slot, (second.tree / "new").exists(), list(second.temp.iterdir()))
(second.tree / "README.md").parent.chmod(0o555)
pool.give_back(second)
pool.close()
print(home.exists())
"""


def test_folders_that_an_agent_left_read_only_are_emptied_and_removed_like_others(
    project: Repo, home: Path, base: str
) -> None:
    printed = without_power_over_files(READ_ONLY, str(project.path), str(home), base)

    assert printed == "True False []\nFalse\n"
    assert worktrees(project) == set()


def test_a_workspace_moves_to_the_commit_that_is_wanted(project: Repo, pool: Pool, base: str) -> None:
    pool.give_back(lend(pool, base))
    project.write("later.txt", "later\n")
    later = project.commit()

    workspace = lend(pool, later)

    assert is_untouched(workspace.tree, later)
    assert (workspace.tree / "later.txt").exists()


def test_a_workspace_that_was_marked_clean_is_not_reset(project: Repo, pool: Pool, base: str) -> None:
    first = lend(pool, base)
    pool.mark_clean(first, base)
    pool.give_back(first)

    same = lend(pool, base)
    pool.mark_clean(same, base)
    pool.give_back(same)
    project.write("later.txt", "later\n")
    later = lend(pool, project.commit())

    assert later == same
    assert (later.tree / "later.txt").exists()
    assert later.temp.is_dir()


def test_of_several_workspaces_the_one_at_the_commit_is_lent(project: Repo, pool: Pool, base: str) -> None:
    at_base, other = lend(pool, base), lend(pool, base)
    project.write("later.txt", "later\n")
    later = project.commit()
    for workspace, commit in ((at_base, base), (other, later)):
        pool.mark_clean(workspace, commit)
        pool.give_back(workspace)

    assert lend(pool, base) == at_base


@pytest.mark.parametrize(
    "script",
    [
        "git checkout -qb feature; echo 1 > a; git add a; git commit -qm a",
        "git checkout -q --orphan fresh; git rm -rqf .",
        "echo 1 > a; git add a; git stash -q",
        "git init -q inner; echo 1 > inner/file",
        "chmod +x README.md; rm -f iterdev.toml; ln -s README.md iterdev.toml",
    ],
    ids=["branch", "unborn", "stash", "inner repository", "modes"],
)
def test_whatever_an_agent_did_the_next_one_starts_at_the_commit(
    project: Repo, pool: Pool, base: str, script: str
) -> None:
    workspace = lend(pool, base)
    subprocess.run(["sh", "-ec", script], cwd=workspace.tree, check=True, capture_output=True)
    pool.give_back(workspace)

    again = lend(pool, base)

    assert is_untouched(again.tree, base)
    assert contents(again.tree) == contents(project.path)


@pytest.mark.parametrize(
    "script",
    [
        "echo gitdir: /nowhere > .git",
        "rm .git",
        'rm -rf "$PWD"',
        "rm .git; git init -q",
        'touch "$(git rev-parse --git-path index.lock)"',
        'rm -rf "$(git rev-parse --git-dir)"',
    ],
    ids=["broken link", "no link", "gone", "another repository", "locked", "forgotten by git"],
)
def test_a_broken_worktree_is_replaced_by_a_new_one(project: Repo, pool: Pool, base: str, script: str) -> None:
    workspace = lend(pool, base)
    subprocess.run(["sh", "-c", script], cwd=workspace.tree, check=True)
    pool.give_back(workspace)

    again, fresh = pool.borrow(base, task="DEV-002", number=1)

    assert fresh
    assert is_untouched(again.tree, base)
    assert contents(again.tree) == contents(project.path)


def test_an_agent_that_deleted_its_whole_workspace_is_handled(pool: Pool, base: str) -> None:
    workspace = lend(pool, base)
    shutil.rmtree(workspace.slot)

    assert workspace.unexpected_entries() == []
    pool.give_back(workspace)
    again, fresh = pool.borrow(base, task="DEV-002", number=1)

    assert fresh
    assert is_untouched(again.tree, base)


def test_what_was_written_beside_the_worktree_is_noticed_and_removed(pool: Pool, base: str) -> None:
    workspace = lend(pool, base)
    workspace.result.write_text("{}")
    (workspace.temp / "file").touch()
    before = workspace.unexpected_entries()
    (workspace.slot / "escaped.txt").touch()
    (workspace.slot / "folder").mkdir()
    (workspace.slot / ".hidden").touch()
    (workspace.slot / "link").symlink_to(workspace.tree)

    assert before == []
    assert workspace.unexpected_entries() == [".hidden", "escaped.txt", "folder", "link"]
    pool.give_back(workspace)
    assert workspace.unexpected_entries() == []
    assert (workspace.tree / "README.md").exists()


def test_what_a_killed_engine_left_lent_out_is_found_again(project: Repo, pool: Pool, home: Path, base: str) -> None:
    pool.give_back(lend(pool, base, "DESIGN-001"))
    lend(pool, base, "DEV-001", 3)
    workspace = lend(pool, base, "DEV-002", 1)
    (workspace.tree / "precious").write_text("work\n")

    found = {borrower.task: (left, borrower) for left, borrower in pool_at(project, home).leftovers()}

    assert found.keys() == {"DEV-001", "DEV-002"}
    assert (found["DEV-001"][1].number, found["DEV-002"][1].number) == (3, 1)
    left, borrower = found["DEV-002"]
    assert borrower.base == base
    kept = landing.keep_interrupted(project.path, left.tree, base, label("DEV-002"))
    assert project.git("show", f"{kept}:precious") == "work"


@pytest.mark.parametrize("loss", [".git", ""], ids=["the link", "the worktree"])
def test_what_a_killed_engine_left_is_found_although_its_agent_removed_something(
    project: Repo, pool: Pool, home: Path, base: str, loss: str
) -> None:
    tree = lend(pool, base).tree
    (tree / "precious").write_text("work\n")
    if loss:
        (tree / loss).unlink()
    else:
        shutil.rmtree(tree)
    after = pool_at(project, home)

    ((left, borrower),) = after.leftovers()
    kept = landing.keep_interrupted(project.path, left.tree, borrower.base, label())
    after.give_back(left)
    after.close()

    assert bool(kept) == bool(loss)
    assert worktrees(project) == set()
    assert not home.exists()


@pytest.mark.parametrize("script", ['mv "$PWD" ../renamed', "git worktree move . ../renamed"])
def test_a_worktree_that_was_renamed_in_its_slot_gets_its_name_back(
    project: Repo, pool: Pool, base: str, script: str
) -> None:
    workspace = lend(pool, base)
    (workspace.tree / "precious").write_text("work\n")
    subprocess.run(["sh", "-ec", script], cwd=workspace.tree, check=True)

    workspace.restore_name()
    kept = landing.keep(project.path, workspace.tree, base, label())

    assert workspace.unexpected_entries() == []
    assert project.git("show", f"{kept}:precious") == "work"


def test_the_workspaces_of_a_repository_that_was_moved_are_found(project: Repo, home: Path, base: str) -> None:
    pool = pool_at(project, home)
    pool.give_back(lend(pool, base))
    workspace = lend(pool, base)
    (workspace.tree / "precious").write_text("work\n")
    project.path = project.path.rename(project.path.with_name("renamed"))
    after = pool_at(project, home.parent.with_name("renamed") / home.name)

    after.fetch_moved()
    ((left, borrower),) = after.leftovers()
    kept = landing.keep_interrupted(project.path, left.tree, borrower.base, label())
    after.give_back(left)
    after.close()

    assert project.git("show", f"{kept}:precious") == "work"
    assert worktrees(project) == set()
    assert not home.parent.exists()
    assert not workspace.temp.exists()


def test_the_workspaces_of_a_repository_that_was_copied_stay_where_they_are(
    project: Repo, pool: Pool, home: Path, base: str
) -> None:
    tree = lend(pool, base).tree
    copy = Repo(shutil.copytree(project.path, project.path.with_name("copy")), project.home)

    pool_at(copy, home.parent.with_name("copy") / home.name).fetch_moved()

    assert head(tree) == base
    assert worktrees(project) == {tree}


def test_a_slot_that_is_set_aside_stays_as_it_is_and_is_lent_no_more(
    project: Repo, pool: Pool, home: Path, base: str
) -> None:
    places = []
    for _ in range(2):
        workspace = lend(pool, base)
        (workspace.tree / "precious").write_text("work\n")
        places.append(pool.set_aside(workspace))
        pool.give_back(workspace)

    pool.close()

    assert [(place / "tree" / "precious").read_text() for place in places] == ["work\n"] * 2
    assert not home.exists()
    assert worktrees(project) == set()


@pytest.mark.parametrize("said", [True, False], ids=["where it is", "nothing yet"])
def test_the_lock_of_a_git_that_was_killed_while_it_added_a_worktree_is_removed(
    project: Repo, pool: Pool, home: Path, base: str, *, said: bool
) -> None:
    workspace = lend(pool, base)
    admin = project.path / ".git" / "worktrees" / "tree"
    (admin / "locked").write_text("initializing")
    os.utime(admin / "locked", (0, 0))
    shutil.rmtree(workspace.slot)
    if not said:
        (admin / "gitdir").unlink()

    pool_at(project, home).close()

    assert not admin.exists()


def test_closing_forgets_no_worktree_of_the_user_that_is_away(project: Repo, pool: Pool, tmp_path: Path) -> None:
    project.git("worktree", "add", "-q", "--detach", str(tmp_path / "removable"))
    shutil.rmtree(tmp_path / "removable")

    pool.close()

    assert tmp_path / "removable" in worktrees(project)


def test_a_workspace_is_never_lent_twice_after_a_crash(project: Repo, pool: Pool, home: Path, base: str) -> None:
    first = lend(pool, base, "DEV-001")
    lend(pool, base, "DEV-002")
    pool.give_back(first)
    after = pool_at(project, home)
    for left, _ in list(after.leftovers()):
        after.give_back(left)

    slots = [lend(after, base, f"DEV-01{number}").slot for number in range(4)]

    assert len(set(slots)) == 4


def test_a_workspace_of_a_killed_engine_is_set_up_again(project: Repo, pool: Pool, home: Path, base: str) -> None:
    lend(pool, base)
    after = pool_at(project, home)
    for left, _ in list(after.leftovers()):
        after.give_back(left)

    _, fresh = after.borrow(base, task="DEV-001", number=2)

    assert fresh


def test_a_workspace_whose_borrower_was_half_written_is_removed(
    project: Repo, pool: Pool, home: Path, base: str
) -> None:
    workspace = lend(pool, base)
    (workspace.slot / "attempt.json").write_text('{"task": "DEV')
    after = pool_at(project, home)

    assert list(after.leftovers()) == []
    after.close()
    assert worktrees(project) == set()
    assert not home.exists()


def test_closing_removes_every_worktree_and_every_folder(project: Repo, pool: Pool, home: Path, base: str) -> None:
    for workspace in [lend(pool, base, f"DEV-00{number}") for number in range(3)]:
        pool.give_back(workspace)
    before = len(worktrees(project))

    pool.close()

    assert (before, worktrees(project)) == (3, set())
    assert not (project.path / ".git" / "worktrees").exists()
    assert not home.parent.exists()


def test_closing_leaves_what_is_lent_out(project: Repo, pool: Pool, home: Path, base: str) -> None:
    lent = lend(pool, base, "DEV-001")
    pool.give_back(lend(pool, base, "DEV-002"))
    (lent.tree / "precious").touch()

    pool.close()

    assert worktrees(project) == {lent.tree}
    assert (lent.tree / "precious").exists()
    assert [borrower.task for _, borrower in pool_at(project, home).leftovers()] == ["DEV-001"]


def test_closing_removes_what_a_killed_engine_had_been_given_back(
    project: Repo, pool: Pool, home: Path, base: str
) -> None:
    pool.give_back(lend(pool, base))

    pool_at(project, home).close()

    assert worktrees(project) == set()
    assert not home.exists()


def test_closing_leaves_worktrees_of_the_user_and_of_other_sessions(
    project: Repo, pool: Pool, home: Path, tmp_path: Path, base: str
) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "users"), "-b", "feature")
    other = pool_at(project, home.parent / "ids-other")
    kept = lend(other, base)
    other.give_back(kept)
    pool.give_back(lend(pool, base))

    pool.close()

    assert worktrees(project) == {tmp_path / "users", kept.tree}


def test_closing_a_pool_that_was_never_used_is_handled(pool: Pool, home: Path) -> None:
    pool.close()

    assert not home.exists()


def test_a_place_that_cannot_be_written_to_is_an_error_of_the_host(project: Repo, tmp_path: Path, base: str) -> None:
    (tmp_path / "file").touch()
    pool = pool_at(project, tmp_path / "file" / "ids-demo")

    with pytest.raises(HostError, match="Cannot create the workspace") as failure:
        lend(pool, base)

    assert "ITERDEV_HOME" in failure.value.hint


def test_a_commit_that_does_not_exist_is_an_error_of_the_host(pool: Pool) -> None:
    with pytest.raises(HostError):
        lend(pool, "f" * 40)
