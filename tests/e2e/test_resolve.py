"""`iterdev resolve` as it is typed: what it asks, its workers, its pull requests, and what it says at the end."""

import json
import subprocess

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Terminal
from tests.issue_agents import create_issues, status_of_issues, use_program
from tests.session_files import left_behind, rows, statuses

from iterdev.app.branches.pull_request import BEGIN

pytestmark = pytest.mark.elsewhere


def sessions(repo: Repo) -> list[object]:
    return json.loads(repo.iterdev("sessions", "--json").stdout)["sessions"]


@pytest.mark.requirement("R146")
def test_without_an_id_the_user_is_asked_once_and_nothing_is_created(repo: Repo, terminal: Terminal) -> None:
    use_program(repo)
    create_issues(repo, 1)

    terminal.type("iterdev resolve 'the login'; echo exit=$?")
    terminal.until("No issue ids found. Which issues (such as ISS-20260308-120000 or GH-42)")
    terminal.type("that one")
    screen = terminal.until("exit=2")

    assert "The request names no issue" in screen
    assert screen.count("No issue ids found") == 1
    assert sessions(repo) == []


@pytest.mark.requirement("R146", "R158")
def test_ids_that_do_not_exist_are_told_and_valid_ones_asked_for(repo: Repo, terminal: Terminal) -> None:
    use_program(repo)
    create_issues(repo, 1)

    terminal.type("iterdev resolve GH-9; echo exit=$?")
    terminal.until('There is no issue "GH-9"', "Which issues")
    terminal.type("GH-1")
    terminal.until("BUILD-001", "plan [approve]:")
    terminal.type("q")
    terminal.until("exit=5")

    assert status_of_issues(repo) == {"GH-1": "planning"}


@pytest.mark.requirement("R158")
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["the login"], "The request names no issue"),
        (["GH-9"], 'There is no issue "GH-9"'),
        (["--all-pending"], "No issue is pending"),
        (["GH-1 --mode=ful"], '"ful" is not a mode (did you mean "full"?)'),
        (["--mode=full --all-pending"], "No issue is pending"),
        (["GH-1", "--mode", "ful"], "'ful' is not one of 'quick', 'full', 'batch'"),
        (["GH-1", "--exec", "codexx"], '"codexx" is neither an agent nor "auto" (did you mean "codex"?)'),
        (["GH-1", "--role-agent", "developer=mine"], 'There is no role "developer"'),
        (["--role", "developr"], 'There is no role "developr"'),
        (["--role", "explorer", "--detach"], "--role and --detach exclude each other"),
    ],
)
def test_in_a_pipe_what_is_wrong_is_an_error_and_nothing_is_created(repo: Repo, words: list[str], problem: str) -> None:
    use_program(repo)
    create_issues(repo, 1)
    repo.iterdev("issue", "update", "GH-1", "--status", "completed")

    refused = repo.iterdev("resolve", *words)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert problem in refused.stderr
    assert sessions(repo) == []


@pytest.mark.requirement("R145", "R148")
def test_all_pending_issues_are_resolved_by_the_default_method(repo: Repo) -> None:
    use_program(repo)
    create_issues(repo, 2)

    done = repo.iterdev("resolve", "-y", "--all-pending")

    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(repo.folder())
    assert {task: row["execution_method"] for task, row in found.items()} == {
        "EXPLORE-001": "",
        "SOLVE-001": "",
        "MARSHAL-001": "",
        "BUILD-001": "gemini",
    }
    assert list(found["BUILD-001"]) == [
        *("id", "title", "description", "role", "issue_ids", "exec_mode", "execution_method", "deps", "context_from"),
        *("wave", "status", "findings", "artifact_path", "error"),
    ]
    assert status_of_issues(repo) == {"GH-1": "completed", "GH-2": "completed"}
    assert repo.git("log", "-1", "--format=%B", f"iterdev/{repo.folder().name}").splitlines()[2:4] == [
        "- GH-1: Problem of GH-1",
        "- GH-2: Problem of GH-2",
    ]


@pytest.mark.requirement("R144", "R147")
def test_the_text_may_come_from_standard_input_and_the_plan_names_the_issues(repo: Repo) -> None:
    use_program(repo)
    create_issues(repo, 2)

    asked = repo.iterdev("resolve", "-", stdin="First GH-2,\nthen GH-1. --mode=full\n")

    assert asked.returncode == 5, asked.stderr
    question = "Question (plan): Run these tasks? They resolve GH-2 (Problem of GH-2), GH-1 (Problem of GH-1)."
    assert question in asked.stdout
    assert "AUDIT-001" in asked.stdout


def test_the_last_line_names_the_issue_that_is_not_resolved_and_why(repo: Repo) -> None:
    use_program(repo, fails=["BUILD-001"])
    create_issues(repo, 1)

    done = repo.iterdev("resolve", "-y", "GH-1")

    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert last == "Not successful: tasks: 1 failed; GH-1 is not resolved: BUILD-001 failed: it broke"


@pytest.mark.requirement("R39", "R92", "R178")
@pytest.mark.parametrize("engine", ["wave", "beat"])
@pytest.mark.parametrize("command", ["run", "resolve"])
def test_every_role_can_be_worked_by_one_worker(repo: Repo, engine: str, command: str) -> None:
    use_program(repo)
    create_issues(repo, 2, "--priority", "4")
    repo.iterdev("resolve", "--engine", engine, "GH-1 GH-2")
    session = repo.folder(engine).name
    assert repo.iterdev("answer", session, "plan", "approve").returncode == 0

    idle = repo.iterdev(command, "--role", "implementer", session)
    for role in ("explorer", "planner", "reviewer", "integrator", "implementer"):
        done = repo.iterdev(command, f"--role={role}", session)
        assert done.returncode in {0, 5}, done.stdout + done.stderr

    assert "Nothing is ready for the implementer" in idle.stdout
    assert set(statuses(repo.folder(engine)).values()) == {"completed"}
    # The order of two solutions without common files needs no integrator.
    assert [call["role"] for call in repo.calls()] == ["explorer", "planner", "reviewer", "implementer"]
    heard = json.loads(repo.iterdev("team", "list", "--session-id", session, "--last", "100", "--json").stdout)
    finals = [one for one in heard["messages"] if one["to"] == "coordinator"]
    assert [(one["from"], one["type"]) for one in finals] == [
        ("explorer", "context_ready"),
        ("planner", "solution_ready"),
        ("reviewer", "approved"),
        ("integrator", "queue_ready"),
        ("implementer", "impl_complete"),
    ]
    assert left_behind(repo) == []


def test_a_worker_is_sent_to_a_session_that_has_its_role(repo: Repo) -> None:
    use_program(repo)
    create_issues(repo, 1)
    repo.iterdev("resolve", "GH-1")
    issues = repo.folder().name
    repo.iterdev("answer", issues, "plan", "approve")

    nobody = repo.iterdev("run", "--role", "developer")
    wrong = repo.iterdev("run", "--role", "developer", issues)
    done = repo.iterdev("run", "--role", "explorer")

    assert 'No unfinished session has a "developer"' in nobody.stderr
    assert f'"{issues}" has no developer' in wrong.stderr
    assert "its roles: explorer, planner, reviewer, integrator, implementer" in wrong.stderr
    assert done.returncode == 0, done.stderr
    assert statuses(repo.folder())["EXPLORE-001"] == "completed"


@pytest.fixture
def pushing(repo: Repo) -> Repo:
    """A remote, and a `gh` that writes down what it gets."""
    remote = repo.home / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True, env=repo.env)
    repo.git("remote", "add", "origin", str(remote))
    program = repo.home / "bin" / "gh"
    program.parent.mkdir()
    asked = f'echo "$@" >> {repo.home}/asked; cat >> {repo.home}/body'
    program.write_text(f"#!/bin/sh\n{asked}\necho https://github.com/o/r/pull/3\n")
    program.chmod(0o755)
    repo.env["PATH"] = f"{program.parent}:{repo.env['PATH']}"
    use_program(repo)
    create_issues(repo, 2)
    return repo


def test_on_request_a_pull_request_ends_the_session(pushing: Repo) -> None:
    done = pushing.iterdev("resolve", "-y", "--pr", "GH-1 GH-2")

    assert done.returncode == 0, done.stdout + done.stderr
    session = pushing.folder().name
    assert done.stdout.splitlines()[-1] == "Opened: https://github.com/o/r/pull/3"
    assert (
        (pushing.home / "asked")
        .read_text()
        .startswith(f"pr create --head iterdev/{session} --base main --title Resolve GH-1, GH-2")
    )
    assert (pushing.home / "body").read_text().startswith(f"{BEGIN}\nFixes #1\nFixes #2\n\n# Issue Resolution Report\n")


def test_a_pull_request_for_each_issue_is_in_the_json_document(pushing: Repo) -> None:
    done = pushing.iterdev("resolve", "-y", "--pr-per-issue", "GH-1 GH-2", "--json")

    document = json.loads(done.stdout)
    session = pushing.folder().name
    assert done.returncode == document["exit_code"] == 0, done.stderr
    # Both are built at once: the one that is done first lands first.
    opened = document["pull_requests"]
    assert sorted(one["branch"] for one in opened) == [f"iterdev/{session}-gh-{n}" for n in (1, 2)]
    assert [one["base"] for one in opened] == ["main", opened[0]["branch"]]
    assert sorted(one["title"] for one in opened) == ["GH-1: Problem of GH-1", "GH-2: Problem of GH-2"]


def test_a_session_that_lands_nothing_opens_no_pull_request(pushing: Repo) -> None:
    use_program(pushing, fails=["BUILD-001"])

    done = pushing.iterdev("resolve", "-y", "--pr", "GH-1")

    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "No pull request: nothing has landed"
    assert not (pushing.home / "asked").exists()
