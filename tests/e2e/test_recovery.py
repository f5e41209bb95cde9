"""Agents that damage their workspace, and sessions that go on after whatever was left."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from tests.clis import command_line, pids_with
from tests.conftest import Repo
from tests.e2e.conftest import Background, agent_at_work, eventually
from tests.e2e.test_bad_input import in_own_mounts
from tests.session_files import left_behind, processes, rows, statuses

PATCH = ("run", "-y", "--pipeline", "patch", "Fix the greeting")
SPRINT = ("run", "-y", "--pipeline", "sprint", "Fix the greeting")


def kept_files(repo: Repo) -> set[str]:
    """Every file in a commit that is kept under a ref."""
    refs = repo.git("for-each-ref", "--format=%(refname)", "refs/iterdev").split()
    return {name for ref in refs for name in repo.git("ls-tree", "-r", "--name-only", ref).split()}


def kill_while_the_developer_works(repo: Repo) -> Path:
    """Leaves a worktree with work in it that nobody has kept."""
    with agent_at_work(repo, *PATCH) as running:
        running.kill()
    repo.behave()
    (tree,) = (repo.home / "iterdev").glob("*/*/*/tree")
    return tree


@pytest.mark.parametrize("task", ["DEV-001", "REVIEW-001"])
@pytest.mark.parametrize(
    "harm",
    [
        "rm -rf .git; git init -q",
        'echo garbage > "$(git rev-parse --git-path index)"',
        'rm -rf "$(git rev-parse --git-dir)"',
        "printf '\\377' > .git",
        'mv "$PWD" ../renamed',
    ],
)
def test_an_agent_that_damages_its_workspace_stops_nobody_and_its_work_lands(repo: Repo, task: str, harm: str) -> None:
    repo.behave(**{task: {"run": harm}})

    done = repo.iterdev(*SPRINT)

    assert done.returncode == 0, done.stdout + done.stderr
    assert left_behind(repo) == []
    assert repo.git("show", f"iterdev/{repo.folder().name}:DEV-001.txt") == "DEV-001 attempt 1"


@pytest.mark.parametrize("task", ["DEV-001", "REVIEW-001"])
def test_a_folder_in_the_place_of_the_result_fails_the_attempt_alone(repo: Repo, task: str) -> None:
    repo.behave(**{task: {"run": 'mkdir -p "$ITERDEV_RESULT/inside"', "silent": True}})

    done = repo.iterdev(*SPRINT)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "gave no usable result" in rows(repo.folder())[task]["error"]
    assert left_behind(repo) == []


@pytest.mark.local("a worktree that a killed engine left here")
def test_a_session_goes_on_in_a_repository_that_was_renamed(repo: Repo) -> None:
    kill_while_the_developer_works(repo)
    repo.path = repo.path.rename(repo.path.with_name("renamed"))

    done = repo.iterdev("resume")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "half.txt" in kept_files(repo)
    assert left_behind(repo) == []


@pytest.mark.local("a worktree that a killed engine left here")
def test_a_worktree_that_git_forgot_before_it_was_deleted_is_kept_by_resume(repo: Repo) -> None:
    tree = kill_while_the_developer_works(repo)
    shutil.rmtree(repo.path / ".git" / "worktrees" / "tree")
    (tree / "README.md").unlink()

    done = repo.iterdev("resume")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "half.txt" in kept_files(repo)
    assert left_behind(repo) == []


@pytest.mark.local("a worktree that a killed engine left here")
def test_a_leftover_that_nobody_can_read_is_named_and_the_session_goes_on(repo: Repo) -> None:
    tree = kill_while_the_developer_works(repo)
    (tree.parent / "attempt.json").write_text('{"task": "../../x", "number": 1, "base": "--help"}')

    done = repo.iterdev("resume")

    (aside,) = (repo.home / "iterdev" / "set-aside").glob("*/*")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"kept as it is in {aside}" in done.stdout
    assert (aside / "tree" / "half.txt").read_text() == "half\n"
    assert set(statuses(repo.folder()).values()) == {"completed"}


def test_an_agent_that_outlives_everything_that_watched_it_is_ended_by_resume(repo: Repo) -> None:
    repo.behave(developer={"run": "(setsid sleep 600 &)", "sleep": 600})
    with Background(repo, *PATCH) as running:
        eventually(lambda: any("sleep 600" in line for line in processes(repo)), "an agent with a daemon")
        watching = [pid for pid in pids_with(str(repo.home)) if "processes/supervisor.py" in command_line(pid)]
        # Stopped first, so that none of them sees the end of another.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in (running.pid, *watching):
                os.kill(pid, number)
        running.process.wait()
    eventually(lambda: processes(repo) == ["sleep 600"], "the end of all but the daemon")
    repo.behave()

    done = repo.iterdev("resume")

    assert done.returncode == 0, done.stdout + done.stderr
    assert left_behind(repo) == []


@pytest.mark.local("a worktree that a killed engine left here")
def test_a_session_goes_on_after_a_resume_that_could_not_write_to_the_workspaces(repo: Repo) -> None:
    kill_while_the_developer_works(repo)
    read_only = 'mount --bind "$ITERDEV_HOME" "$ITERDEV_HOME"; mount -o remount,ro,bind "$ITERDEV_HOME"; set +e'
    tried = "iterdev resume >$out/resume 2>&1; iterdev doctor --fix >$out/fix 2>&1"

    out = in_own_mounts(repo, f"{read_only}; {tried}")
    done = repo.iterdev("resume")

    assert "hint: run `iterdev doctor --fix`" in out["resume"]
    assert "hint: make the repository and ITERDEV_HOME writable" in out["fix"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "half.txt" in kept_files(repo)
    assert left_behind(repo) == []
