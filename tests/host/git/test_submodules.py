"""Submodules, with nothing but the repositories that the user has: no network, no other copy."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.conftest import contents, label
from tests.host.git.test_landing import SESSION, branch, shell, tip

from iterdev.core.errors import UserError
from iterdev.host.git import commits, landing, merge, worktrees
from iterdev.host.git.users_branch.acceptance import accept

ALLOWED = ("-c", "protocol.file.allow=always")
REF = "refs/iterdev/ids-demo/DEV-001/1"


@pytest.fixture
def base(project: Repo, tmp_path: Path) -> str:
    """A project with a submodule `lib/shop`, which has a submodule `parts`; their origins are gone."""
    for name, inner in (("parts", ""), ("shop", "parts")):
        origin = tmp_path / f"{name}.git"
        project.git("init", "-q", "-b", "main", str(origin))
        (origin / f"{name}.txt").write_text(f"{name}\n")
        if inner:
            project.git(
                *ALLOWED, "-C", str(origin), "submodule", "--quiet", "add", str(tmp_path / f"{inner}.git"), inner
            )
        project.git("-C", str(origin), "add", "-A")
        project.git("-C", str(origin), "commit", "-q", "-m", "start")
    project.git(*ALLOWED, "submodule", "--quiet", "add", str(tmp_path / "shop.git"), "lib/shop")
    project.git(*ALLOWED, "submodule", "--quiet", "update", "--init", "--recursive")
    for name in ("parts", "shop"):
        shutil.rmtree(tmp_path / f"{name}.git")
    return project.commit("with a submodule")


@pytest.fixture
def users(project: Repo) -> Path:
    """The submodule in the user's checkout."""
    return project.path / "lib" / "shop"


def inside(repo: Repo, folder: Path, *args: str) -> str:
    return repo.git("-C", str(folder), *args)


def test_submodules_are_there_with_their_own_submodules(project: Repo, base: str, users: Path, tree: Path) -> None:
    assert contents(tree) == contents(project.path)
    assert worktrees.is_untouched(tree, base)
    assert landing.keep(project.path, tree, base, label()) is None
    assert inside(project, users, "for-each-ref", "refs/iterdev") == ""


def test_a_submodule_that_the_user_has_not_initialised_is_left_alone(project: Repo, base: str, tmp_path: Path) -> None:
    project.git("submodule", "--quiet", "deinit", "--force", "lib/shop")

    worktrees.add(project.path, tmp_path / "other", base)

    assert list((tmp_path / "other" / "lib" / "shop").iterdir()) == []
    assert landing.keep(project.path, tmp_path / "other", base, label()) is None


@pytest.mark.parametrize("script", ["git add -A; git commit -qm mine", ":"], ids=["committed", "not committed"])
@pytest.mark.parametrize("place", ["lib/shop", "lib/shop/parts"])
def test_work_in_a_submodule_is_kept_there_and_named_by_the_commit(
    project: Repo, base: str, users: Path, tree: Path, script: str, place: str
) -> None:
    before = contents(project.path)
    shell(tree / place, f"echo mine > new.txt; {script}")

    commit = landing.keep(project.path, tree, base, label())
    worktrees.remove(project.path, tree)
    worktrees.forget_deleted(project.path, tree.parent)

    kept = inside(project, users, "rev-parse", REF)
    assert project.git("rev-parse", f"{commit}:lib/shop") == kept
    if place == "lib/shop":
        assert inside(project, users, "show", f"{kept}:new.txt") == "mine"
    else:
        inner = inside(project, users, "rev-parse", f"{kept}:parts")
        assert inside(project, users / "parts", "rev-parse", REF) == inner
        assert inside(project, users / "parts", "show", f"{inner}:new.txt") == "mine"
    assert contents(project.path) == before
    assert inside(project, users, "worktree", "list", "--porcelain").count("worktree ") == 1


def test_work_in_a_submodule_of_which_git_is_to_say_nothing_is_a_change_and_gets_a_branch(
    project: Repo, base: str, users: Path, tmp_path: Path
) -> None:
    project.git("config", "--file", ".gitmodules", "submodule.lib/shop.ignore", "all")
    base, tree = project.commit(), tmp_path / "silent" / "tree"
    worktrees.add(project.path, tree, base)
    shell(tree / "lib/shop", "echo mine > new.txt")

    commit = str(landing.keep(project.path, tree, base, label()))
    branch(project, commit)
    accept(project.path, SESSION, "main", commit)

    assert commits.changed_files(project.path, base, commit) == ("lib/shop",)
    assert inside(project, users, "show", "iterdev/ids-demo:new.txt") == "mine"


def test_the_next_attempt_finds_what_the_last_one_did_in_a_submodule(
    project: Repo, base: str, tree: Path, tmp_path: Path
) -> None:
    shell(tree / "lib/shop", "echo mine > new.txt; echo late >> shop.txt")
    commit = str(landing.keep(project.path, tree, base, label()))

    worktrees.add(project.path, tmp_path / "other", commit)
    worktrees.reset(project.path, tree, base)

    assert (tmp_path / "other" / "lib" / "shop" / "new.txt").read_text() == "mine\n"
    assert contents(tree) == contents(project.path)


def test_a_merge_with_work_in_a_submodule_is_not_as_begun(project: Repo, base: str, tree: Path) -> None:
    project.write("other.txt", "other\n")
    other = project.commit("other")
    merge.begin(project.path, tree, base, other, label().author)
    before = merge.is_as_begun(project.path, tree, base)

    shell(tree / "lib/shop", "echo mine > new.txt")

    assert (before, merge.is_as_begun(project.path, tree, base)) == (True, False)


@pytest.mark.parametrize(
    "script",
    [
        "rm .git; git init -q; git config core.fsmonitor 'touch {proof}; false'",
        "git init -q {other}; echo gitdir: {other}/.git > .git; git config core.fsmonitor 'touch {proof}; false'",
        "rm .git",
    ],
    ids=["own repository", "other repository", "no repository"],
)
def test_a_submodule_that_the_agent_led_to_another_repository_is_put_right_and_not_run(
    project: Repo, base: str, users: Path, tree: Path, tmp_path: Path, script: str
) -> None:
    proof = tmp_path / "proof"
    shell(tree / "lib/shop", f"echo mine > new.txt; {script.format(proof=proof, other=tmp_path / 'other')}")
    proof.unlink(missing_ok=True)

    commit = landing.keep(project.path, tree, base, label())

    kept = inside(project, users, "rev-parse", REF)
    assert project.git("rev-parse", f"{commit}:lib/shop") == kept
    assert inside(project, users, "show", f"{kept}:new.txt") == "mine"
    assert not proof.exists()


def test_a_ref_is_named_only_if_it_exists(project: Repo, base: str, tree: Path) -> None:
    assert landing.keep_late(project.path, tree, base, label()) == ""

    shell(tree / "lib/shop", "echo late > late.txt")

    ref = landing.keep_late(project.path, tree, base, label())
    assert project.git("rev-parse", f"{ref}:lib/shop") == inside(project, project.path / "lib/shop", "rev-parse", ref)


def test_a_commit_in_a_submodule_that_the_agent_added_is_kept_in_the_project(
    project: Repo, base: str, tree: Path, tmp_path: Path
) -> None:
    origin = tmp_path / "added.git"
    project.git("clone", "-q", "--bare", str(project.path), str(origin))
    add = f"git -c protocol.file.allow=always submodule --quiet add {origin} extra"
    shell(tree, f"{add}; cd extra; echo mine > new.txt; git add -A; git commit -qm mine")

    commit = landing.keep(project.path, tree, base, label())
    worktrees.remove(project.path, tree)

    assert project.git("rev-parse", f"{commit}:extra") == project.git("rev-parse", f"{REF}-extra")


def test_accepting_gives_the_work_a_branch_in_the_submodule_and_says_what_to_push(
    project: Repo, base: str, users: Path, tree: Path
) -> None:
    shell(tree / "lib/shop", "echo mine > new.txt")
    branch(project, str(landing.keep(project.path, tree, base, label())))
    at = inside(project, users, "rev-parse", "HEAD")

    merged = accept(project.path, SESSION, "main", tip(project))

    work = project.git("rev-parse", "main:lib/shop")
    assert inside(project, users, "rev-parse", "iterdev/ids-demo") == work
    assert (inside(project, users, "rev-parse", "HEAD"), inside(project, users, "status", "--porcelain")) == (at, "")
    assert [note.partition(": git ")[2] for note in merged.notes] == [
        "submodule update lib/shop",
        "-C lib/shop push origin iterdev/ids-demo",
    ]
    project.git(*merged.notes[0].partition(": git ")[2].split())
    assert (users / "new.txt").read_text() == "mine\n"


def test_accepting_refuses_when_the_branch_of_the_submodule_is_taken(
    project: Repo, base: str, users: Path, tree: Path
) -> None:
    shell(tree / "lib/shop", "echo mine > new.txt")
    branch(project, str(landing.keep(project.path, tree, base, label())))
    other = inside(project, users, "commit-tree", "-m", "other", "HEAD^{tree}")
    inside(project, users, "branch", "iterdev/ids-demo", other)

    with pytest.raises(UserError, match='No branch of the submodule "lib/shop"') as refusal:
        accept(project.path, SESSION, "main", tip(project))

    assert project.git("rev-parse", "main") == base
    project.git(*refusal.value.hint.split()[1:])
    accept(project.path, SESSION, "main", tip(project))


def test_accepting_refuses_a_commit_that_the_users_submodule_does_not_have(
    project: Repo, base: str, tree: Path
) -> None:
    project.git("update-index", "--cacheinfo", f"160000,{'b' * 40},lib/shop")
    nowhere = project.git("commit-tree", "-p", base, "-m", "nowhere", project.git("write-tree"))
    project.git("reset", "-q", "--hard")
    branch(project, nowhere)

    with pytest.raises(UserError, match="which its repository does not have") as refusal:
        accept(project.path, SESSION, "main", tip(project))

    assert "fetch origin" in refusal.value.hint
    assert project.git("rev-parse", "main") == base


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_a_change_in_a_submodule_that_the_agent_hid_is_kept_and_then_undone(
    project: Repo, base: str, tree: Path, flag: str
) -> None:
    shop = tree / "lib" / "shop"
    shell(shop, f"echo hidden > shop.txt; git update-index {flag} shop.txt")

    commit = landing.keep(project.path, tree, base, label())
    shell(shop, f"echo hidden again > shop.txt; git update-index {flag} shop.txt")
    worktrees.reset(project.path, tree, base)

    assert commit
    kept = project.git("rev-parse", f"{commit}:lib/shop")
    assert inside(project, project.path / "lib" / "shop", "show", f"{kept}:shop.txt") == "hidden"
    assert contents(tree) == contents(project.path)
