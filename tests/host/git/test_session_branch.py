import shutil
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.conftest import contents, label
from tests.host.git.test_landing import BRANCH, SESSION, branch, tip, work

from iterdev.core.errors import HostError, UserError
from iterdev.core.ids import moved_ref, tip_ref
from iterdev.core.types import SessionId
from iterdev.host.git import landing, session_branch

KEPT = "refs/iterdev/ids-demo/rolled-back/x"


def orphan(repo: Repo) -> str:
    """A commit without parents, with the files of HEAD."""
    return repo.git("commit-tree", "HEAD^{tree}", "-m", "orphan")


def landed(repo: Repo, base: str, name: str = "a") -> str:
    """The session has landed a file on the base."""
    return landing.land(repo.path, work(repo, base, name), label(), worked_on=base, tip=base).tip


def test_a_new_session_does_not_take_over_a_branch(project: Repo, base: str) -> None:
    project.git("branch", BRANCH)

    with pytest.raises(HostError, match=f'Cannot create the branch "{BRANCH}"'):
        session_branch.create(project.path, SESSION, base)


def test_a_branch_called_iterdev_is_named_with_a_way_out(project: Repo, base: str) -> None:
    project.git("branch", "iterdev")

    with pytest.raises(UserError, match='A branch called "iterdev" exists') as failure:
        session_branch.create(project.path, SESSION, base)

    project.git(*failure.value.hint.split()[1:])
    session_branch.create(project.path, SESSION, base)
    assert tip(project) == base


def test_sessions_are_known_by_branches_and_by_refs(project: Repo, base: str) -> None:
    project.git("branch", "iterdev/one")
    project.git("branch", "iterdev/two/deep")
    project.git("update-ref", "refs/iterdev/three/DEV-001/1", base)
    project.git("branch", "other/four")

    assert session_branch.names(project.path) == {"one", "two", "three"}


def test_a_branch_that_could_not_be_used_is_discarded_unless_it_has_moved(project: Repo, base: str) -> None:
    other = SessionId("other")
    branch(project, base)
    session_branch.create(project.path, other, base)
    later = landed(project, base)

    for session in (SESSION, other):
        session_branch.discard(project.path, session, base)

    assert project.git("for-each-ref", "--format=%(objectname)", "refs/heads/iterdev") == later


def test_what_has_landed_is_kept_when_the_branch_is_deleted_and_comes_back(project: Repo, base: str) -> None:
    branch(project, base)
    commit = landed(project, base)
    project.git("branch", "-q", "-D", BRANCH)
    project.git("-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now")

    found = session_branch.position(project.path, SESSION, commit)

    assert (found.tip, tip(project)) == (commit, commit)
    assert found.note == f"{BRANCH} was deleted, and is at {commit[:12]} again"


def test_a_branch_that_was_moved_away_comes_back_and_where_it_was_is_kept(project: Repo, base: str) -> None:
    branch(project, base)
    commit, elsewhere = landed(project, base), orphan(project)
    project.git("branch", "-q", "-f", BRANCH, elsewhere)

    found = session_branch.position(project.path, SESSION, commit)

    kept = moved_ref(SESSION, elsewhere)
    assert (found.tip, tip(project), project.git("rev-parse", kept)) == (commit, commit, elsewhere)
    assert kept in found.note


def test_commits_of_the_user_on_top_of_what_has_landed_stay(project: Repo, base: str) -> None:
    branch(project, base)
    commit = landed(project, base)
    mine = work(project, commit, "mine.txt")
    project.git("branch", "-q", "-f", BRANCH, mine)

    found = session_branch.position(project.path, SESSION, commit, adopt=True)

    assert (found.tip, tip(project)) == (mine, mine)
    assert f"{BRANCH} has commits that are no task's, up to {mine[:12]}" in found.note


def test_commits_that_an_agent_may_have_made_are_taken_off_the_branch_and_kept(project: Repo, base: str) -> None:
    branch(project, base)
    commit = landed(project, base)
    foreign = work(project, commit, "foreign.txt")
    project.git("branch", "-q", "-f", BRANCH, foreign)

    found = session_branch.position(project.path, SESSION, commit)

    assert (found.tip, tip(project)) == (commit, commit)
    assert project.git("rev-parse", moved_ref(SESSION, foreign)) == foreign
    assert moved_ref(SESSION, foreign) in found.note


@pytest.mark.parametrize("loss", ["deleted", "moved"])
def test_work_lands_on_what_has_landed_whatever_became_of_the_branch(project: Repo, base: str, loss: str) -> None:
    branch(project, base)
    first = landed(project, base)
    project.git(*(("branch", "-q", "-D", BRANCH) if loss == "deleted" else ("branch", "-f", BRANCH, orphan(project))))

    second = landing.land(project.path, work(project, first, "b"), label("DEV-002"), worked_on=first, tip=first)

    assert second.tip == tip(project)
    assert project.git("ls-tree", "--name-only", BRANCH, "a", "b").split() == ["a", "b"]
    assert f"{BRANCH} was {loss}" in second.note


@pytest.mark.parametrize("place", ["checkout", "worktree"])
def test_a_branch_that_the_user_has_checked_out_is_not_moved_under_them(
    project: Repo, base: str, tmp_path: Path, place: str
) -> None:
    branch(project, base)
    folder = project.path if place == "checkout" else tmp_path / "look"
    project.git(*(("switch", "-q", BRANCH) if place == "checkout" else ("worktree", "add", "-q", str(folder), BRANCH)))
    before = contents(folder)
    commit = work(project, base, "a")

    first = landing.land(project.path, commit, label(), worked_on=base, tip=base)
    again = landing.land(project.path, commit, label(), worked_on=base, tip=base)

    assert first.tip == again.tip == commit
    assert (tip(project), contents(folder)) == (base, before)
    assert project.git("-C", str(folder), "status", "--porcelain", "--untracked-files=no") == ""
    assert f"is checked out in {folder}" in first.note
    project.git(*first.note.split("`")[1].split()[1:])
    assert tip(project) == commit


def test_a_branch_that_is_no_longer_checked_out_follows(project: Repo, base: str) -> None:
    branch(project, base)
    project.git("switch", "-q", BRANCH)
    commit = landed(project, base)
    project.git("switch", "-q", "main")

    assert session_branch.position(project.path, SESSION, commit) == session_branch.Position(commit)
    assert tip(project) == commit


def test_what_is_committed_where_the_branch_is_checked_out_stays_there_and_is_told(project: Repo, base: str) -> None:
    branch(project, base)
    project.git("switch", "-q", BRANCH)
    project.write("mine.txt", "mine\n")
    mine = project.commit()

    on_top = session_branch.position(project.path, SESSION, base)
    commit = landed(project, base)

    assert project.git("log", "-1", "--format=%P", commit).split()[0] == base
    assert (tip(project), project.git("status", "--porcelain")) == (mine, "")
    assert "has commits there that are no task's" in on_top.note


def test_going_back_keeps_what_was_on_the_branch(project: Repo, base: str) -> None:
    branch(project, base)
    commit = landed(project, base)

    for _ in range(2):
        session_branch.rewind(project.path, SESSION, base, KEPT)

    assert (tip(project), project.git("rev-parse", tip_ref(SESSION))) == (base, base)
    assert project.git("rev-parse", KEPT) == commit


def test_going_back_keeps_work_that_landed_while_the_branch_was_checked_out(project: Repo, base: str) -> None:
    branch(project, base)
    project.git("switch", "-q", BRANCH)
    commit = landed(project, base)
    project.git("switch", "-q", "main")

    session_branch.rewind(project.path, SESSION, base, KEPT)

    assert project.git("rev-parse", f"{KEPT}-landed") == commit


def test_nothing_goes_back_under_a_checkout(project: Repo, base: str, tmp_path: Path) -> None:
    branch(project, base)
    commit, folder = landed(project, base), tmp_path / "look"
    project.git("worktree", "add", "-q", str(folder), BRANCH)

    with pytest.raises(UserError, match=f'is checked out in "{folder}"') as refusal:
        session_branch.rewind(project.path, SESSION, base, KEPT)

    assert tip(project) == commit
    project.git(*refusal.value.hint.split()[1:])
    session_branch.rewind(project.path, SESSION, base, KEPT)
    assert tip(project) == base


def test_a_checkout_that_was_deleted_does_not_hold_the_branch(project: Repo, base: str, tmp_path: Path) -> None:
    branch(project, base)
    folder = tmp_path / "look"
    project.git("worktree", "add", "-q", str(folder), BRANCH)
    shutil.rmtree(folder)

    commit = landed(project, base)

    assert tip(project) == commit
