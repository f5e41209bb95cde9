import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.conftest import Repo
from tests.host.conftest import contents
from tests.host.git.test_landing import BRANCH, SESSION, branch, parents, tip, work

from iterdev.core.errors import HostError, UserError
from iterdev.core.session.delivery import Accepted
from iterdev.core.types import AcceptStyle
from iterdev.host.git.users_branch import interrupted_merge
from iterdev.host.git.users_branch.acceptance import How, Merged, accept, take_back


def test_the_user_gets_the_work_as_it_is_when_nothing_else_happened(project: Repo, base: str) -> None:
    commit = work(project, base, "a")
    branch(project, commit)

    assert accept(project.path, SESSION, "main", tip(project)).commit == commit
    assert (project.path / "a").read_text() == "text\n"
    assert (project.git("rev-parse", "main"), project.git("status", "--porcelain")) == (commit, "")


def test_accepting_twice_changes_nothing_more(project: Repo, base: str) -> None:
    branch(project, work(project, base, "a"))

    first = accept(project.path, SESSION, "main", tip(project))

    again = accept(project.path, SESSION, "main", tip(project))

    assert (again.commit, again.before) == (first.commit, "")


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


SQUASH = How(style=AcceptStyle.squash, message=f"Add it\n\nIterdev-Session: {SESSION}\n")
MINE = How(own_author=True)


def as_event(merged: Merged, how: How, work_: str) -> Accepted:
    return Accepted("main", merged.commit, before=merged.before, work=work_, style=how.style, own_author=how.own_author)


@pytest.mark.parametrize("setting", [None, "only", "false"])
@pytest.mark.parametrize("diverged", [False, True])
def test_squashed_work_is_one_commit_of_the_user(
    project: Repo, base: str, *, setting: str | None, diverged: bool
) -> None:
    if setting:
        project.git("config", "merge.ff", setting)
    branch(project, work(project, work(project, base, "a"), "b"))
    if diverged:
        project.write("mine.txt", "mine\n")
        project.commit()
    before = project.git("rev-parse", "main")

    merged = accept(project.path, SESSION, "main", tip(project), SQUASH)

    assert parents(project, merged.commit) == [before] == [merged.before]
    assert project.git("log", "-1", "--format=%an|%s|%(trailers:only)", "main").strip() == (
        f"Tester|Add it|Iterdev-Session: {SESSION}"
    )
    assert {"a", "b"} <= contents(project.path).keys()
    assert project.git("status", "--porcelain") == ""
    assert not (project.path / ".git" / "SQUASH_MSG").exists()
    assert interrupted_merge.sessions(project.path) == []


def test_squashing_twice_changes_nothing_more(project: Repo, base: str) -> None:
    branch(project, work(project, base, "a"))

    first = accept(project.path, SESSION, "main", tip(project), SQUASH)

    assert accept(project.path, SESSION, "main", tip(project), SQUASH).commit == first.commit


@pytest.mark.parametrize("how", [SQUASH, MINE], ids=["squash", "author"])
def test_later_work_on_the_same_lines_comes_on_top_of_what_came_as_other_commits(
    project: Repo, base: str, how: How
) -> None:
    first = work(project, base, "a", "one\n")
    branch(project, first)
    known = as_event(accept(project.path, SESSION, "main", first, how), how, first)
    project.write("mine.txt", "mine\n")
    mine = project.commit()
    second = work(project, first, "a", "two\n")

    merged = accept(project.path, SESSION, "main", second, msgspec.structs.replace(how, previous=known))

    assert mine in parents(project, merged.commit)
    assert ((project.path / "a").read_text(), (project.path / "mine.txt").read_text()) == ("two\n", "mine\n")
    assert not project.git("log", "--format=%ae", "main").count("iterdev.invalid")


def test_squashed_work_that_the_user_reverted_comes_back_as_a_whole(project: Repo, base: str) -> None:
    first = work(project, base, "a", "one\n")
    branch(project, first)
    known = as_event(accept(project.path, SESSION, "main", first, SQUASH), SQUASH, first)
    project.git("revert", "--no-edit", "HEAD")
    second = work(project, first, "b")

    accept(project.path, SESSION, "main", second, msgspec.structs.replace(SQUASH, previous=known))

    assert {"a", "b"} <= contents(project.path).keys()


def test_a_merge_commit_can_be_asked_for(project: Repo, base: str) -> None:
    commit = work(project, base, "a")
    branch(project, commit)

    merged = accept(project.path, SESSION, "main", commit, How(style=AcceptStyle.merge))

    assert parents(project, merged.commit) == [base, commit]


def test_with_the_user_as_author_every_commit_of_an_agent_is_made_again(project: Repo, base: str) -> None:
    first = work(project, base, "a")
    commit = work(project, first, "b")
    branch(project, commit)
    form = ("log", "--format=%s|%ad|%T", f"{base}..")
    before = project.git(*form, commit)

    merged = accept(project.path, SESSION, "main", commit, MINE)

    assert project.git(*form, "main") == before
    assert set(project.git("log", "--format=%an %cn", f"{base}..main").splitlines()) == {"Tester Tester"}
    assert (merged.commit, merged.before, tip(project)) == (project.git("rev-parse", "main"), base, commit)


def test_the_hooks_of_a_commit_are_run_for_squashed_work(project: Repo, base: str, tmp_path: Path) -> None:
    branch(project, work(project, base, "a"))
    log = tmp_path / "hooks"
    for name in ("pre-merge-commit", "pre-commit", "commit-msg", "post-commit", "post-merge"):
        hook(project, name, f'echo {name} "$(basename "$1")" >> {log}')

    accept(project.path, SESSION, "main", tip(project), SQUASH)

    assert log.read_text().splitlines() == ["post-merge 1", "pre-commit ", "commit-msg COMMIT_EDITMSG", "post-commit "]


def test_squashed_work_that_a_hook_refuses_leaves_no_trace(project: Repo, base: str) -> None:
    branch(project, work(project, base, "deep/a"))
    hook(project, "pre-commit", "echo not on Fridays >&2; exit 1")
    before = contents(project.path)

    with pytest.raises(UserError, match="not on Fridays"):
        accept(project.path, SESSION, "main", tip(project), SQUASH)

    assert (contents(project.path), project.git("rev-parse", "main"), project.git("status", "--porcelain")) == (
        before,
        base,
        "",
    )
    assert not (project.path / ".git" / "SQUASH_MSG").exists()
    assert interrupted_merge.sessions(project.path) == []


@pytest.mark.parametrize("how", [SQUASH, MINE, How(style=AcceptStyle.merge)], ids=["squash", "author", "merge"])
def test_commits_are_signed_as_the_user_has_set(project: Repo, base: str, how: How, tmp_path: Path) -> None:
    branch(project, work(project, base, "a"))
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    for setting in (("gpg.format", "ssh"), ("user.signingKey", f"{key}.pub"), ("commit.gpgSign", "true")):
        project.git("config", *setting)

    accept(project.path, SESSION, "main", tip(project), how)

    assert "BEGIN SSH SIGNATURE" in project.git("cat-file", "commit", "main")


@pytest.mark.parametrize("how", [How(), SQUASH, MINE, How(style=AcceptStyle.merge)], ids=lambda how: how.style)
def test_what_was_accepted_is_taken_back_as_if_it_had_never_come(project: Repo, base: str, how: How) -> None:
    branch(project, work(project, work(project, base, "deep/a"), "README.md", "theirs\n"))
    before = contents(project.path)
    accepted = as_event(accept(project.path, SESSION, "main", tip(project), how), how, tip(project))
    recorded: list[str] = []

    take_back(project.path, SESSION, accepted, record=lambda: recorded.append("undone"))

    assert (contents(project.path), project.git("rev-parse", "main")) == (before, base)
    assert (project.git("status", "--porcelain"), recorded) == ("", ["undone"])
    assert interrupted_merge.sessions(project.path) == []


def commit_more(repo: Repo) -> None:
    repo.write("more", "more\n")
    repo.commit()


def push(repo: Repo) -> None:
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")


@pytest.mark.parametrize(
    ("follow", "said"),
    [
        (commit_more, "has commits that followed"),
        (push, '"remotes/origin/main" has'),
        (lambda repo: repo.git("branch", "mine"), '"mine" has'),
        (lambda repo: repo.write("README.md", "mine\n"), "uncommitted changes"),
        (lambda repo: repo.git("checkout", "-q", "-b", "other"), 'but "other" is checked out'),
        (lambda repo: repo.git("reset", "-q", "--hard", "HEAD^"), "any more"),
    ],
    ids=["commit", "pushed", "branch", "dirty", "elsewhere", "gone"],
)
def test_what_something_followed_is_not_taken_back(
    project: Repo, base: str, follow: Callable[[Repo], object], said: str
) -> None:
    branch(project, work(project, base, "a"))
    accepted = as_event(accept(project.path, SESSION, "main", tip(project), SQUASH), SQUASH, tip(project))
    follow(project)
    before = (contents(project.path), project.git("show-ref", "--head"))

    with pytest.raises(UserError, match=said):
        take_back(project.path, SESSION, accepted, record=lambda: None)

    assert (contents(project.path), project.git("show-ref", "--head")) == before
