"""Several sprints: made one after the other, with a pause between them."""

import json

import pytest
from tests.app.conftest import Team
from tests.conftest import Repo
from tests.session_files import left_behind, rows, statuses

from iterdev.app import feedback, inspect, tech_debt
from iterdev.core.types import Ending, Severity

pytestmark = pytest.mark.elsewhere

TWO_MILESTONES = {
    "result": {
        "tasks": [{"id": "t1", "title": "Store"}, {"id": "t2", "title": "Load"}, {"id": "t3", "title": "Serve"}],
        "milestones": [{"title": "Store them", "tasks": ["t1", "t2"]}, {"title": "Serve them", "tasks": ["t3"]}],
    }
}


def meta(repo: Repo, engine: str) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = json.loads((repo.folder(engine) / ".msg" / "meta.json").read_text())
    return found


@pytest.mark.requirement("R32", "R36", "R37", "R81")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_session_of_two_milestones_runs_two_sprints(repo: Repo, team: Team, engine: str) -> None:
    repo.behave(architect=TWO_MILESTONES, reviewer={"score": 7.5})

    done = team.run("Keep greetings", pipeline="multi-sprint", engine=engine)

    folder = repo.folder(engine)
    checks = (["GC-CHECK-001"], ["GC-CHECK-002"]) if engine == "wave" else ([], [])
    first = ["DESIGN-001", "DEV-001", "DEV-002", "VERIFY-001", "REVIEW-001", *checks[0]]
    assert done.succeeded, done.lines
    assert list(rows(folder)) == [*first, "DESIGN-002", "DEV-003", "VERIFY-002", "REVIEW-002", *checks[1]]
    assert set(statuses(folder).values()) == {"completed"}
    assert [entry["sprint_id"] for entry in meta(repo, engine)["sprint_history"]] == ["sprint-1", "sprint-2"]
    assert "| sprint-2 | Serve them |" in (folder / "context.md").read_text()
    assert (folder / "design" / "design-002.md").exists()
    landed = repo.git("ls-tree", "--name-only", f"iterdev/{folder.name}").split()
    assert {"DEV-001.txt", "DEV-002.txt", "DEV-003.txt"} <= set(landed)
    assert left_behind(repo) == []


def test_commits_and_the_table_have_the_titles_of_the_architects_tasks(repo: Repo, team: Team) -> None:
    tasks = [{"id": name, "title": name.capitalize()} for name in ("store it", "load it", "serve it")]
    repo.behave(architect={"result": {"tasks": tasks}})

    done = team.run("Keep greetings", pipeline="multi-sprint")

    folder = repo.folder()
    message = repo.git("log", "--format=%B", "--reverse", f"main..iterdev/{folder.name}")
    assert done.succeeded, done.lines
    assert [rows(folder)[name]["title"] for name in ("DEV-001", "DEV-002")] == ["Store it (+1 more)", "Serve it"]
    assert message.startswith("DEV-001: Store it (+1 more)\n\n- Store it\n- Load it\n\nIterdev-Session: ")
    assert "\nDEV-002: Serve it\n\nIterdev-Session: " in message
    assert inspect.replay(team.repository, team.session).difference is None


@pytest.mark.requirement("R33")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_nobody_is_asked_to_do_the_rest_when_there_is_none(repo: Repo, team: Team, engine: str) -> None:
    one_each = {"milestones": [{"title": "Store them", "tasks": ["t1"]}, {"title": "Serve", "tasks": ["t2", "t3"]}]}
    repo.behave(architect={"result": TWO_MILESTONES["result"] | one_each})

    done = team.run("Keep greetings", pipeline="multi-sprint", engine=engine)

    prompts = {str(call["task"]): str(call["prompt"]) for call in repo.calls()}
    assert done.succeeded, done.lines
    assert statuses(repo.folder(engine))["DEV-002"] == "completed"
    assert "DEV-002" not in prompts
    for name in ("DEV-001", "REVIEW-001"):
        assert ["- t1: " in prompts[name], "- t2: " in prompts[name], "- t3: " in prompts[name]] == [True, False, False]
    assert inspect.replay(team.repository, team.session).difference is None


@pytest.mark.requirement("R80")
def test_between_two_sprints_the_run_rests_until_it_is_resumed(repo: Repo, team: Team) -> None:
    repo.behave(architect=TWO_MILESTONES)
    team.run("Keep greetings", auto=False, pipeline="multi-sprint")
    team.answer("plan", "approve")

    rested = team.resume()
    calls = len(repo.calls())
    went_on = team.resume()

    assert rested.result.ending is Ending.waiting
    (gate,) = rested.view.gates
    assert gate.question.startswith("Sprint 1 of 2 is done")
    assert ("Sprint", "sprint-1 of 2 (1. Store them; 2. Serve them)") in rested.view.team.facts
    assert went_on.succeeded, went_on.lines
    assert next(call["task"] for call in repo.calls()[calls:]) == "DESIGN-002"


@pytest.mark.requirement("R36", "R67")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_session_that_lost_its_journal_in_the_first_sprint_still_makes_the_second(
    repo: Repo, team: Team, engine: str
) -> None:
    repo.behave(architect=TWO_MILESTONES)
    team.run("Keep greetings", auto=False, pipeline="multi-sprint", engine=engine)
    team.answer("plan", "approve")
    team.resume(step=True)
    said = (repo.folder(engine) / ".msg" / "messages.jsonl").read_text()
    for file in (repo.path / ".workflow").glob("iterdev.db*"):
        file.unlink()

    shown = inspect.status(team.repository, team.session)
    done = team.resume(auto=True)

    assert dict(shown.team.facts)["Sprint"].startswith("sprint-1 of 2")
    assert done.succeeded, done.lines
    assert [call["task"] for call in repo.calls()].count("DESIGN-001") == 1
    assert {"DESIGN-002", "DEV-003", "VERIFY-002", "REVIEW-002"} <= set(rows(repo.folder(engine)))
    assert set(statuses(repo.folder(engine)).values()) == {"completed"}
    assert (repo.folder(engine) / ".msg" / "messages.jsonl").read_text().startswith(said)


@pytest.mark.hosts
@pytest.mark.requirement("R139")
def test_feedback_between_two_sprints_is_planned_first_and_addressed_by_the_work(repo: Repo, team: Team) -> None:
    repo.behave(architect=TWO_MILESTONES)
    team.run("Keep greetings", auto=False, pipeline="multi-sprint")
    team.answer("plan", "approve")
    team.resume()
    given = feedback.add(team.repository, team.session, "They must rhyme", severity="critical", category="general")
    name = given.feedback_id
    tech_debt.add(team.repository, team.session, tech_debt.Debt(description="No index"))
    taken_up = {"result": {"tasks": [{"id": "t3", "title": "Serve rhymes", "feedback": [name]}]}}
    repo.behave(architect=TWO_MILESTONES, **{"DESIGN-002": taken_up})

    done = team.resume()

    (item,) = meta(repo, "wave")["user_feedback_items"]
    prompt = next(str(call["prompt"]) for call in repo.calls() if call["task"] == "DESIGN-002")
    breakdown = json.loads((repo.folder() / "design" / "task-breakdown.json").read_text())
    assert done.succeeded, done.lines
    assert prompt.index("They must rhyme") < prompt.index("No index")
    assert (item["status"], item["source_task_id"]) == ("addressed", "DEV-003")
    assert breakdown["tasks"][0]["feedback"] == [name]
    assert inspect.replay(team.repository, team.session).difference is None


@pytest.mark.requirement("R143")
def test_debt_that_a_developer_pays_back_is_resolved_and_told_between_the_sprints(repo: Repo, team: Team) -> None:
    repo.behave(architect=TWO_MILESTONES)
    team.run("Keep greetings", auto=False, pipeline="multi-sprint")
    owed = [
        tech_debt.add(
            team.repository, team.session, tech_debt.Debt(description=text, estimated_effort=tech_debt.Effort.small)
        )
        for text in ("No index", "No cache")
    ]
    paid = {"result": {"resolved_debt": [owed[0].debt_id]}}
    repo.behave(architect=TWO_MILESTONES, **{"DEV-002": paid})
    team.answer("plan", "approve")

    rested = team.resume()

    states = {item["description"]: item["status"] for item in meta(repo, "wave")["tech_debt_items"]}
    (history,) = meta(repo, "wave")["sprint_history"]
    prompts = {str(call["task"]): str(call["prompt"]) for call in repo.calls()}
    assert states == {"No index": "resolved", "No cache": "open"}
    assert f"{owed[0].debt_id} paid back: No index" in history["what_worked"]
    (gate,) = rested.view.gates
    assert "Technical debt: 2 in all (2 medium; 2 code), 1 open, 0 in progress." in gate.question
    assert f"{owed[1].debt_id} [medium, code, effort small] No cache" in prompts["DESIGN-001"]
    assert "Recommended for this sprint" in prompts["DESIGN-001"]


@pytest.mark.requirement("R83")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_sprint_that_gets_little_done_is_reported_with_the_advice_to_do_less(
    repo: Repo, team: Team, engine: str
) -> None:
    repo.behave(architect=TWO_MILESTONES, developer={"result": {"status": "failed", "error": "too much"}})

    done = team.run("Keep greetings", pipeline="multi-sprint", engine=engine)

    planned = 5 if engine == "beat" else 6
    alarm = f"sprint-1 completed 1 task, {planned} planned; consider a smaller scope for the next one"
    assert not done.succeeded
    assert alarm in done.view.warnings
    assert alarm in (repo.folder(engine) / "context.md").read_text(encoding="utf-8")


@pytest.mark.requirement("R80", "R143")
def test_overdue_debt_is_not_passed_over_by_resuming(repo: Repo, team: Team) -> None:
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", settings + '\n[debt]\nseverity = "high"\nsprints = 0\n')
    names = ("Store", "Serve", "Watch")
    work = {
        "tasks": [{"id": name.lower(), "title": name} for name in names],
        "milestones": [{"title": f"{name} them", "tasks": [name.lower()]} for name in names],
    }
    repo.behave(architect={"result": work})
    team.run("Keep greetings", auto=False, pipeline="multi-sprint")
    overdue = tech_debt.Debt(description="No error handling", severity=Severity.high)
    tech_debt.add(team.repository, team.session, overdue)
    team.answer("plan", "approve")
    for _ in ("the first sprint", "the second"):
        assert team.resume().result.ending is Ending.waiting
    calls = len(repo.calls())

    asked = team.resume()
    unasked = len(repo.calls())
    team.answer("sprint-2", "go-on")
    went_on = team.resume()

    assert asked.result.ending is Ending.waiting
    (gate,) = asked.view.gates
    assert "Debt that is overdue: No error handling" in gate.question
    assert (gate.id, "stop" in gate.choices) == ("sprint-2", True)
    assert unasked == calls
    assert went_on.succeeded, went_on.lines
    assert repo.calls()[calls]["task"] == "DESIGN-003"


@pytest.mark.requirement("R82")
def test_a_plain_sprint_follows_when_it_is_allowed_and_chosen(repo: Repo, team: Team) -> None:
    repo.behave(architect=TWO_MILESTONES)
    team.run("Keep greetings", auto=False, pipeline="multi-sprint")
    team.answer("plan", "approve")
    team.resume()

    team.answer("sprint-1", "downgrade")
    done = team.resume()

    assert done.succeeded, done.lines
    assert list(rows(repo.folder()))[-4:] == ["DESIGN-002", "DEV-003", "VERIFY-002", "REVIEW-002"]
    assert rows(repo.folder())["DEV-003"]["pipeline"] == "sprint"
