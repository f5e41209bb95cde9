import json

import msgspec
import pytest
from tests.store.conftest import COMMIT, CRITICAL, Story, design, review, task

from iterdev.core.collaboration.messages import compose
from iterdev.core.ids import moment
from iterdev.core.session import events
from iterdev.core.session.state import State
from iterdev.core.types import ConflictStrategy, Status, TaskId, TaskKind
from iterdev.core.verification import Verification
from iterdev.store.session_folder import json_records
from iterdev.store.session_folder.json_records import message_line, records
from iterdev.teams.development.events import PipelineChosen, RoundStarted
from iterdev.teams.development.records import analysis_record
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT

ENTRY = {
    "id": "DEV-001",
    "title": "Title of DEV-001",
    "owner": "developer",
    "status": "pending",
    "started_at": None,
    "completed_at": None,
    "gc_rounds": 0,
    "review_score": None,
    "test_pass_rate": None,
    "changed_files": [],
    "conflict_info": {
        "status": "none",
        "conflicting_files": [],
        "resolution_strategy": None,
        "resolved_by_task_id": None,
    },
    "rollback_info": {"snapshot_id": None, "rollback_procedure": None, "last_successful_state_id": None},
    "external_dependencies": [],
}


def ledger(state: State) -> dict[str, object]:
    document: dict[str, object] = json.loads(records(state, DEVELOPMENT)["task-ledger.json"])
    return document


def meta(state: State) -> dict[str, object]:
    return json_records.meta(state, DEVELOPMENT.records(state))


def session_record(state: State) -> dict[str, object]:
    return json_records.session_record(state, DEVELOPMENT.records(state))


def entries(story: Story) -> dict[str, dict[str, object]]:
    return {entry["id"]: entry for entry in ledger(story.state)["tasks"]}


def test_the_records_are_json(story: Story) -> None:
    story.sprint()

    texts = records(story.state, DEVELOPMENT)

    assert texts.keys() == {"session.json", "task-ledger.json", "task-analysis.json", ".msg/meta.json"}
    assert all(isinstance(json.loads(text), dict) and text.endswith("}\n") for text in texts.values())


@pytest.mark.requirement("R103")
def test_the_ledger_has_sprint_goal_tasks_and_five_metrics(story: Story) -> None:
    story.add(task("DESIGN-001"), task("DEV-001"), task("DEV-002"), task("DEV-003", "DEV-002"), task("REVIEW-001"))
    story.complete("DESIGN-001")
    story.start("DEV-001")
    story.fail("DEV-002")
    story.tell(events.TaskSkipped(TaskId("DEV-003"), "DEV-002 failed"))

    document = ledger(story.state)

    assert (document["sprint_id"], document["sprint_goal"]) == ("sprint-1", story.state.session.requirement)
    assert [entry["id"] for entry in document["tasks"]] == list(story.state.tasks.plan)
    assert document["metrics"] == {"total": 5, "completed": 1, "in_progress": 1, "blocked": 2, "velocity": 1}


@pytest.mark.requirement("R103")
def test_the_ledger_follows_every_transition_of_a_task(story: Story) -> None:
    story.add(task("DEV-001"))
    seen = [entries(story)["DEV-001"]["status"]]
    story.start("DEV-001")
    seen.append(entries(story)["DEV-001"]["status"])
    story.end("DEV-001", commit=COMMIT)
    seen.append(entries(story)["DEV-001"]["status"])
    story.land("DEV-001")
    seen.append(entries(story)["DEV-001"]["status"])

    assert seen == ["pending", "in_progress", "in_progress", "completed"]


@pytest.mark.requirement("R104")
def test_an_entry_of_the_ledger_has_all_its_fields_from_the_beginning(story: Story) -> None:
    story.add(task("DEV-001"))

    assert entries(story)["DEV-001"] == ENTRY


@pytest.mark.requirement("R104")
def test_scores_and_rates_are_null_until_they_are_known(story: Story) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001")
    story.complete("DEV-001", commit=COMMIT, changed=("auth.py",))
    before = entries(story)
    story.complete("VERIFY-001", verification=Verification(command="pytest", pass_rate=0.975))
    story.complete("REVIEW-001", review=review(8.5))
    after = entries(story)

    assert {entry["review_score"] for entry in before.values()} == {None}
    assert {entry["test_pass_rate"] for entry in before.values()} == {None}
    assert (after["REVIEW-001"]["review_score"], after["VERIFY-001"]["test_pass_rate"]) == (8.5, 97.5)
    assert (after["DEV-001"]["review_score"], after["DEV-001"]["test_pass_rate"]) == (8.5, 97.5)
    assert (after["DESIGN-001"]["review_score"], after["REVIEW-001"]["test_pass_rate"]) == (None, None)
    assert after["DEV-001"]["changed_files"] == ["auth.py"]
    assert after["DEV-001"]["started_at"] == "2026-02-25T14:17:20+08:00"
    assert after["DEV-001"]["completed_at"] == "2026-02-25T14:18:20+08:00"


@pytest.mark.requirement("R84")
def test_velocity_counts_the_tasks_of_the_current_sprint(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002"), task("DEV-003", sprint=2))
    for name in ("DEV-001", "DEV-002", "DEV-003"):
        story.complete(name)

    metrics = ledger(story.state)["metrics"]

    assert (metrics["completed"], metrics["velocity"]) == (3, 2)


@pytest.mark.requirement("R27")
def test_the_analysis_has_every_field_of_the_specification(story: Story) -> None:
    document = analysis_record(story.state)

    assert document == {
        "task_description": "Refactor the login across modules, test and review it",
        "pipeline_type": "sprint",
        "capabilities": [
            {"name": "tester", "role": "tester", "keywords": ["test"]},
            {"name": "reviewer", "role": "reviewer", "keywords": ["review"]},
        ],
        "roles": [
            {"name": "architect", "prefix": "DESIGN", "inner_loop": False},
            {"name": "developer", "prefix": "DEV", "inner_loop": True},
            {"name": "tester", "prefix": "VERIFY", "inner_loop": False},
            {"name": "reviewer", "prefix": "REVIEW", "inner_loop": False},
        ],
        "complexity": {"score": 6, "level": "High"},
        "needs_architecture": True,
        "needs_testing": True,
        "needs_review": True,
    }


@pytest.mark.requirement("R27")
def test_the_analysis_follows_the_pipeline_that_was_chosen(story: Story) -> None:
    story.tell(PipelineChosen(Pipeline.patch))

    document = analysis_record(story.state)

    assert document["pipeline_type"] == "patch"
    assert [role["name"] for role in document["roles"]] == ["developer", "tester"]
    assert (document["needs_architecture"], document["needs_testing"], document["needs_review"]) == (False, True, False)


@pytest.mark.requirement("R107")
def test_the_shared_state_has_its_eight_parts_from_the_beginning(story: Story) -> None:
    shared = meta(story.state)

    lists = (
        "sprint_history",
        "architecture_decisions",
        "implementation_context",
        "review_feedback_trends",
        "user_feedback_items",
        "tech_debt_items",
    )
    assert [shared[name] for name in lists] == [[]] * 6
    assert (shared["resource_locks"], shared["task_checkpoints"]) == ({}, {})


@pytest.mark.requirement("R87")
def test_a_design_is_recorded_in_the_shared_state(story: Story) -> None:
    story.add(task("DESIGN-001"))
    story.complete("DESIGN-001", design=design())

    assert meta(story.state)["architecture_decisions"] == [
        {
            "design_id": "DESIGN-001",
            "approach": "JWT",
            "rationale": "no state on the host",
            "components": ["api", "auth"],
            "task_count": 2,
        }
    ]


@pytest.mark.requirement("R107", "R170")
def test_development_review_and_tests_are_recorded_in_the_shared_state(story: Story) -> None:
    story.sprint()

    shared = meta(story.state)

    assert shared["implementation_context"] == [
        {"task": "DEV-001", "changed_files": ["auth.py", "api.py"], "is_fix": False, "syntax_clean": True}
    ]
    assert shared["review_feedback_trends"] == [
        {
            "review_id": "REVIEW-001",
            "score": 8.5,
            "critical": 0,
            "high": 0,
            "dimensions": {"correctness": 8.5, "completeness": 8.5, "maintainability": 8.5, "security": 8.5},
            "gc_round": 0,
        }
    ]
    assert shared["test_patterns"] == [{"task": "VERIFY-001", "command": "pytest -q", "pass_rate": 97.5}]
    assert shared["role_state"]["developer"]["task_id"] == "DEV-001"


@pytest.mark.requirement("R75")
def test_a_forced_convergence_is_a_warning_of_the_shared_state_and_of_the_session(story: Story) -> None:
    story.add(task("REVIEW-001"))
    story.complete("REVIEW-001", review=review(4, CRITICAL))
    story.force_convergence()

    (warning,) = meta(story.state)["warnings"]

    assert "tokens never expire" in warning
    assert session_record(story.state)["warnings"] == [warning]


@pytest.mark.requirement("R106")
def test_the_round_is_the_same_in_the_session_and_the_shared_state(story: Story) -> None:
    story.add(task("REVIEW-001"))
    story.complete("REVIEW-001", review=review(4))
    story.tell(RoundStarted(sprint=1, number=1, raised_by=(TaskId("REVIEW-001"),), why="a score of 4"))

    run, shared = session_record(story.state), meta(story.state)

    assert (run["gc_round"], shared["gc_round"]) == (1, 1)
    assert (run["max_gc_rounds"], shared["max_gc_rounds"]) == (3, 3)


def test_the_session_says_what_was_asked_and_where_it_stands(story: Story) -> None:
    story.add_pipeline()
    story.start("DESIGN-001")
    story.tell(events.GateOpened(events.Gate(kind="plan", question="Run it?", choices=("yes", "no"))))

    run = session_record(story.state)

    assert (run["session_id"], run["team_name"], run["engine"]) == (story.session, "iterdev", "wave")
    assert (run["requirement"], run["pipeline"]) == (story.state.session.requirement, "sprint")
    assert (run["status"], run["active_tasks"], run["open_gates"]) == ("active", ["DESIGN-001"], ["plan"])
    assert run["last_event"] == {"type": "GateOpened", "task": None, "at": run["updated_at"]}
    assert (run["user_branch"], run["branch"]) == ("main", f"iterdev/{story.session}")
    assert (run["created_at"], run["updated_at"]) == ("2026-02-25T14:13:20+08:00", "2026-02-25T14:16:20+08:00")


@pytest.mark.requirement("R106")
def test_the_session_says_what_happened_last(story: Story) -> None:
    story.add(task("DEV-001"))

    story.complete("DEV-001", commit=COMMIT)

    landed = session_record(story.state)["updated_at"]
    story.tell(events.Paused("one step done"))
    assert session_record(story.state)["last_event"] == {"type": "Landed", "task": "DEV-001", "at": landed}


@pytest.mark.requirement("R130")
def test_a_conflict_stands_in_the_entry_of_the_task_that_resolves_it_too(story: Story) -> None:
    one, two, fix = TaskId("DEV-001"), TaskId("DEV-002"), TaskId("DEV-002-fix-conflict")
    story.add(task(one), task(two))
    story.start(two)
    story.complete(one, commit=COMMIT, changed=("auth.py",))
    story.end(two, commit=COMMIT, changed=("auth.py",))
    story.refuse(two, "auth.py")
    made = msgspec.structs.replace(task(two), id=fix, kind=TaskKind.conflict_fix)

    story.tell(
        events.TasksAdded((made,)),
        events.ConflictResolved(task=two, strategy=ConflictStrategy.manual, fix=fix, status=Status.completed),
    )

    detected = {
        "status": "detected",
        "conflicting_files": ["auth.py"],
        "resolution_strategy": "manual",
        "resolved_by_task_id": fix,
    }
    assert [entries(story)[name]["conflict_info"] for name in (two, fix)] == [detected, detected]
    story.complete(fix, commit=COMMIT)
    resolved = detected | {"status": "resolved"}
    assert [entries(story)[name]["conflict_info"] for name in (two, fix)] == [resolved, resolved]
    assert entries(story)[one]["conflict_info"]["status"] == "none"


@pytest.mark.requirement("R171")
def test_messages_are_numbered_with_at_least_three_digits(story: Story) -> None:
    message = story.state.messages.sent[0]

    numbered = [msgspec.structs.replace(message, number=number) for number in (1, 99, 1000)]
    lines = [json.loads(message_line(one)) for one in numbered]

    assert [line["id"] for line in lines] == ["MSG-001", "MSG-099", "MSG-1000"]
    assert lines[0].keys() == {"id", "ts", "from", "to", "type", "summary", "data"}


@pytest.mark.requirement("R115")
def test_what_a_role_shares_stands_beside_what_is_known_of_it(story: Story) -> None:
    story.add_pipeline()
    early = compose("developer", kind="state_update", data={"status": "early", "decisions": ["tabs"]})
    story.tell(early)
    story.complete("DEV-001")
    story.tell(compose("tester", kind="state_update", data={"status": "waiting"}))

    shared = meta(story.state)["role_state"]

    assert (shared["developer"]["status"], shared["developer"]["decisions"]) == ("completed", ["tabs"])
    assert shared["tester"] == {"status": "waiting", "_updated_at": moment(story.now)}


def test_the_newer_of_two_values_counts(story: Story) -> None:
    story.add_pipeline()
    story.complete("DEV-001")
    story.tell(compose("developer", kind="state_update", data={"status": "starting again"}))

    shared = meta(story.state)["role_state"]["developer"]

    assert (shared["status"], shared["task_id"]) == ("starting again", "DEV-001")


@pytest.mark.requirement("R115")
@pytest.mark.parametrize(("sender", "mode"), [("coordinator", "relay"), ("developer", "sprint")])
def test_only_the_coordinator_says_what_the_session_is(story: Story, sender: str, mode: str) -> None:
    story.tell(compose(sender, kind="state_update", data={"pipeline_mode": "relay", "status": "archived"}))

    shared = meta(story.state)

    assert (shared["pipeline_mode"], shared["status"]) == (mode, "active")
