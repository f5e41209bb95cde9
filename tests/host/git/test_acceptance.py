from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.conftest import contents
from tests.host.git.test_landing import BRANCH, SESSION, branch, parents, tip, work

from iterdev.core.errors import HostError, UserError
from iterdev.host.git.acceptance import accept


def test_the_user_gets_the_work_as_it_is_when_nothing_else_happened(project: Repo, base: str) -> None:
    commit = work(project, base, "a")
    branch(project, commit)

    assert accept(project.path, SESSION, "main", tip(project)).commit == commit
    assert (project.path / "a").read_text() == "text\n"
    assert (project.git("rev-parse", "main"), project.git("status", "--porcelain")) == (commit, "")


def test_accepting_twice_changes_nothing_more(project: Repo, base: str) -> None:
    branch(project, work(project, base, "a"))

    first = accept(project.path, SESSION, "main", tip(project))

    assert accept(project.path, SESSION, "main", tip(project)) == first


@pytest.mark.parametrize("setting", [None, "only"])
def test_the_work_is_merged_with_what_the_user_did_meanwhile(project: Repo, base: str, setting: str | None) -> None:
    if setting:
        project.git("config", "merge.ff", setting)
    theirs = work(project, base, "a")
    branch(project, theirs)
    project.write("mine.txt", "mine\n")
    mine = project.commit()

    commit = accept(project.path, SESSION, "main", tip(project)).commit

    assert parents(project, commit) == [mine, theirs]
    assert project.git("log", "-1", "--format=%an|%s", commit) == f"Tester|Merge {BRANCH}"
    assert {"a", "mine.txt"} <= contents(project.path).keys()
    assert project.git("status", "--porcelain") == ""


def test_a_conflict_with_the_user_is_undone_byte_for_byte(project: Repo, base: str) -> None:
    branch(project, work(project, work(project, base, "README.md", "theirs\n"), "Größe 中.txt", "theirs\n"))
    project.write("README.md", "mine\n")
    project.write("Größe 中.txt", "mine\n")
    project.write(".gitignore", "ignored\n")
    project.commit()
    project.write("ignored", "stays\n")
    before = (contents(project.path), project.git("ls-files", "--stage"), project.git("show-ref", "--head"))

    with pytest.raises(UserError, match="nothing was changed") as refusal:
        accept(project.path, SESSION, "main", tip(project))

    assert 'conflicts with "main" in Größe 中.txt, README.md' in refusal.value.message
    assert refusal.value.hint == f"git merge {BRANCH}"
    assert (contents(project.path), project.git("ls-files", "--stage"), project.git("show-ref", "--head")) == before
    assert project.git("status", "--porcelain") == ""
    assert not (project.path / ".git" / "MERGE_HEAD").exists()


def test_a_user_without_a_name_gets_an_error_and_the_checkout_as_it_was(project: Repo, base: str) -> None:
    branch(project, work(project, base, "a"))
    project.write("mine.txt", "mine\n")
    project.commit()
    (project.home / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    before = (contents(project.path), project.git("show-ref", "--head"))

    with pytest.raises(HostError):
        accept(project.path, SESSION, "main", tip(project))

    assert (contents(project.path), project.git("show-ref", "--head")) == before
    assert project.git("status", "--porcelain") == ""


def stage(repo: Repo) -> None:
    repo.write("README.md", "mine\n")
    repo.git("add", "-A")


@pytest.mark.parametrize(
    ("soil", "name"),
    [
        (lambda repo: repo.write("README.md", "mine\n"), "README.md"),
        (stage, "README.md"),
        (lambda repo: (repo.path / "README.md").unlink(), "README.md"),
    ],
    ids=["changed", "staged", "deleted"],
)
def test_a_checkout_that_is_not_clean_is_refused_and_not_touched(
    project: Repo, base: str, soil: Callable[[Repo], object], name: str
) -> None:
    branch(project, work(project, base, "a"))
    soil(project)
    before = contents(project.path)

    with pytest.raises(UserError, match=f'uncommitted changes, such as "{name}"') as refusal:
        accept(project.path, SESSION, "main", tip(project))

    assert "git stash" in refusal.value.hint
    assert contents(project.path) == before
    assert project.git("rev-parse", "main") == base


def test_an_ignored_file_of_the_user_is_never_overwritten(project: Repo, base: str) -> None:
    project.write(".gitignore", "local.cfg\n")
    ignoring = project.commit()
    branch(project, work(project, ignoring, "local.cfg", "theirs\n"))
    project.write("local.cfg", "mine\n")

    with pytest.raises(UserError, match=r'"local\.cfg" is not tracked by git'):
        accept(project.path, SESSION, "main", tip(project))

    assert (project.path / "local.cfg").read_text() == "mine\n"
    assert project.git("rev-parse", "main") == ignoring


def test_another_branch_is_refused(project: Repo, base: str) -> None:
    branch(project, work(project, base, "a"))
    project.git("checkout", "-q", "-b", "other")

    with pytest.raises(UserError, match='belongs to the branch "main", but "other" is checked out') as refusal:
        accept(project.path, SESSION, "main", tip(project))

    assert refusal.value.hint == "git switch main"
    assert project.git("rev-parse", "other") == base


def test_a_checkout_without_a_branch_is_refused(project: Repo, base: str) -> None:
    branch(project, work(project, base, "a"))
    project.git("checkout", "-q", "--detach")

    for into in ("main", ""):
        with pytest.raises(UserError, match=r"(?i)no branch is checked out"):
            accept(project.path, SESSION, into, tip(project))
    assert project.git("rev-parse", "HEAD") == base


def test_the_work_that_the_journal_knows_is_accepted_and_a_moved_branch_is_put_back(project: Repo, base: str) -> None:
    known = work(project, base, "a")
    moved = work(project, known, "foreign")
    branch(project, moved)

    merged = accept(project.path, SESSION, "main", known)

    (note,) = merged.notes
    assert (merged.commit, tip(project)) == (known, known)
    assert f"{BRANCH} had commits that are no task's" in note
    assert project.git("rev-parse", note.split("`")[1].removeprefix("git merge ").removesuffix(" gets it")) == moved


def test_a_branch_that_was_deleted_is_accepted_all_the_same(project: Repo, base: str) -> None:
    known = work(project, base, "a")

    merged = accept(project.path, SESSION, "main", known)

    assert (merged.commit, tip(project)) == (known, known)


@pytest.mark.parametrize("diverged", [False, True], ids=["fast forward", "merge"])
def test_untracked_files_that_the_merge_does_not_touch_are_no_reason_to_refuse(
    project: Repo, base: str, *, diverged: bool
) -> None:
    commit = work(project, base, "deep/a")
    branch(project, commit)
    if diverged:
        project.write("mine.txt", "mine\n")
        project.commit()
    project.write("deep/new file.txt", "mine\n")

    accept(project.path, SESSION, "main", tip(project))

    assert (project.path / "deep" / "a").is_file()
    assert project.git("status", "--porcelain") == '?? "deep/new file.txt"'


@pytest.mark.parametrize(
    ("theirs", "mine"), [("a", "a"), ("a/b", "a"), ("a", "a/b")], ids=["file", "file for folder", "folder for file"]
)
@pytest.mark.parametrize("ignored", [False, True], ids=["untracked", "ignored"])
def test_an_untracked_file_that_the_merge_would_overwrite_is_named(
    project: Repo, theirs: str, mine: str, *, ignored: bool
) -> None:
    project.write(".gitignore", "a\n" if ignored else "")
    ignoring = project.commit()
    branch(project, work(project, ignoring, theirs))
    project.write(mine, "mine\n")

    with pytest.raises(UserError, match=f'"{mine}" is not tracked by git'):
        accept(project.path, SESSION, "main", tip(project))

    assert (project.path / mine).read_text() == "mine\n"
    assert project.git("rev-parse", "main") == ignoring


def test_a_file_that_the_user_deleted_and_made_again_untracked_is_no_reason_to_refuse(project: Repo, base: str) -> None:
    branch(project, work(project, base, "a"))
    project.git("rm", "-q", "--cached", "README.md")
    project.git("commit", "-q", "-m", "no longer tracked")

    accept(project.path, SESSION, "main", tip(project))

    assert (project.path / "README.md").read_text() == "# Sample\n"


def hook(repo: Repo, name: str, script: str) -> None:
    path = repo.path / ".git" / "hooks" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_hooks_of_a_merge_are_run(project: Repo, base: str, tmp_path: Path) -> None:
    branch(project, work(project, base, "a"))
    project.write("mine.txt", "mine\n")
    project.commit()
    log = tmp_path / "hooks"
    for name in ("pre-merge-commit", "commit-msg", "post-merge"):
        hook(project, name, f"echo {name} >> {log}")

    accept(project.path, SESSION, "main", tip(project))

    assert log.read_text().split() == ["pre-merge-commit", "commit-msg", "post-merge"]


def test_a_merge_that_a_hook_refuses_is_undone_and_its_words_are_shown(project: Repo, base: str) -> None:
    branch(project, work(project, base, "a"))
    project.write("mine.txt", "mine\n")
    mine = project.commit()
    hook(project, "pre-merge-commit", "echo no merges on Fridays >&2; exit 1")

    with pytest.raises(UserError, match="no merges on Fridays"):
        accept(project.path, SESSION, "main", tip(project))

    assert project.git("rev-parse", "main") == mine
    assert project.git("status", "--porcelain") == ""
    assert not (project.path / ".git" / "MERGE_HEAD").exists()


def test_the_merge_has_the_name_that_the_user_has_set_for_this_shell(
    project: Repo, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    branch(project, work(project, base, "a"))
    project.write("mine.txt", "mine\n")
    project.commit()
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Another")

    commit = accept(project.path, SESSION, "main", tip(project)).commit

    assert project.git("log", "-1", "--format=%an|%cn", commit) == "Another|Tester"
