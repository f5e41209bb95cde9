import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.conftest import contents, label

from iterdev.core.errors import HostError, UserError
from iterdev.core.types import SessionId
from iterdev.host import folder_stamp
from iterdev.host.git import checkout, commits, diffs, landing, merge, refs, scans, session_branch, worktrees
from iterdev.host.git.command import OLDEST, GitFailed, Identity, check_version, git, version

ODD_NAMES = ["a b.txt", "Größe 中.txt", "two\nlines.txt", "[id].txt", "*.txt", ":(top)x.txt", "-dash.txt", "a\tb"]


def index(repo: Repo) -> tuple[bytes, int]:
    path = repo.path / ".git" / "index"
    return path.read_bytes(), path.stat().st_mtime_ns


def test_the_version_that_is_installed_is_known() -> None:
    found = version()

    assert found >= OLDEST
    check_version(found)


def test_a_git_without_the_merge_of_trees_is_refused() -> None:
    with pytest.raises(HostError, match=r"git 2\.37 is too old, iterdev needs 2\.38 or newer"):
        check_version((2, 37))


def test_a_missing_git_is_an_error_of_the_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(HostError, match="git is not installed"):
        version()


def test_a_failure_quotes_what_git_said(project: Repo) -> None:
    with pytest.raises(GitFailed, match=r"`git rev-parse nothing` failed with 128: fatal: ambiguous argument"):
        git("rev-parse", "nothing", cwd=project.path)


def test_the_top_is_found_from_a_folder_below_it(project: Repo) -> None:
    (project.path / "a" / "b c").mkdir(parents=True)

    assert checkout.top_level(project.path / "a" / "b c") == project.path


def test_a_linked_worktree_is_a_checkout_of_its_own(project: Repo, tree: Path) -> None:
    assert checkout.top_level(tree) == tree


def test_a_folder_outside_of_any_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f'"{tmp_path}" is not in a git repository'):
        checkout.top_level(tmp_path)


def test_a_bare_repository_is_refused_with_a_way_to_work_on_it(project: Repo, tmp_path: Path) -> None:
    bare = tmp_path / "a shop.git"
    project.git("clone", "-q", "--bare", str(project.path), str(bare))

    with pytest.raises(UserError, match=f'"{bare}" is a bare repository') as refusal:
        checkout.top_level(bare)

    subprocess.run(refusal.value.hint, shell=True, check=True)
    assert checkout.top_level(tmp_path / "a-shop-work") == tmp_path / "a-shop-work"


def test_beside_the_worktrees_of_a_bare_repository_one_of_them_is_named(project: Repo, tmp_path: Path) -> None:
    place = tmp_path / "a shop"
    project.git("clone", "-q", "--bare", str(project.path), str(place / ".bare"))
    (place / ".git").write_text("gitdir: ./.bare\n")

    with pytest.raises(UserError, match=f'"{place / ".bare"}" is a bare repository') as none_yet:
        checkout.top_level(place)
    subprocess.run(none_yet.value.hint, shell=True, check=True)
    with pytest.raises(UserError, match=f'"{place}" has no files to work on') as refusal:
        checkout.top_level(place)

    assert refusal.value.hint == f"cd '{place / 'bare-work'}'"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_in_a_repository_of_another_owner_the_hint_names_what_git_has_to_trust(project: Repo) -> None:
    folder = project.path / "inner"
    folder.mkdir()
    for path in (project.path, project.path / ".git", folder):
        os.chown(path, 12345, 12345)

    with pytest.raises(HostError, match="git does not trust") as refusal:
        checkout.top_level(folder)
    subprocess.run(refusal.value.hint, shell=True, check=True, env=project.env)

    assert checkout.top_level(folder) == project.path


def test_inside_of_gits_own_folder_the_checkout_is_named(project: Repo) -> None:
    with pytest.raises(UserError, match="inside of git's own folder") as refusal:
        checkout.top_level(project.path / ".git" / "refs")

    assert refusal.value.hint == f"cd {project.path}"


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=f'The folder "{tmp_path}/gone" does not exist'):
        checkout.top_level(tmp_path / "gone")


def test_a_repository_without_commits_is_refused_with_a_way_out(tmp_path: Path) -> None:
    checkout.init(tmp_path, "main")

    with pytest.raises(UserError, match="has no commits yet") as refusal:
        refs.head(tmp_path)

    assert refusal.value.hint.startswith("git add -A && git commit")


def test_head_branch_and_refs_are_read(project: Repo, base: str) -> None:
    project.git("branch", "other")
    on_branch = refs.current_branch(project.path)
    project.git("checkout", "-q", "--detach")

    assert (refs.head(project.path), on_branch, refs.current_branch(project.path)) == (base, "main", "")
    assert refs.resolve(project.path, "refs/heads/other") == base
    assert refs.resolve(project.path, "refs/heads/nothing") is None


def test_a_branch_is_called_what_it_is_called_although_a_tag_has_its_name(project: Repo) -> None:
    project.git("tag", "main")

    assert refs.current_branch(project.path) == "main"


def test_worktrees_and_their_repository_lead_to_each_other_by_absolute_paths_whatever_is_configured(
    project: Repo,
) -> None:
    project.git("config", "worktree.useRelativePaths", "true")

    assert git("config", "worktree.useRelativePaths", cwd=project.path).stdout == "false\n"


def test_the_variables_of_the_calling_process_do_not_lead_elsewhere(
    project: Repo, tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))

    assert checkout.top_level(project.path) == project.path
    assert refs.head(project.path) == base
    assert checkout.status(project.path) == []


def test_a_difference_is_shown_of_the_repository_that_it_is_asked_of(
    project: Repo, tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project.write("new.txt", "text\n")
    later = project.commit()
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))

    diffs.show(project.path, base, later, plain=True)

    assert "+++ b/new.txt" in capfd.readouterr().out


def test_looking_does_not_change_a_byte_of_the_users_index(project: Repo, tree: Path, base: str) -> None:
    project.write("more.txt", "more\n")
    later = project.commit()
    path = project.path / "README.md"
    os.utime(path, (time.time() - 1000, time.time() - 1000))
    project.write("new.txt", "untracked\n")
    project.write("iterdev.toml", "changed = true\n")
    before, files = index(project), contents(project.path)

    checkout.top_level(project.path)
    refs.head(project.path)
    refs.current_branch(project.path)
    refs.resolve(project.path, "main")
    checkout.status(project.path)
    commits.changed_files(project.path, base, later)
    refs.is_ancestor(project.path, base, later)
    checkout.exclude(project.path, "/.workflow/")
    merge.try_merge(project.path, base, later)
    commits.tree_of(project.path, later)
    (tree / "mine.txt").write_text("mine\n")
    commit = landing.keep(project.path, tree, base, label())
    assert commit
    session_branch.create(project.path, SessionId("ids-demo"), base)
    landing.land(project.path, commit, label(), worked_on=base, tip=base)
    worktrees.reset(project.path, tree, base)
    worktrees.remove(project.path, tree)
    worktrees.forget_deleted(project.path, tree.parent)

    assert index(project) == before
    assert contents(project.path) == files
    assert (project.git("rev-parse", "main"), project.git("symbolic-ref", "HEAD")) == (later, "refs/heads/main")


def test_the_status_names_what_differs_file_by_file(project: Repo) -> None:
    project.write("README.md", "changed\n")
    project.write("new/a b.txt", "")
    project.write("new/c.txt", "")
    project.git("mv", "iterdev.toml", "moved.toml")

    entries = checkout.status(project.path)

    assert sorted(entries) == [
        " M README.md",
        "?? new/a b.txt",
        "?? new/c.txt",
        "A  moved.toml",
        "D  iterdev.toml",
    ]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_changed_file_is_named_as_it_is_called(project: Repo, base: str, name: str) -> None:
    project.write(name, "text\n")
    later = project.commit()

    assert commits.changed_files(project.path, base, later) == (name,)


def test_a_renamed_file_counts_as_two_changes(project: Repo, base: str) -> None:
    project.git("mv", "README.md", "READ.md")

    assert commits.changed_files(project.path, base, project.commit()) == ("READ.md", "README.md")


def test_a_name_that_is_no_text_can_still_be_written_down(project: Repo, base: str) -> None:
    (Path(os.fsdecode(os.fsencode(project.path) + b"/caf\xe9.txt"))).write_text("x")
    status = checkout.status(project.path)

    names = commits.changed_files(project.path, base, project.commit())

    assert [name.encode() for name in names] == [rb"caf\xe9.txt"]
    assert [entry.encode() for entry in status] == [rb"?? caf\xe9.txt"]


def test_a_pattern_is_excluded_once_and_out_of_the_users_sight(project: Repo) -> None:
    path = project.path / ".git" / "info" / "exclude"
    path.write_text("mine\nno newline at the end")

    checkout.exclude(project.path, "/.workflow/")
    checkout.exclude(project.path, "/.workflow/")

    assert path.read_text() == "mine\nno newline at the end\n/.workflow/\n"
    project.write(".workflow/file", "")
    assert checkout.status(project.path) == []


def test_a_pattern_is_excluded_beside_others_that_are_no_text(project: Repo) -> None:
    path = project.path / ".git" / "info" / "exclude"
    path.write_bytes(b"gr\xf6\xdfe\n")

    checkout.exclude(project.path, "/.workflow/")

    assert path.read_bytes() == b"gr\xf6\xdfe\n/.workflow/\n"


def test_a_pattern_is_excluded_where_the_folder_of_excludes_is_missing(project: Repo) -> None:
    path = project.path / ".git" / "info" / "exclude"
    path.unlink()
    path.parent.rmdir()

    checkout.exclude(project.path, "/.workflow/")

    assert path.read_text() == "/.workflow/\n"


def test_an_exclude_file_that_cannot_be_written_is_an_error_of_the_host(project: Repo) -> None:
    path = project.path / ".git" / "info" / "exclude"
    path.unlink()
    path.mkdir()

    with pytest.raises(HostError, match="Cannot write"):
        checkout.exclude(project.path, "/.workflow/")


def test_a_reset_worktree_is_exactly_the_commit_but_keeps_ignored_files(project: Repo, base: str, tree: Path) -> None:
    project.write(".gitignore", "cache/\n")
    later = project.commit()
    worktrees.reset(project.path, tree, later)
    (tree / "cache").mkdir()
    (tree / "cache" / "made-by-setup").touch()
    (tree / "README.md").unlink()
    (tree / "iterdev.toml").write_text("spoiled")
    (tree / "new" / "deep").mkdir(parents=True)
    (tree / "new" / "deep" / "file").touch()
    subprocess.run(["git", "init", "-q", "nested"], cwd=tree, check=True)
    subprocess.run(["git", "add", "-A", "new"], cwd=tree, check=True)

    worktrees.reset(project.path, tree, later)

    wanted = contents(project.path) | contents(tree / "cache")
    assert {name.removeprefix("cache/") for name in contents(tree)} - {"cache"} == wanted.keys()
    assert worktrees.is_untouched(tree, later)
    assert not worktrees.is_untouched(tree, base)


def test_a_worktree_whose_files_were_committed_gets_their_commit_without_touching_them(
    project: Repo, tree: Path, base: str
) -> None:
    (tree / "new.txt").write_text("new\n")
    commit = commits.commit_tree(
        project.path, worktrees.write_tree(tree), [base], "new", Identity("a", "a@example.invalid")
    )

    worktrees.set_head(project.path, tree, commit)

    assert worktrees.is_untouched(tree, commit)
    assert (tree / "new.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    "command",
    ["branch new", "branch folder/new", "commit -qm more --allow-empty", "branch -D other", "pack-refs --all"],
)
def test_the_stamp_changes_when_a_branch_does(project: Repo, command: str) -> None:
    project.git("branch", "other")
    before = refs.branches_stamp(project.path)
    assert refs.branches_stamp(project.path) == before

    project.git(*command.split())

    assert refs.branches_stamp(project.path) != before


def test_the_stamp_does_not_change_when_a_session_lands(project: Repo) -> None:
    project.git("branch", "iterdev/ids-demo")
    before = refs.branches_stamp(project.path)

    project.git("branch", "-f", "iterdev/ids-demo", project.git("commit-tree", "-m", "landed", "HEAD^{tree}"))

    assert refs.branches_stamp(project.path) == before


@pytest.mark.parametrize(
    "touch",
    [
        lambda tree: (tree / "README.md").write_text("changed"),
        lambda tree: (tree / "new.txt").touch(),
        lambda tree: (tree / "README.md").unlink(),
    ],
    ids=["changed", "new", "deleted"],
)
def test_a_worktree_that_was_touched_is_seen(tree: Path, base: str, touch: Callable[[Path], object]) -> None:
    before = worktrees.is_untouched(tree, base)

    touch(tree)

    assert (before, worktrees.is_untouched(tree, base)) == (True, False)


def test_trees_are_merged_without_a_checkout(project: Repo, base: str) -> None:
    project.write("ours.txt", "ours\n")
    ours = project.commit()
    project.git("checkout", "-q", "-b", "other", base)
    project.write("theirs.txt", "theirs\n")
    theirs = project.commit()

    tree, complete, conflicts = merge.try_merge(project.path, ours, theirs)

    assert (complete, conflicts) == (True, ())
    assert project.git("ls-tree", "--name-only", str(tree)).split() == [
        "README.md",
        "iterdev.toml",
        "ours.txt",
        "theirs.txt",
    ]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_files_in_conflict_are_named_as_they_are_called(project: Repo, base: str, name: str) -> None:
    project.write(name, "ours\n")
    ours = project.commit()
    project.git("checkout", "-q", "-b", "other", base)
    project.write(name, "theirs\n")
    project.write("fine.txt", "fine\n")
    theirs = project.commit()

    assert merge.try_merge(project.path, ours, theirs)[1:] == (False, (name,))


def test_a_file_that_one_side_changed_and_the_other_deleted_is_in_conflict(project: Repo, base: str) -> None:
    project.git("rm", "-q", "README.md")
    ours = project.commit()
    project.git("checkout", "-q", "-b", "other", base)
    project.write("README.md", "changed\n")

    assert merge.try_merge(project.path, ours, project.commit())[1:] == (False, ("README.md",))


def test_a_ref_moves_only_from_where_it_was(project: Repo, base: str) -> None:
    project.write("a", "")
    later = project.commit()

    assert refs.move_ref(project.path, "refs/x/y", base, refs.ZERO)
    assert not refs.move_ref(project.path, "refs/x/y", later, refs.ZERO)
    assert not refs.move_ref(project.path, "refs/x/y", base, later)
    assert refs.move_ref(project.path, "refs/x/y", later, base)
    assert refs.resolve(project.path, "refs/x/y") == later


def test_a_ref_that_cannot_have_such_a_name_is_an_error(project: Repo, base: str) -> None:
    with pytest.raises(GitFailed):
        refs.move_ref(project.path, "refs/x/a..b", base)


def test_files_are_put_back_to_what_they_were(project: Repo, base: str, tree: Path) -> None:
    (tree / "README.md").write_text("changed")
    (tree / "iterdev.toml").unlink()
    (tree / "new file.txt").write_text("new")
    (tree / "[id].txt").write_text("new")
    (tree / "i.txt").write_text("stays")

    worktrees.restore_files(project.path, tree, base, ["README.md", "iterdev.toml", "new file.txt", "[id].txt"])

    assert contents(tree).keys() == {"README.md", "iterdev.toml", "i.txt"}
    assert (tree / "README.md").read_text() == "# Sample\n"


def test_a_repository_with_longer_hashes_can_be_worked_on(tmp_path: Path, project: Repo) -> None:
    top = tmp_path / "long"
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(top)], check=True)
    (top / "file").write_text("x")
    subprocess.run(["git", "add", "-A"], cwd=top, check=True)
    subprocess.run(["git", "commit", "-q", "-m", "x"], cwd=top, check=True)
    base = refs.head(top)

    worktrees.add(top, tmp_path / "tree", base)
    (tmp_path / "tree" / "new").write_text("x")
    commit = landing.keep(top, tmp_path / "tree", base, label())
    session_branch.create(top, SessionId("ids-demo"), base)

    assert commit
    assert landing.land(top, commit, label(), worked_on=base, tip=base).tip == commit


def test_the_locks_that_a_killed_git_left_on_the_refs_of_a_session_are_removed(project: Repo) -> None:
    head, names = project.git("rev-parse", "HEAD"), ("refs/heads/iterdev/ids-demo", "refs/iterdev/ids-demo/_tip")
    locks = [project.path / ".git" / f"{name}.lock" for name in names]
    for lock in locks:
        lock.parent.mkdir(parents=True)
        lock.touch()

    assert refs.move_refs(project.path, *((name, head, refs.ZERO) for name in names))
    assert [refs.resolve(project.path, name) for name in names] == [head, head]
    assert not any(lock.exists() for lock in locks)


@pytest.fixture
def many(project: Repo, tmp_path: Path) -> tuple[Path, str]:
    """A worktree with more files than a stamp is made of, and its commit."""
    for number in range(folder_stamp.MOST + 1):
        (project.path / f"many-{number}").write_text("")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "many")
    commit, tree = project.git("rev-parse", "HEAD"), tmp_path / "many" / "tree"
    worktrees.add(project.path, tree, commit)
    return tree, commit


def test_a_large_worktree_is_known_until_a_program_is_started_in_it(many: tuple[Path, str]) -> None:
    tree, commit = many
    assert worktrees.is_untouched(tree, commit)
    before = worktrees.known_commit(tree)

    with scans.occupied(tree):
        during = worktrees.known_commit(tree)
        (tree / "many-1").write_text("changed")

    assert (before, during, worktrees.known_commit(tree)) == (commit, "", "")
    assert not worktrees.is_untouched(tree, commit)


def test_a_large_worktree_is_not_known_while_a_program_runs_in_it(many: tuple[Path, str]) -> None:
    tree, commit = many

    with scans.occupied(tree):
        assert worktrees.is_untouched(tree, commit)
        assert worktrees.known_commit(tree) == ""

    assert worktrees.known_commit(tree) == ""


@pytest.mark.parametrize("write", [True, False])
def test_after_a_test_run_the_worktree_is_what_it_was(tree: Path, base: str, write: bool) -> None:  # noqa: FBT001
    assert worktrees.is_untouched(tree, base)
    commit = worktrees.staged(tree)
    if write:
        (tree / "left.txt").write_text("")

    worktrees.restore_staged(tree, commit)

    assert commit == base
    assert worktrees.is_untouched(tree, base)


def test_what_is_not_ignored_any_more_is_removed_from_a_worktree_that_was_clean(
    project: Repo, tree: Path, base: str
) -> None:
    (project.path / ".gitignore").write_text("*.log\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "ignore")
    ignoring = project.git("rev-parse", "HEAD")
    worktrees.reset(project.path, tree, ignoring)
    (tree / "left.log").write_text("")
    assert worktrees.is_untouched(tree, ignoring)
    assert worktrees.known_commit(tree) == ignoring

    worktrees.reset(project.path, tree, base)

    assert not (tree / "left.log").exists()
    assert worktrees.is_untouched(tree, base)
