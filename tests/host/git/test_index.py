"""What an agent can do to git's knowledge of its worktree so that changes would not be seen, with real git."""

import hashlib
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.conftest import contents, label
from tests.host.git.test_git import ODD_NAMES
from tests.host.git.test_landing import shell

from iterdev.host.git import commits, index, landing, refs, worktrees
from iterdev.host.git.command import git_names, users_git
from iterdev.host.git.confinement import git_dir
from iterdev.host.git.pinned_settings import pinned, told
from iterdev.host.untrusted_files import PRIVATE

FILE = "README.md"
HIDDEN = "hidden\n"


def flagged(*options: str) -> Callable[[Path], None]:
    def hide(tree: Path) -> None:
        shell(tree, f"printf '{HIDDEN}' > {FILE}; git {' '.join(options)} {FILE}")

    return hide


def written_by_another(tree: Path) -> str:
    """The tree that another process writes, which knows nothing of what was before."""
    path = f"Path({str(tree)!r})"
    code = f"from pathlib import Path\nfrom iterdev.host.git import worktrees\nprint(worktrees.write_tree({path}))"
    return subprocess.check_output([sys.executable, "-c", code], text=True).strip()


def forge_times(tree: Path) -> None:
    """Gives the entry of the old content the times and the size of the new one."""
    (tree / FILE).write_text(HIDDEN)
    path = tree / os.fsdecode(subprocess.check_output(["git", "rev-parse", "--git-path", "index"], cwd=tree)).strip()
    content, found = bytearray(path.read_bytes()[:-20]), (tree / FILE).stat()
    place = content.index(FILE.encode()) - 62
    for offset, time in ((0, found.st_ctime_ns), (8, found.st_mtime_ns)):
        struct.pack_into(">II", content, place + offset, time // 10**9, time % 10**9)
    struct.pack_into(">II", content, place + 16, found.st_dev & 0xFFFFFFFF, found.st_ino & 0xFFFFFFFF)
    struct.pack_into(">I", content, place + 36, found.st_size)
    path.write_bytes(content + hashlib.sha1(content, usedforsecurity=False).digest())
    later = found.st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))


def forge_untracked_cache(tree: Path) -> None:
    """Adds a file, and has the index say that its folder was already looked at as it is now, without the file."""
    shell(tree, "mkdir folder; touch folder/old.txt; git add folder; git commit -qm folder")
    shell(tree, "git update-index --force-untracked-cache; git status --porcelain")
    before = stat_data(tree / "folder")
    (tree / "folder" / "new.txt").write_text(HIDDEN)
    path = tree / os.fsdecode(subprocess.check_output(["git", "rev-parse", "--git-path", "index"], cwd=tree)).strip()
    content = path.read_bytes()[:-20]
    assert before in content
    content = content.replace(before, stat_data(tree / "folder"))
    path.write_bytes(content + hashlib.sha1(content, usedforsecurity=False).digest())
    later = (tree / "folder").stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))


def stat_data(path: Path) -> bytes:
    """As an index has it."""
    found = path.stat()
    times = (part for time in (found.st_ctime_ns, found.st_mtime_ns) for part in divmod(time, 10**9))
    numbers = (*times, found.st_dev, found.st_ino, found.st_uid, found.st_gid, found.st_size)
    return struct.pack(">9I", *(number & 0xFFFFFFFF for number in numbers))


HOOK = "-c core.fsmonitor=/bin/true"
WAYS = {
    "skip-worktree": flagged("update-index", "--skip-worktree"),
    "assume-unchanged": flagged("update-index", "--assume-unchanged"),
    "fsmonitor": flagged(HOOK, "update-index --fsmonitor; git", HOOK, "update-index --fsmonitor-valid"),
    "both": flagged("update-index --skip-worktree", FILE, "; git update-index --assume-unchanged"),
    "split index": flagged("update-index --split-index --skip-worktree"),
    "sparse": flagged("sparse-checkout set --no-cone /nothing; echo hidden >"),
    "times": forge_times,
}
ways = pytest.mark.parametrize("hide", WAYS.values(), ids=WAYS)


@ways
def test_a_change_that_an_agent_hid_is_part_of_its_work(
    project: Repo, base: str, tree: Path, hide: Callable[[Path], None]
) -> None:
    hide(tree)

    untouched = worktrees.is_untouched(tree, base)
    commit = landing.keep(project.path, tree, base, label())

    assert not untouched
    assert commit
    assert commits.changed_files(project.path, base, commit) == (FILE,)
    assert project.git("show", f"{commit}:{FILE}") == HIDDEN.strip()


@ways
def test_a_worktree_is_exactly_the_commit_again_whatever_an_agent_hid(
    project: Repo, base: str, tree: Path, hide: Callable[[Path], None]
) -> None:
    before = contents(tree)
    hide(tree)

    worktrees.reset(project.path, tree, base)

    assert contents(tree) == before
    assert subprocess.check_output(["git", "ls-files", "-v", FILE], cwd=tree, text=True) == f"H {FILE}\n"


@ways
def test_another_engine_sees_what_an_agent_hid(
    project: Repo, base: str, tree: Path, hide: Callable[[Path], None]
) -> None:
    hide(tree)

    written = written_by_another(tree)

    assert commits.changed_files(project.path, base, written) == (FILE,)


@ways
def test_what_tests_hide_is_undone_after_them(
    project: Repo, base: str, tree: Path, hide: Callable[[Path], None]
) -> None:
    (tree / "work.txt").write_text("work\n")
    worktrees.stage(tree)
    before = contents(tree)
    hide(tree)

    worktrees.restore_staged(tree, "")

    assert contents(tree) == before
    commit = landing.keep(project.path, tree, base, label())
    assert commit
    assert commits.changed_files(project.path, base, commit) == ("work.txt",)


@pytest.mark.parametrize("known", [True, False], ids=["by the same engine", "by another engine"])
def test_a_new_file_that_a_forged_untracked_cache_hides_is_part_of_the_work(
    project: Repo, base: str, tree: Path, *, known: bool
) -> None:
    forge_untracked_cache(tree)
    assert not subprocess.check_output(["git", "-c", "core.untrackedCache=true", "status", "--porcelain"], cwd=tree)

    written = worktrees.write_tree(tree) if known else written_by_another(tree)

    assert commits.changed_files(project.path, base, written) == ("folder/new.txt", "folder/old.txt")


def test_settings_of_the_worktree_alone_hide_nothing(project: Repo, base: str, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "everything").write_text("*\n")
    shell(tree, "git config extensions.worktreeConfig true")
    shell(tree, f"git config --worktree core.excludesFile {tmp_path}/everything; echo new > new.txt")

    untouched = worktrees.is_untouched(tree, base)
    commit = landing.keep(project.path, tree, base, label())

    assert not untouched
    assert commit
    assert commits.changed_files(project.path, base, commit) == ("new.txt",)


@pytest.mark.parametrize(
    ("setting", "change"),
    [
        ("core.excludesFile {}/everything", "echo new > new.txt"),
        ("core.fileMode false", f"chmod +x {FILE}"),
        ("core.ignoreStat true", f"echo new > {FILE}; git add {FILE}; git reset -q; printf 'other' > {FILE}"),
        ("core.sparseCheckout true", f"echo new > {FILE}"),
        ("core.trustCtime false", f"echo new > {FILE}"),
    ],
)
def test_settings_of_the_repository_that_an_agent_changed_hide_nothing(
    project: Repo, base: str, tree: Path, tmp_path: Path, setting: str, change: str
) -> None:
    (tmp_path / "everything").write_text("*\n")
    (tree.parent / PRIVATE).mkdir()

    with pinned(project.path):
        shell(tree, f"git config {setting.format(tmp_path)}; {change}")
        untouched = worktrees.is_untouched(tree, base)
        commit = landing.keep(project.path, tree, base, label())
        worktrees.reset(project.path, tree, base)

    assert not untouched
    assert commit
    assert len(commits.changed_files(project.path, base, commit)) == 1
    assert contents(tree) == contents(project.path)


def test_files_that_are_ignored_and_that_the_agent_added_are_part_of_its_work(
    project: Repo, base: str, tree: Path
) -> None:
    shell(tree, "echo 'made/' > .gitignore; mkdir made; echo 1 > made/one.txt; echo 2 > made/two.txt")
    shell(tree, "git add --force made/one.txt")

    commit = landing.keep(project.path, tree, base, label())

    assert commit
    assert commits.changed_files(project.path, base, commit) == (".gitignore", "made/one.txt")


def test_a_file_that_only_the_index_forgot_is_not_touched(tree: Path, base: str) -> None:
    shell(tree, f"git rm -q --cached {FILE}")

    assert worktrees.is_untouched(tree, base)


@pytest.mark.parametrize("known", [True, False], ids=["the same engine", "another engine"])
def test_the_users_own_sparse_checkout_stays_one(project: Repo, tmp_path: Path, *, known: bool) -> None:
    project.write("here/one.txt", "one\n")
    project.write("there/two.txt", "two\n")
    base, tree = project.commit(), tmp_path / "slot" / "tree"
    project.git("sparse-checkout", "set", "here")
    (tree.parent / PRIVATE).mkdir(parents=True)
    worktrees.add(project.path, tree, base)
    (tree / "here" / "one.txt").write_text("changed\n")
    shell(
        tree, "git update-index --assume-unchanged here/one.txt; git sparse-checkout set here there; rm there/two.txt"
    )

    written = worktrees.write_tree(tree) if known else written_by_another(tree)

    assert commits.changed_files(project.path, base, written) == ("here/one.txt",)


def test_a_commit_that_was_replaced_or_grafted_is_still_what_its_id_says(project: Repo, base: str) -> None:
    project.write("evil.txt", "evil\n")
    evil = project.commit()
    tree = project.git("rev-parse", f"{base}^{{tree}}")
    landed = project.git("commit-tree", "-p", base, "-m", "landed", tree)
    project.git("replace", landed, evil)
    project.git("checkout", "-q", "--detach", base)
    (project.path / ".git" / "info").mkdir(exist_ok=True)
    (project.path / ".git" / "info" / "grafts").write_text(f"{landed}\n")

    merged = users_git("merge", "--no-ff", "-m", "take it over", landed, cwd=project.path)

    assert merged.returncode == 0
    assert commits.tree_of(project.path, landed) == tree
    assert refs.is_ancestor(project.path, base, landed)
    assert not (project.path / "evil.txt").exists()


def test_what_else_git_reads_of_the_repository_is_told_when_it_changes(project: Repo, base: str) -> None:
    info = project.path / ".git" / "info"
    info.mkdir(exist_ok=True)
    with pinned(project.path) as settings:
        for name in ("exclude", "attributes", "grafts"):
            (info / name).write_text("* -text\n")
        project.git("replace", base, project.git("commit-tree", "-m", "other", "HEAD^{tree}"))

        changed = settings.changes()

    assert changed == ["info/attributes", "info/exclude", "info/grafts", f"refs/replace/{base}"]
    assert "does not use them (except info/attributes and info/exclude)" in told(changed)


@pytest.mark.parametrize("format_", ["sha1", "sha256"])
def test_the_names_in_an_index_are_those_that_git_lists(project: Repo, tmp_path: Path, format_: str) -> None:
    repo = Repo(tmp_path / format_, project.home)
    repo.path.mkdir()
    repo.git("init", "-q", f"--object-format={format_}")
    for name in (*ODD_NAMES, *("x" * length for length in range(1, 20)), "deep/er/file"):
        repo.write(name, name)
    base = repo.commit("start")
    worktrees.add(repo.path, tree := tmp_path / "slot" / "tree", base)

    found = index.names(tree)

    assert found == set(git_names("ls-files", "-z", cwd=tree))
    assert len(found) > 20


@pytest.mark.parametrize("how", ["--index-version=4", "--split-index"])
def test_an_index_in_another_format_is_left_to_git(tree: Path, how: str) -> None:
    before = index.names(tree)
    shell(tree, f"git update-index {how}")

    changed = index.names(tree)
    index.remember(tree)

    assert FILE in (before or ())
    assert (changed, index.names(tree)) == (None, None)


def test_gits_folder_is_where_the_file_says_now(tmp_path: Path) -> None:
    link, real = tmp_path / ".git", tmp_path / "real"

    link.write_text("gitdir: /first\n")
    assert git_dir(tmp_path) == Path("/first")
    link.write_text("gitdir: /the/second\n")
    assert git_dir(tmp_path) == Path("/the/second")

    # What a link leads to can change without the link.
    link.unlink()
    link.symlink_to(real.name)
    for folder in ("/third", "/the/fourth"):
        real.write_text(f"gitdir: {folder}\n")
        assert git_dir(tmp_path) == Path(folder)

    link.unlink()
    with pytest.raises(FileNotFoundError):
        git_dir(tmp_path)
