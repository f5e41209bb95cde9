"""What is said without git is what git says, or nothing."""

import os
from pathlib import Path

import pytest
from tests.conftest import Repo

from iterdev.core.errors import HostError, UserError
from iterdev.host.checkout_top import git_folder, plain_top, top_level
from iterdev.host.git import checkout, refs
from iterdev.host.git.command import git


def test_the_top_is_found_from_every_folder_below_it(project: Repo, tmp_path: Path) -> None:
    folder = project.path / "a" / "b c"
    folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)

    for place in (project.path, folder, tmp_path / "link"):
        assert plain_top(place) == checkout.top_level(place) == project.path


@pytest.mark.parametrize("more", ["user.name=A B", "remote.origin.url=https://host/a.git", "branch.a-b/c.merge=x"])
def test_usual_settings_leave_no_question(project: Repo, more: str) -> None:
    git("config", *more.split("=", 1), cwd=project.path)

    assert plain_top(project.path) == project.path


@pytest.mark.parametrize(
    "more",
    [
        *("core.worktree=/tmp", "core.bare=true", "core.repositoryFormatVersion=1", "extensions.worktreeConfig=true"),
        *("include.path=more", "includeIf.onbranch:main.path=more", "user.name=a;b"),
    ],
)
def test_settings_that_may_lead_elsewhere_are_left_to_git(project: Repo, more: str) -> None:
    git("config", *more.split("=", 1), cwd=project.path)

    assert plain_top(project.path) is None


@pytest.mark.parametrize(
    "line", ["bare", "[core] bare = true", "[core", '[a "]', "a = \\", 'name = "a', "=", "worktree ="]
)
def test_a_line_that_can_be_read_in_several_ways_is_left_to_git(project: Repo, line: str) -> None:
    with (project.path / ".git" / "config").open("a") as file:
        file.write(f"{line}\n")

    assert plain_top(project.path) is None


def test_a_linked_worktree_and_its_folders_are_left_to_git(project: Repo, tree: Path) -> None:
    assert plain_top(tree) is None
    assert top_level(tree) == tree


def test_a_submodule_is_left_to_git(project: Repo, tmp_path: Path) -> None:
    inner = project.path / "inner"
    git(
        "clone",
        "--quiet",
        "--separate-git-dir",
        str(tmp_path / "separate"),
        str(project.path),
        "inner",
        cwd=project.path,
    )

    assert plain_top(inner) is None
    assert top_level(inner) == inner


@pytest.mark.parametrize("inside", [".git", ".git/refs/heads"])
def test_gits_own_folder_is_left_to_git(project: Repo, inside: str) -> None:
    assert plain_top(project.path / inside) is None
    with pytest.raises(UserError, match="inside of git's own folder"):
        top_level(project.path / inside)


def test_a_bare_repository_inside_of_a_checkout_is_left_to_git(project: Repo) -> None:
    git("init", "--quiet", "--bare", "bare", cwd=project.path)

    assert plain_top(project.path / "bare") is None
    with pytest.raises(UserError, match="is a bare repository"):
        top_level(project.path / "bare")


@pytest.mark.parametrize("missing", ["HEAD", "config", "objects", "refs"])
def test_a_folder_that_only_looks_like_gits_is_left_to_git(project: Repo, missing: str) -> None:
    (project.path / ".git" / missing).rename(project.path / "away")

    assert plain_top(project.path) is None


def test_git_that_has_its_objects_elsewhere_is_left_to_git(project: Repo) -> None:
    (project.path / ".git" / "commondir").write_text("../elsewhere\n")

    assert plain_top(project.path) is None


def test_gits_folder_is_that_of_the_main_checkout_only(project: Repo, tree: Path) -> None:
    (project.path / "below").mkdir()

    assert git_folder(project.path) == project.path / ".git" == refs.common_dir(project.path)
    assert git_folder(project.path / "below") is None
    assert git_folder(tree) is None
    assert checkout.main_checkout(tree) == checkout.main_checkout(project.path) == project.path


def test_no_repository_is_left_to_git(tmp_path: Path) -> None:
    assert plain_top(tmp_path) is None
    assert plain_top(tmp_path / "gone") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given", [".", ".git"])
def test_a_repository_of_another_user_is_refused_as_git_does(project: Repo, given: str) -> None:
    os.chown(project.path / given, 12345, 12345)

    assert plain_top(project.path) is None
    with pytest.raises(HostError, match="git does not trust"):
        top_level(project.path)
