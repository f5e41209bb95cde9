"""What a worktree is given beside what git brings, and that none of it is ever taken for work."""

import os
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.conftest import label

from iterdev.core.errors import HostError, UserError
from iterdev.host.git import checkout, commits, landing, worktrees
from iterdev.host.workspaces.untracked_files import (
    bring,
    git_variables,
    new_ignored,
    note_ignored,
    remove_new_ignored,
)

ODD = "a [b]*?\\ c"


def files_of(repo: Repo, commit: str) -> list[str]:
    return repo.git("ls-tree", "-r", "--name-only", commit).splitlines()


def test_copies_and_links_are_there_and_git_does_not_see_them(project: Repo, tree: Path, base: str) -> None:
    for name in (".env", "local/deep/a.txt", "node_modules/x.js", ODD):
        project.write(name, name)

    bring(project.path, tree, copies=[".env", "local", ODD], links=["node_modules"])

    assert (tree / ".env").read_text(encoding="utf-8") == ".env"
    assert (tree / "local" / "deep" / "a.txt").exists()
    assert (tree / ODD).exists()
    assert (tree / "node_modules").is_symlink()
    assert (tree / "node_modules" / "x.js").samefile(project.path / "node_modules" / "x.js")
    assert worktrees.is_untouched(tree, base)
    assert landing.keep(project.path, tree, base, label()) is None


def test_work_beside_them_is_seen_and_kept(project: Repo, tree: Path, base: str) -> None:
    project.write("config/known.toml", "a = 1\n")
    known = project.commit("configured")
    project.write("config/local.toml", "b = 2\n")
    worktrees.reset(project.path, tree, known)

    bring(project.path, tree, copies=["config"], links=[])
    (tree / "config" / "new.toml").write_text("c = 3\n", encoding="utf-8")
    (tree / "config" / "known.toml").write_text("a = 9\n", encoding="utf-8")
    commit = landing.keep(project.path, tree, known, label())

    assert commit
    assert commits.changed_files(project.path, known, commit) == ("config/known.toml", "config/new.toml")
    assert (tree / "config" / "local.toml").exists()


def test_they_stay_when_the_worktree_is_reset_for_the_next_attempt(project: Repo, tree: Path, base: str) -> None:
    project.write(".env", "A=1\n")
    project.write("node_modules/x.js", "")
    bring(project.path, tree, copies=[".env"], links=["node_modules"])

    worktrees.reset(project.path, tree, base)

    assert (tree / ".env").exists()
    assert (tree / "node_modules" / "x.js").exists()


def test_an_agents_own_commit_leaves_them_out_too(project: Repo, tree: Path) -> None:
    project.write(".env", "A=1\n")
    bring(project.path, tree, copies=[".env"], links=[])
    (tree / "work.txt").write_text("done\n", encoding="utf-8")
    agent = Repo(tree, project.home)
    agent.env |= git_variables(tree)

    commit = agent.commit("all of it")

    assert "work.txt" in files_of(project, commit)
    assert ".env" not in files_of(project, commit)


@pytest.mark.parametrize("setting", ["[core]\n\texcludesFile = ~/mine\n", ""])
def test_what_the_user_ignores_everywhere_is_still_ignored(project: Repo, tree: Path, base: str, setting: str) -> None:
    own = project.home / ("mine" if setting else ".config/git/ignore")
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text("*.swp", encoding="utf-8")
    with (project.home / ".gitconfig").open("a", encoding="utf-8") as file:
        file.write(setting)
    project.write(".env", "A=1\n")

    bring(project.path, tree, copies=[".env"], links=[])
    (tree / ".notes.swp").write_text("x", encoding="utf-8")

    assert worktrees.is_untouched(tree, base)


def test_nothing_changes_in_the_users_own_checkout(project: Repo, tree: Path) -> None:
    project.write(".env", "A=1\n")
    before = checkout.status(project.path)

    bring(project.path, tree, copies=[".env"], links=[])

    assert checkout.status(project.path) == before
    assert before == ["?? .env"]


@pytest.mark.parametrize("key", ["copy", "link"])
@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("absent", HostError, "does not exist"),
        ("README.md", UserError, "from git"),
        ("../other", UserError, "no path inside"),
        ("/etc/hosts", UserError, "no path inside"),
        (".git/config", UserError, "no path inside"),
        (".", UserError, "no path inside"),
    ],
)
def test_what_cannot_be_brought_is_an_error_that_names_it(
    project: Repo, tree: Path, key: str, name: str, kind: type[Exception], problem: str
) -> None:
    given: dict[str, list[str]] = {"copies": [], "links": []}
    given["copies" if key == "copy" else "links"] = [name]

    with pytest.raises(kind, match=f'"{name}".*{problem}') as caught:
        bring(project.path, tree, **given)
    assert f"`{key}`" in caught.value.hint


def written(tree: Path, *names: str) -> None:
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(os.fsencode(name))


def test_ignored_files_that_came_with_an_agent_are_removed_and_those_from_before_stay(tree: Path) -> None:
    written(tree, ".gitignore")
    (tree / ".gitignore").write_text("lib/\n*.log\n")
    written(tree, "lib/generated.py", "before.log")
    note_ignored(tree)
    written(tree, "lib/inner/new.py", "new.log", "new.txt")

    found = new_ignored(tree)
    remove_new_ignored(tree)

    assert found == ["lib/inner/new.py", "new.log"]
    assert sorted(path.name for path in tree.glob("lib/*")) == ["generated.py"]
    assert (tree / "before.log").exists()
    assert (tree / "new.txt").exists()
    assert new_ignored(tree) == []


@pytest.mark.parametrize("name", ["new.log", "lib/a/b.py", "Größe.log", os.fsdecode(b"no-text-\xff.log")])
def test_ignored_files_are_found_in_a_worktree_that_is_known_to_be_a_commit(
    project: Repo, tree: Path, base: str, name: str
) -> None:
    (tree / ".gitignore").write_text("lib/\n*.log\n")
    written(tree, "before.log", "node_modules/a.log", "work.txt")
    note_ignored(tree)
    known = worktrees.known_ignored(tree)
    written(tree, name)

    landing.keep(project.path, tree, base, label())

    assert known is None
    assert sorted(worktrees.known_ignored(tree) or ()) == sorted(["before.log", "node_modules/a.log", name])
    assert new_ignored(tree) == [os.fsencode(name).decode("utf-8", "backslashreplace")]


@pytest.mark.parametrize(
    "name",
    ["node_modules/x/a.js", "inner/__pycache__/a.pyc", ".venv/bin/a", "target/CACHEDIR.TAG", "made/CMakeCache.txt"],
)
def test_what_tools_cache_is_not_removed(tree: Path, name: str) -> None:
    (tree / ".gitignore").write_text("*\n")
    note_ignored(tree)
    beside = str(Path(name).with_name("other.o"))
    written(tree, name, beside)

    remove_new_ignored(tree)

    assert (tree / name).exists()
    assert (tree / beside).exists()


def test_nothing_behind_a_link_is_removed(tree: Path, tmp_path: Path) -> None:
    (tree / ".gitignore").write_text("lib\n")
    note_ignored(tree)
    written(tmp_path / "users", "new.py")
    (tree / "lib").symlink_to(tmp_path / "users")

    remove_new_ignored(tree)

    assert (tmp_path / "users" / "new.py").exists()
    assert not (tree / "lib").is_symlink()
