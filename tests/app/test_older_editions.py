"""Sessions of editions without tasks.csv and without a journal: they are listed, shown and gone on with."""

import json
from pathlib import Path

import pytest
from tests.app.conftest import Team
from tests.conftest import Repo
from tests.session_files import statuses

from iterdev.app import inspect
from iterdev.app.sessions import to_resume
from iterdev.core.types import Phase, Status

NAME = "IDS-add-a-greeting-2026-02-23"
STATUSES = {"DESIGN-001": "completed", "DEV-001": "in_progress", "VERIFY-001": "pending", "REVIEW-001": "blocked"}
OWNERS = {"DESIGN": "architect", "DEV": "developer", "VERIFY": "tester", "REVIEW": "reviewer"}


def older_session(repo: Repo, *, status: str = "active", ledger: object = None) -> Path:
    """What the first edition left of a session."""
    folder = repo.path / ".workflow" / ".team" / NAME
    folder.mkdir(parents=True)
    session = {
        "session_id": NAME,
        "team_name": "iterdev",
        "task": "Add a greeting",
        "pipeline": "sprint",
        "status": status,
        "created_at": "2026-02-23T10:00:00+08:00",
        "completed_tasks": ["DESIGN-001"],
    }
    debt = {
        "debt_id": "TD-mlzk3a",
        "category": "code",
        "source_task_id": "DEV-001",
        "description": "copied",
        "severity": "high",
        "detection_date": "2026-02-23T10:00:00Z",
        "owner": "developer",
        "resolution_plan": "",
        "estimated_effort": "small",
        "priority": "medium",
        "status": "open",
        "related_files": [],
    }
    (folder / "team-session.json").write_text(json.dumps(session))
    (folder / "shared-memory.json").write_text(json.dumps({"sprint_history": [], "tech_debt_items": [debt]}))
    if ledger:
        (folder / "task-ledger.json").write_text(json.dumps(ledger))
    return folder


def ledger_of_sprint() -> dict[str, object]:
    tasks = [
        {"id": name, "title": f"Title of {name}", "owner": OWNERS[name.partition("-")[0]], "status": status}
        for name, status in STATUSES.items()
    ]
    return {"sprint_id": "sprint-1", "sprint_goal": "greet", "tasks": tasks}


@pytest.mark.requirement("R67")
def test_an_older_session_is_listed_and_shown_without_a_change_of_its_files(repo: Repo, team: Team) -> None:
    folder = older_session(repo, ledger=ledger_of_sprint())
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    (line,) = inspect.summaries(team.repository)
    shown = inspect.status(team.repository, line.summary.id)

    assert (line.summary.id, line.summary.phase, line.summary.tasks) == (NAME, Phase.active, 4)
    assert shown.requirement == "Add a greeting"
    assert shown.team.pipeline == "sprint"
    assert [(task.id, task.role, task.status) for task in shown.tasks] == [
        ("DESIGN-001", "architect", Status.completed),
        ("DEV-001", "developer", Status.pending),
        ("VERIFY-001", "tester", Status.pending),
        ("REVIEW-001", "reviewer", Status.pending),
    ]
    assert any(text.startswith("this session has no tasks.csv; its tasks are those of") for text in shown.warnings)
    assert shown.debt
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.requirement("R67")
def test_an_older_session_is_resumed_with_what_was_not_completed(repo: Repo, team: Team) -> None:
    older_session(repo, ledger=ledger_of_sprint())

    found = to_resume(team.repository)
    done = team.resume(auto=True)

    assert found == NAME
    assert done.succeeded, done.lines
    assert [call["task"] for call in repo.calls()] == ["DEV-001", "REVIEW-001"]
    assert set(statuses(repo.folder("beat")).values()) == {"completed"}


@pytest.mark.parametrize("ledger", [None, {"tasks": []}, {"tasks": [{"id": "DEV 1"}]}, ["nonsense"]])
def test_of_an_older_session_without_tasks_the_plan_is_made_again(repo: Repo, team: Team, ledger: object) -> None:
    older_session(repo, ledger=ledger)

    shown = inspect.status(team.repository, team.session)
    asked = team.resume()

    assert shown.tasks == ()
    (warning,) = shown.warnings
    assert warning.startswith("this session has no tasks.csv and no tasks in task-ledger.json")
    assert warning.endswith("going on plans them again; completed before: DESIGN-001")
    assert [gate.id for gate in asked.view.gates] == ["plan"]


def test_an_older_session_that_was_over_is_over(repo: Repo, team: Team) -> None:
    older_session(repo, status="completed", ledger=ledger_of_sprint())

    assert inspect.status(team.repository, team.session).phase is Phase.completed
