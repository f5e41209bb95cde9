"""The session's branch and workspaces while the user, or an agent, moves and deletes them."""

import shutil

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Background
from tests.session_files import left_behind, statuses

REQUEST = ("run", "-y", "--pipeline", "patch", "Fix the greeting")
ELSEWHERE = "git update-ref refs/heads/iterdev/$ITERDEV_SESSION $(git commit-tree -m orphan HEAD^{tree})"
DELETED = "git update-ref -d refs/heads/iterdev/$ITERDEV_SESSION"


def names(repo: Repo) -> list[str]:
    return sorted(path.name for path in (repo.path / ".workflow" / ".csv-wave").iterdir())


@pytest.mark.parametrize("lost", ["folder and journal", "checkout"])
def test_the_same_request_gets_a_name_that_nothing_in_the_repository_has(repo: Repo, lost: str) -> None:
    repo.iterdev(*REQUEST)
    (first,) = names(repo)
    work = repo.git("rev-parse", f"iterdev/{first}")
    if lost == "folder and journal":
        repo.git("clean", "-qfdx")
    else:
        repo.git("worktree", "add", "-q", "-b", "second", str(repo.home / "second"))
        repo.path = repo.home / "second"

    done = repo.iterdev(*REQUEST)

    second = f"{first}-2"
    assert done.returncode == 0, done.stderr
    assert second in names(repo)
    assert repo.git("merge-base", f"iterdev/{first}", f"iterdev/{second}") == repo.git("rev-parse", "main")
    assert repo.git("rev-parse", f"iterdev/{first}") == work


@pytest.mark.parametrize(("harm", "word"), [(DELETED, "deleted"), (ELSEWHERE, "moved")])
def test_work_lands_although_the_branch_is_taken_away_in_the_middle(repo: Repo, harm: str, word: str) -> None:
    repo.behave(**{"DEV-001": {"run": harm}})

    done = repo.iterdev(*REQUEST)

    (session,) = names(repo)
    assert done.returncode == 0, done.stderr
    assert repo.git("show", f"iterdev/{session}:DEV-001.txt") == "DEV-001 attempt 1"
    assert f"iterdev/{session} was {word}" in repo.iterdev("report").stdout
    assert left_behind(repo) == []


@pytest.mark.parametrize("harm", ["branch -q -D", "branch -q -f", "switch"])
def test_resume_has_a_way_out_when_the_branch_was_taken_away_meanwhile(repo: Repo, harm: str) -> None:
    repo.behave(**{"REVIEW-001": {"sleep": 60}})
    with Background(repo, "run", "-y", "--pipeline", "sprint", "Fix the greeting") as run:
        run.until_agent_works_on("REVIEW-001")
        run.process.kill()
    (session,) = names(repo)
    orphan = repo.git("commit-tree", "-m", "orphan", "HEAD^{tree}")
    if harm == "switch":
        repo.git("switch", "-q", f"iterdev/{session}")
    else:
        repo.git(*harm.split(), f"iterdev/{session}", *([orphan] if harm.endswith("-f") else []))
    repo.behave()

    done = repo.iterdev("resume")

    assert done.returncode == 0, done.stdout + done.stderr
    assert set(statuses(repo.folder()).values()) == {"completed"}
    assert repo.git("show", f"iterdev/{session}:DEV-001.txt") == "DEV-001 attempt 1"
    if harm.endswith("-f"):
        assert repo.git("rev-parse", f"refs/iterdev/{session}/_moved/{orphan[:12]}") == orphan


@pytest.mark.parametrize("task", ["DEV-001", "REVIEW-001"])
def test_what_an_agent_moves_the_branch_to_is_neither_landed_nor_accepted(repo: Repo, task: str) -> None:
    commit = "echo evil > evil.txt; git add -A; git commit -qm evil"
    moved = "git update-ref refs/heads/iterdev/$ITERDEV_SESSION HEAD; git reset -q --hard HEAD~1; echo ok > ok.txt"
    repo.behave(**{task: {"run": f"{commit}; {moved}"}})

    done = repo.iterdev("run", "-y", "--pipeline", "sprint", "Fix the greeting")
    accepted = repo.iterdev("accept", "--force")

    (session,) = names(repo)
    (kept,) = repo.git("for-each-ref", "--format=%(refname)", f"refs/iterdev/{session}/_moved").split()
    assert (done.returncode, accepted.returncode) == (0, 0), done.stderr + accepted.stderr
    assert kept in repo.iterdev("report").stdout
    assert repo.git("show", f"{kept}:evil.txt") == "evil"
    assert not (repo.path / "evil.txt").exists()
    assert repo.git("rev-parse", "main") == repo.git("rev-parse", f"iterdev/{session}")


def test_a_branch_that_was_moved_after_the_run_is_put_back_by_accept_and_told(repo: Repo) -> None:
    repo.iterdev(*REQUEST)
    (session,) = names(repo)
    known = repo.git("rev-parse", f"iterdev/{session}")
    foreign = repo.git("commit-tree", "-p", known, "-m", "mine", f"{known}^{{tree}}")
    repo.git("update-ref", f"refs/heads/iterdev/{session}", foreign)

    accepted = repo.iterdev("accept")

    assert accepted.returncode == 0, accepted.stderr
    assert f"git merge refs/iterdev/{session}/_moved/{foreign[:12]}" in accepted.stdout
    assert (repo.git("rev-parse", "main"), repo.git("rev-parse", f"iterdev/{session}")) == (known, known)


def test_the_checkout_of_a_session_branch_stays_clean_while_work_lands(repo: Repo) -> None:
    repo.behave(**{"DEV-001": {"run": f"git -C {repo.path} switch -q iterdev/$ITERDEV_SESSION"}})

    done = repo.iterdev(*REQUEST)

    assert done.returncode == 0, done.stderr
    assert repo.git("status", "--porcelain", "--untracked-files=no") == ""
    assert f"is checked out in {repo.path}" in repo.iterdev("report").stdout


@pytest.mark.parametrize("task", ["DEV-001", "REVIEW-001"])
def test_a_workspace_that_is_deleted_in_the_middle_is_told_and_nothing_else_is_lost(repo: Repo, task: str) -> None:
    repo.behave(**{f"{task}#1": {"run": 'rm -rf "$PWD"'}})

    first = repo.iterdev("run", "-y", "--pipeline", "sprint", "Fix the greeting")
    told = repo.iterdev("report").stdout + first.stdout + first.stderr
    again = repo.iterdev("retry") if task == "DEV-001" else first

    assert "was deleted during the attempt" in told
    assert first.returncode == (1 if task == "DEV-001" else 0), first.stderr
    assert again.returncode == 0, again.stderr
    assert set(statuses(repo.folder()).values()) == {"completed"}
    assert left_behind(repo) == []


def test_the_folder_of_all_workspaces_may_be_deleted_after_a_kill(repo: Repo) -> None:
    repo.behave(**{"DEV-001": {"sleep": 60}})
    with Background(repo, *REQUEST) as run:
        run.until_agent_works_on("DEV-001")
        run.process.kill()
    shutil.rmtree(repo.home / "iterdev")
    repo.behave()

    done = repo.iterdev("resume")

    assert done.returncode == 0, done.stderr
    assert left_behind(repo) == []


def test_a_branch_in_the_way_is_found_by_doctor_and_told_in_one_sentence(repo: Repo) -> None:
    repo.git("branch", "iterdev")

    refused, found = repo.iterdev(*REQUEST), repo.iterdev("doctor")

    assert refused.returncode == 2
    assert 'A branch called "iterdev" exists' in refused.stderr
    assert 'A branch called "iterdev" exists' in found.stdout
    assert not (repo.path / ".workflow" / ".csv-wave").exists()
