"""Going back with the real command: branch, table, ledger and files together."""

import json
import subprocess

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Background, typed
from tests.session_files import left_behind, messages, rows, statuses

LEARNED = {"result": {"wisdom": {"learnings": ["tabs are better"]}}}


def finished(repo: Repo) -> str:
    repo.behave(**{"DEV-001": LEARNED, "REVIEW-001": {"score": 3}})
    assert repo.iterdev("run", "-y", "--pipeline", "sprint", "Add a greeting").returncode == 0
    return repo.folder().name


@pytest.mark.requirement("R131", "R132")
def test_code_table_ledger_and_memory_go_back_together(repo: Repo) -> None:
    session = finished(repo)
    folder, tip = repo.folder(), repo.git("rev-parse", f"iterdev/{session}")
    before = json.loads((folder / "task-ledger.json").read_text())["tasks"][1]["rollback_info"]

    done = repo.iterdev("rollback", session, "DEV-001", "--reason", "it is too slow")

    ledger = {entry["id"]: entry for entry in json.loads((folder / "task-ledger.json").read_text())["tasks"]}
    kept = repo.git("for-each-ref", "--format=%(objectname)", f"refs/iterdev/{session}/rolled-back").split()
    assert done.returncode == 0, done.stderr
    assert before["snapshot_id"].startswith("snapshot-DEV-001-")
    assert before["rollback_procedure"] == "git revert HEAD"
    assert repo.git("rev-parse", f"iterdev/{session}") == repo.git("rev-parse", "main")
    assert kept == [tip]
    assert statuses(folder) == {
        "DESIGN-001": "completed",
        "DEV-001": "pending",
        "VERIFY-001": "pending",
        "REVIEW-001": "pending",
    }
    assert list(ledger) == list(rows(folder))
    assert not (folder / "review" / "review-001.md").exists()
    assert "tabs are better" not in (folder / "wisdom" / "learnings.md").read_text()
    (begun,) = messages(folder, "rollback_initiated")
    assert begun.startswith("[coordinator] rolling back to before DEV-001 because it is too slow; undone: ")
    assert len(messages(folder, "rollback_completed")) == 1


@pytest.mark.requirement("R131")
def test_a_rollback_has_the_effect_of_the_procedure_that_the_ledger_has_stored(repo: Repo) -> None:
    repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")
    folder, branch = repo.folder(), f"iterdev/{repo.folder().name}"
    stored = json.loads((folder / "task-ledger.json").read_text())["tasks"][0]["rollback_info"]["rollback_procedure"]
    repo.git("worktree", "add", "-q", "--detach", str(repo.home / "by hand"), branch)

    by_hand = {**repo.env, "GIT_EDITOR": "true"}
    subprocess.run(stored.split(), cwd=repo.home / "by hand", env=by_hand, check=True, capture_output=True)
    repo.iterdev("rollback", folder.name, "DEV-001")

    reverted = repo.git("-C", str(repo.home / "by hand"), "rev-parse", "HEAD^{tree}")
    assert repo.git("rev-parse", f"{branch}^{{tree}}") == reverted


def test_a_session_that_went_back_is_done_again_by_resuming_it(repo: Repo) -> None:
    session = finished(repo)
    repo.iterdev("rollback", session, "DEV-001")
    calls = len(repo.calls())
    repo.behave()

    done = repo.iterdev("resume", session)

    assert done.returncode == 0, done.stderr
    assert [call["task"] for call in repo.calls()[calls:]] == ["DEV-001", "REVIEW-001"]
    assert set(statuses(repo.folder()).values()) == {"completed"}
    assert left_behind(repo) == []


@pytest.mark.parametrize("target", ["DESIGN-001", "DEV-001"])
def test_what_an_engine_was_at_when_it_died_ends_before_it_is_undone(repo: Repo, target: str) -> None:
    repo.behave(**{"REVIEW-001": {"sleep": 60}})
    with Background(repo, "run", "-y", "--pipeline", "sprint", "Add a greeting") as run:
        run.until_agent_works_on("REVIEW-001")
        run.process.kill()
    session = repo.folder().name
    repo.behave()

    back = repo.iterdev("rollback", session, target)
    done = repo.iterdev("resume", session)

    assert back.returncode == 0, back.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(statuses(repo.folder()).values()) == {"completed"}
    assert left_behind(repo) == []


def test_a_session_that_is_at_work_is_not_rolled_back(repo: Repo) -> None:
    repo.behave(**{"REVIEW-001": {"sleep": 60}})
    with Background(repo, "run", "-y", "--pipeline", "sprint", "Add a greeting") as run:
        run.until_agent_works_on("REVIEW-001")

        refused = repo.iterdev("rollback", repo.folder().name, "DEV-001")

    assert refused.returncode == 2
    assert "still running" in refused.stderr
    assert statuses(repo.folder())["DEV-001"] == "completed"


@pytest.mark.requirement("R132")
def test_without_a_point_to_go_back_to_nothing_happens(repo: Repo) -> None:
    session = finished(repo)
    tip = repo.git("rev-parse", f"iterdev/{session}")

    refused = repo.iterdev("rollback", session, "DEV-999")

    assert refused.returncode == 2
    assert '"DEV-999"' in refused.stderr
    assert "DEV-001" in refused.stderr
    assert repo.git("rev-parse", f"iterdev/{session}") == tip


def test_whoever_does_the_work_again_is_told_why_it_was_rolled_back_and_not_to_take_it_over(repo: Repo) -> None:
    session = finished(repo)
    undone = repo.git("rev-parse", f"refs/iterdev/{session}/DEV-001/1")
    repo.iterdev("rollback", session, "DEV-001", "--reason", "it is too slow")
    calls = len(repo.calls())

    repo.iterdev("resume", session)

    prompt = str(repo.calls()[calls]["prompt"])
    earlier = prompt.partition("## Earlier attempts\n")[2].partition("\n\n")[0]
    assert earlier == f"- commit {undone} was rolled back because it is too slow: do not take it over"


@pytest.mark.parametrize("diverged", [False, True], ids=["fast forward", "merge"])
def test_what_was_accepted_is_named_with_the_command_that_undoes_it(repo: Repo, *, diverged: bool) -> None:
    session = finished(repo)
    if diverged:
        repo.write("mine.txt", "mine\n")
        repo.commit("mine")
    before = repo.git("rev-parse", "main^{tree}")
    assert repo.iterdev("accept", session).returncode == 0
    accepted = repo.git("rev-parse", "main")

    done = repo.iterdev("rollback", session, "DEV-001")

    (line,) = (line for line in done.stdout.splitlines() if line.startswith("main still has"))
    assert accepted[:12] in line
    assert repo.git("rev-parse", "main") == accepted
    undoing = typed(repo, line.partition("undo it there with: ")[2].replace("-m 1", "--no-edit -m 1"))
    assert undoing.returncode == 0, undoing.stderr
    assert repo.git("rev-parse", "main^{tree}") == before


def test_a_branch_that_is_checked_out_does_not_go_back_under_the_user(repo: Repo) -> None:
    session = finished(repo)
    repo.git("switch", "-q", f"iterdev/{session}")
    before = repo.git("rev-parse", "HEAD")

    refused = repo.iterdev("rollback", session, "DEV-001")

    assert refused.returncode == 2
    assert "is checked out in" in refused.stderr
    assert (repo.git("rev-parse", "HEAD"), repo.git("status", "--porcelain")) == (before, "")
    assert statuses(repo.folder())["DEV-001"] == "completed"
    hint = refused.stderr.partition("hint: ")[2].strip()
    assert typed(repo, hint).returncode == 0
    assert repo.iterdev("rollback", session, "DEV-001").returncode == 0
