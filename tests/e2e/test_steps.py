"""The beat engine step by step: what its files say after each call, and while an agent is at work."""

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import agent_at_work, eventually
from tests.session_files import document, left_behind, processes, statuses

METRICS = ("total", "completed", "in_progress", "blocked", "velocity")


def ledger(repo: Repo) -> dict[str, object]:
    return document(repo.folder("beat") / "task-ledger.json")


def metrics(repo: Repo) -> tuple[object, ...]:
    found = ledger(repo)["metrics"]
    assert isinstance(found, dict)
    return tuple(found[name] for name in METRICS)


def session(repo: Repo) -> dict[str, object]:
    return document(repo.folder("beat") / "session.json")


def rounds(repo: Repo) -> tuple[object, object]:
    """As the session and the shared state have them."""
    return session(repo)["gc_round"], document(repo.folder("beat") / ".msg" / "meta.json")["gc_round"]


def in_ledger(repo: Repo) -> dict[object, object]:
    entries = ledger(repo)["tasks"]
    assert isinstance(entries, list)
    return {entry["id"]: entry["status"] for entry in entries}


def last_event(repo: Repo) -> tuple[object, object]:
    found = session(repo)["last_event"]
    assert isinstance(found, dict)
    return found["type"], found["task"]


@pytest.mark.requirement("R103", "R106", "R117")
def test_after_every_step_the_session_the_ledger_and_the_shared_state_are_up_to_date(repo: Repo) -> None:
    repo.behave(**{"REVIEW-001": {"score": 5}})
    repo.iterdev("run", "--engine", "beat", "--pipeline", "sprint", "Add a greeting")
    repo.iterdev("answer", repo.folder("beat").name, "plan", "approve")
    counted, fixing, happened = [], [], []
    while not happened or happened[-1] != ("Finished", None):
        assert repo.iterdev("resume", "--step", "--wait").returncode == 0
        assert in_ledger(repo) == statuses(repo.folder("beat"))
        assert session(repo)["active_tasks"] == []
        counted.append(metrics(repo))
        fixing.append(rounds(repo))
        happened.append(last_event(repo))

    # The design, the work, both looks at it, the fix, the second review, and the tests of what was landed since.
    assert counted == [
        (4, 1, 0, 0, 1),
        (4, 2, 0, 0, 2),
        (6, 4, 0, 0, 4),
        (6, 5, 0, 0, 5),
        (6, 5, 0, 0, 5),
        (6, 6, 0, 0, 6),
    ]
    assert fixing == [(0, 0)] * 2 + [(1, 1)] * 4
    # The design gave the developer's task its title.
    assert (happened[0], happened[1]) == (("TasksReplanned", None), ("Landed", "DEV-001"))
    assert happened[3] == ("Landed", "DEV-fix-1")
    assert session(repo)["status"] == "completed"


@pytest.mark.requirement("R117")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_step_ends_after_it_has_started_its_workers_and_the_next_one_goes_on(repo: Repo, engine: str) -> None:
    release = repo.home / "release"
    repo.behave(architect={"run": f"until test -e {release}; do sleep 0.05; done"})
    repo.iterdev("run", "--engine", engine, "--pipeline", "sprint", "Add a greeting")
    session = repo.folder(engine).name
    repo.iterdev("answer", session, "plan", "approve")

    first = repo.iterdev("resume", "--step")
    shown = repo.iterdev("status")
    again = repo.iterdev("resume", "--step")
    working = [call["task"] for call in repo.calls()]
    release.touch()
    eventually(lambda: statuses(repo.folder(engine))["DESIGN-001"] == "completed", "the design")
    eventually(lambda: processes(repo) == [], "the engine of the first step to end")
    second = repo.iterdev("resume", "--step")

    next_step = f"Next: iterdev resume {session} --step"
    assert (first.returncode, again.returncode, second.returncode) == (0, 0, 0), first.stderr + again.stderr
    assert f"Running in the background: DESIGN-001 (architect). {next_step}" in first.stdout
    assert "[RUN]  DESIGN-001" in shown.stdout
    assert "State: running" in shown.stdout
    assert f"Running in the background: DESIGN-001 (architect). {next_step}" in again.stdout
    assert working == ["DESIGN-001"]
    eventually(lambda: processes(repo) == [], "the engine of the second step to end")
    assert [call["task"] for call in repo.calls()] == ["DESIGN-001", "DEV-001"]
    assert statuses(repo.folder(engine))["DEV-001"] == "completed"
    assert left_behind(repo) == []


@pytest.mark.requirement("R117")
def test_a_step_that_cannot_start_anything_says_why(repo: Repo) -> None:
    repo.iterdev("run", "--pipeline", "patch", "Add a greeting")
    session = repo.folder().name

    asked = repo.iterdev("resume", "--step")
    steps = [repo.iterdev("resume", "-y", "--step") for _ in range(1)]
    eventually(lambda: processes(repo) == [], "the engine to end")
    while statuses(repo.folder())["VERIFY-001"] != "completed":
        steps.append(repo.iterdev("resume", "--step"))
        eventually(lambda: processes(repo) == [], "the engine to end")
    over = repo.iterdev("resume", session, "--step")

    assert (asked.returncode, "iterdev answer" in asked.stdout) == (5, True)
    assert {step.returncode for step in steps} == {0}
    assert (over.returncode, f"{session}: 2 completed" in over.stdout) == (0, True)


@pytest.mark.requirement("R103", "R106")
def test_while_an_agent_is_at_work_the_session_and_the_ledger_say_so(repo: Repo) -> None:
    with agent_at_work(repo, "run", "-y", "--engine", "beat", "Fix it") as running:
        eventually(lambda: session(repo)["active_tasks"] == ["DEV-001"], "the session to name the task")
        working = metrics(repo), in_ledger(repo), last_event(repo)
        running.kill()

    assert working == (
        (2, 0, 1, 0, 0),
        {"DEV-001": "in_progress", "VERIFY-001": "pending"},
        ("AttemptStarted", "DEV-001"),
    )
