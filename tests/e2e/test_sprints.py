"""Several sprints with the real command: made one after the other, resting between them."""

import json

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import left_behind, rows, statuses

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
def test_a_session_of_two_milestones_runs_two_sprints(repo: Repo, engine: str) -> None:
    repo.behave(architect=TWO_MILESTONES, reviewer={"score": 7.5})

    done = repo.iterdev("run", "-y", "--pipeline", "multi-sprint", "--engine", engine, "Keep greetings")

    folder = repo.folder(engine)
    checks = (["GC-CHECK-001"], ["GC-CHECK-002"]) if engine == "wave" else ([], [])
    first = ["DESIGN-001", "DEV-001", "DEV-002", "VERIFY-001", "REVIEW-001", *checks[0]]
    assert done.returncode == 0, done.stderr
    assert list(rows(folder)) == [*first, "DESIGN-002", "DEV-003", "VERIFY-002", "REVIEW-002", *checks[1]]
    assert set(statuses(folder).values()) == {"completed"}
    assert [entry["sprint_id"] for entry in meta(repo, engine)["sprint_history"]] == ["sprint-1", "sprint-2"]
    assert "| sprint-2 | Serve them |" in (folder / "context.md").read_text()
    assert (folder / "design" / "design-002.md").exists()
    landed = repo.git("ls-tree", "--name-only", f"iterdev/{folder.name}").split()
    assert {"DEV-001.txt", "DEV-002.txt", "DEV-003.txt"} <= set(landed)
    assert left_behind(repo) == []


@pytest.mark.requirement("R33")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_nobody_is_asked_to_do_the_rest_when_there_is_none(repo: Repo, engine: str) -> None:
    one_each = {"milestones": [{"title": "Store them", "tasks": ["t1"]}, {"title": "Serve", "tasks": ["t2", "t3"]}]}
    repo.behave(architect={"result": TWO_MILESTONES["result"] | one_each})

    done = repo.iterdev("run", "-y", "--pipeline", "multi-sprint", "--engine", engine, "Keep greetings")

    prompts = {str(call["task"]): str(call["prompt"]) for call in repo.calls()}
    assert done.returncode == 0, done.stderr
    assert statuses(repo.folder(engine))["DEV-002"] == "completed"
    assert "DEV-002" not in prompts
    for name in ("DEV-001", "REVIEW-001"):
        assert ["- t1: " in prompts[name], "- t2: " in prompts[name], "- t3: " in prompts[name]] == [True, False, False]
    assert repo.iterdev("replay", repo.folder(engine).name).returncode == 0


@pytest.mark.requirement("R80")
def test_between_two_sprints_the_run_rests_until_it_is_resumed(repo: Repo) -> None:
    repo.behave(architect=TWO_MILESTONES)
    repo.iterdev("run", "--pipeline", "multi-sprint", "Keep greetings")
    session = repo.folder().name
    repo.iterdev("answer", session, "plan", "approve")

    rested = repo.iterdev("resume", session)
    shown = repo.iterdev("status", session)
    calls = len(repo.calls())
    went_on = repo.iterdev("resume", session)

    assert rested.returncode == 5
    assert "Sprint 1 of 2 is done" in rested.stdout
    assert f"iterdev resume {session}" in rested.stdout
    assert "Sprint: sprint-1 of 2 (1. Store them; 2. Serve them)" in shown.stdout
    assert went_on.returncode == 0, went_on.stdout + went_on.stderr
    assert next(call["task"] for call in repo.calls()[calls:]) == "DESIGN-002"


@pytest.mark.requirement("R36", "R67")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_session_that_lost_its_journal_in_the_first_sprint_still_makes_the_second(repo: Repo, engine: str) -> None:
    repo.behave(architect=TWO_MILESTONES)
    repo.iterdev("run", "--pipeline", "multi-sprint", "--engine", engine, "Keep greetings")
    session = repo.folder(engine).name
    repo.iterdev("answer", session, "plan", "approve")
    repo.iterdev("resume", session, "--step")
    said = (repo.folder(engine) / ".msg" / "messages.jsonl").read_text()
    for file in (repo.path / ".workflow").glob("iterdev.db*"):
        file.unlink()

    shown = repo.iterdev("status", session)
    repo.iterdev("answer", session, "plan", "approve")
    done = repo.iterdev("resume", session, "-y")

    assert "Sprint: sprint-1 of 2" in shown.stdout
    assert done.returncode == 0, done.stdout + done.stderr
    assert [call["task"] for call in repo.calls()].count("DESIGN-001") == 1
    assert {"DESIGN-002", "DEV-003", "VERIFY-002", "REVIEW-002"} <= set(rows(repo.folder(engine)))
    assert set(statuses(repo.folder(engine)).values()) == {"completed"}
    assert (repo.folder(engine) / ".msg" / "messages.jsonl").read_text().startswith(said)


@pytest.mark.requirement("R139")
def test_feedback_between_two_sprints_is_planned_first_and_addressed_by_the_work(repo: Repo) -> None:
    repo.behave(architect=TWO_MILESTONES)
    repo.iterdev("run", "--pipeline", "multi-sprint", "Keep greetings")
    session = repo.folder().name
    repo.iterdev("answer", session, "plan", "approve")
    repo.iterdev("resume", session)
    given = ("feedback", "add", "--session-id", session, "--severity", "critical", "--json", "They must rhyme")
    name = json.loads(repo.iterdev(*given).stdout)["feedback_id"]
    repo.iterdev("debt", "add", "--session-id", session, "No index")
    taken_up = {"result": {"tasks": [{"id": "t3", "title": "Serve rhymes", "feedback": [name]}]}}
    repo.behave(architect=TWO_MILESTONES, **{"DESIGN-002": taken_up})

    done = repo.iterdev("resume", session)

    (item,) = meta(repo, "wave")["user_feedback_items"]
    prompt = next(str(call["prompt"]) for call in repo.calls() if call["task"] == "DESIGN-002")
    breakdown = json.loads((repo.folder() / "design" / "task-breakdown.json").read_text())
    assert done.returncode == 0, done.stderr
    assert prompt.index("They must rhyme") < prompt.index("No index")
    assert (item["status"], item["source_task_id"]) == ("addressed", "DEV-003")
    assert breakdown["tasks"][0]["feedback"] == [name]
    assert repo.iterdev("replay", session).returncode == 0


@pytest.mark.requirement("R143")
def test_debt_that_a_developer_pays_back_is_resolved_and_told_between_the_sprints(repo: Repo) -> None:
    repo.behave(architect=TWO_MILESTONES)
    repo.iterdev("run", "--pipeline", "multi-sprint", "Keep greetings")
    session = repo.folder().name
    owed = [
        json.loads(repo.iterdev("debt", "add", "--session-id", session, "--effort", "small", "--json", text).stdout)
        for text in ("No index", "No cache")
    ]
    paid = {"result": {"resolved_debt": [owed[0]["debt_id"]]}}
    repo.behave(architect=TWO_MILESTONES, **{"DEV-002": paid})
    repo.iterdev("answer", session, "plan", "approve")

    rested = repo.iterdev("resume", session)

    states = {item["description"]: item["status"] for item in meta(repo, "wave")["tech_debt_items"]}
    (history,) = meta(repo, "wave")["sprint_history"]
    prompts = {str(call["task"]): str(call["prompt"]) for call in repo.calls()}
    assert states == {"No index": "resolved", "No cache": "open"}
    assert f"{owed[0]['debt_id']} paid back: No index" in history["what_worked"]
    assert "Technical debt: 2 in all (2 medium; 2 code), 1 open, 0 in progress." in rested.stdout
    assert f"{owed[1]['debt_id']} [medium, code, effort small] No cache" in prompts["DESIGN-001"]
    assert "Recommended for this sprint" in prompts["DESIGN-001"]


@pytest.mark.requirement("R83")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_sprint_that_gets_little_done_is_reported_with_the_advice_to_do_less(repo: Repo, engine: str) -> None:
    repo.behave(architect=TWO_MILESTONES, developer={"result": {"status": "failed", "error": "too much"}})

    done = repo.iterdev("run", "-y", "--pipeline", "multi-sprint", "--engine", engine, "Keep greetings")

    session = repo.folder(engine).name
    planned = 5 if engine == "beat" else 6
    alarm = f"sprint-1 completed 1 tasks, {planned} were planned; consider a smaller scope for the next one"
    assert done.returncode == 1
    assert alarm in done.stdout
    assert alarm in repo.iterdev("status", session).stdout
    assert alarm in (repo.folder(engine) / "context.md").read_text(encoding="utf-8")


@pytest.mark.requirement("R80", "R143")
def test_overdue_debt_is_not_passed_over_by_resuming(repo: Repo) -> None:
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", settings + '\n[debt]\nseverity = "high"\nsprints = 0\n')
    names = ("Store", "Serve", "Watch")
    work = {
        "tasks": [{"id": name.lower(), "title": name} for name in names],
        "milestones": [{"title": f"{name} them", "tasks": [name.lower()]} for name in names],
    }
    repo.behave(architect={"result": work})
    repo.iterdev("run", "--pipeline", "multi-sprint", "Keep greetings")
    session = repo.folder().name
    repo.iterdev("debt", "add", "--session-id", session, "--severity", "high", "No error handling")
    repo.iterdev("answer", session, "plan", "approve")
    for _ in ("the first sprint", "the second"):
        assert repo.iterdev("resume", session).returncode == 5
    calls = len(repo.calls())

    asked = repo.iterdev("resume", session)
    unasked = len(repo.calls())
    repo.iterdev("answer", session, "sprint-2", "go-on")
    went_on = repo.iterdev("resume", session)

    assert asked.returncode == 5
    assert "Debt that is overdue: No error handling" in asked.stdout
    assert f"iterdev answer {session} sprint-2 stop" in asked.stdout
    assert unasked == calls
    assert went_on.returncode == 0, went_on.stderr
    assert repo.calls()[calls]["task"] == "DESIGN-003"


@pytest.mark.requirement("R82")
def test_a_plain_sprint_follows_when_it_is_allowed_and_chosen(repo: Repo) -> None:
    repo.behave(architect=TWO_MILESTONES)
    repo.iterdev("run", "--pipeline", "multi-sprint", "Keep greetings")
    session = repo.folder().name
    repo.iterdev("answer", session, "plan", "approve")
    repo.iterdev("resume", session)

    repo.iterdev("answer", session, "sprint-1", "downgrade")
    done = repo.iterdev("resume", session)

    assert done.returncode == 0
    assert list(rows(repo.folder()))[-4:] == ["DESIGN-002", "DEV-003", "VERIFY-002", "REVIEW-002"]
    assert rows(repo.folder())["DEV-003"]["pipeline"] == "sprint"
