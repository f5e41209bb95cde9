"""The pipelines of the issue team: their tasks and waves, audits and fix cycles, the queue, and who builds."""

from random import Random

import msgspec
import pytest
from tests.core.simulator import World
from tests.teams.issues.sessions import Run, audit, beginning, built, facts, plan, planned, random_work

from iterdev.core.request import Request
from iterdev.core.rules.replay_check import compare
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import (
    EngineStarted,
    Failed,
    GateAnswered,
    RowEdit,
    TableEdited,
    UpdateRequested,
)
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.settings import Settings
from iterdev.core.types import Engine, Mode, Status
from iterdev.core.views.why import why
from iterdev.teams.issues import pipelines
from iterdev.teams.issues.audit import scored
from iterdev.teams.issues.documents import complexity, documents
from iterdev.teams.issues.events import Thresholds
from iterdev.teams.issues.results import Audit, Integration, OrderedConflict
from iterdev.teams.issues.roles import Pipeline, Role, Verdict, fields
from iterdev.teams.issues.state import issue_part, resolved
from iterdev.teams.issues.team import ISSUES
from iterdev.tracker.issues import Description


@pytest.mark.requirement("R147")
@pytest.mark.parametrize(
    ("count", "priority", "expected"),
    [
        (1, 3, Pipeline.quick),
        (2, 3, Pipeline.quick),
        (1, 4, Pipeline.full),
        (3, 1, Pipeline.full),
        (4, 5, Pipeline.full),
        (5, 1, Pipeline.batch),
    ],
)
def test_the_pipeline_follows_from_the_number_and_the_urgency_of_issues(
    count: int, priority: int, expected: Pipeline
) -> None:
    issues = [facts(number, priority if number == 1 else 1) for number in range(1, count + 1)]

    assert pipelines.pipeline_for(issues) is expected


@pytest.mark.requirement("R149")
@pytest.mark.parametrize(
    ("count", "priority", "waves"),
    [
        (1, 3, [["EXPLORE-001"], ["SOLVE-001"], ["MARSHAL-001"], ["BUILD-001"]]),
        (2, 5, [["EXPLORE-001"], ["SOLVE-001"], ["AUDIT-001"], ["MARSHAL-001"], ["BUILD-001"]]),
    ],
)
@pytest.mark.parametrize("engine", Engine)
def test_quick_and_full_have_one_task_of_each_role_in_a_row(
    count: int, priority: int, waves: list[list[str]], engine: Engine
) -> None:
    run = Run(count, priority=priority, engine=engine)

    assert run.waves == waves
    assert {progress.status for _, progress in run.state.tasks.rows()} == {Status.completed}
    assert {fields(task).issues for task, _ in run.state.tasks.rows()} == {tuple(issue_part(run.state).issues)}
    assert compare(run.entries, ISSUES).difference is None


@pytest.mark.requirement("R149", "R153", "R161")
def test_a_batch_explores_side_by_side_solves_one_after_another_and_builds_by_groups() -> None:
    run = Run(5, concurrency=9)

    numbers = [f"{number:03d}" for number in range(1, 6)]
    assert run.waves == [
        [f"EXPLORE-{number}" for number in numbers],
        [f"SOLVE-{number}" for number in numbers],
        ["AUDIT-001"],
        ["MARSHAL-001"],
        ["BUILD-001", "BUILD-002", "BUILD-003"],
    ]
    assert run.state.tasks.plan["EXPLORE-003"].deps == ()
    assert len(run.state.tasks.plan["SOLVE-003"].deps) == 5
    assert run.state.tasks.plan["SOLVE-003"].context_from == ("EXPLORE-003",)
    assert run.state.tasks.plan["AUDIT-001"].mode is Mode.interactive
    assert [run.most_at_once(prefix) for prefix in ("EXPLORE", "SOLVE", "BUILD")] == [5, 1, 3]


@pytest.mark.requirement("R149", "R153", "R161")
@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("count", [1, 2, 3, 5, 12])
def test_rows_and_limits_of_every_pipeline_on_both_engines(count: int, engine: Engine) -> None:
    run = Run(count, engine=engine, concurrency=20)

    rows = {role: len(run.state.tasks.of_role(role)) for role in Role}
    each, builds = (count, 3) if count > 4 else (1, 1)
    audits = int(count > 2)
    assert rows == {"explorer": each, "planner": each, "reviewer": audits, "integrator": 1, "implementer": builds}
    assert {progress.status for _, progress in run.state.tasks.rows()} == {Status.completed}
    assert [run.most_at_once(role) for role in ("EXPLORE", "SOLVE", "BUILD")] == [min(each, 5), 1, builds]
    assert resolved(run.state) == tuple(issue_part(run.state).issues)
    assert compare(run.entries, ISSUES).difference is None


@pytest.mark.requirement("R153")
def test_at_most_five_explorers_and_three_builders_work_at_once_and_every_group_is_built() -> None:
    run = Run(12, concurrency=20)

    built = [fields(task).issues for task in run.state.tasks.of_role(Role.implementer)]
    assert (run.most_at_once("EXPLORE"), run.most_at_once("BUILD")) == (5, 3)
    assert sorted(name for names in built for name in names) == sorted(issue_part(run.state).issues)


def same_file(task: Task, _: State) -> Success | None:
    """Every solution touches the same file."""
    return plan(task, *(planned(name, "a.py") for name in fields(task).issues)) if task.role == Role.planner else None


def test_groups_that_touch_the_same_file_wait_for_each_other() -> None:
    run = Run(5, same_file)

    builds = run.state.tasks.of_role(Role.implementer)
    assert [len(fields(task).issues) for task in builds] == [1] * 5
    assert [task.deps[1:] for task in builds] == [(), *((f"BUILD-{number:03d}",) for number in range(1, 5))]
    assert run.state.tasks.progress["MARSHAL-001"].requests == 1


def test_no_integrator_is_asked_where_files_and_dependencies_decide_the_order() -> None:
    run = Run(2, priority=5)

    progress = run.state.tasks.progress["MARSHAL-001"]
    assert (progress.status, progress.requests) == (Status.completed, 0)
    assert progress.findings == "Queue of 2 in 2 groups: 1. GH-1; 2. GH-2"


@pytest.mark.requirement("R150", "R165")
@pytest.mark.parametrize(
    ("scores", "total", "verdict"),
    [
        ((90, 80, 82), 85, Verdict.approved),
        ((80, 80, 80), 80, Verdict.approved),
        ((80, 79, 79), 79, Verdict.concerns),
        ((60, 60, 60), 60, Verdict.concerns),
        ((70, 50, 30), 52, Verdict.rejected),
    ],
)
def test_the_score_of_an_audit_is_the_weighted_sum_of_its_dimensions(
    scores: tuple[int, int, int], total: int, verdict: Verdict
) -> None:
    names = ("technical_feasibility", "risk_assessment", "completeness")
    document = {"issue_id": "GH-1", **{name: {"score": score} for name, score in zip(names, scores, strict=True)}}
    report = {"id": "AUDIT-001", "status": "completed", "audits": [document]}

    found = scored("AUDIT-001", msgspec.convert(report, Audit), Thresholds())

    assert (found.score, found.verdict) == (total, verdict)


def rejecting(*audits: str) -> object:
    """The named audits reject the first issue; the others approve of everything."""

    def agents(task: Task, _: State) -> Success | None:
        if task.role != Role.reviewer:
            return None
        return audit(task, {name: 40 if task.id in audits and name == "GH-1" else 90 for name in fields(task).issues})

    return agents


@pytest.mark.requirement("R151", "R155", "R165")
@pytest.mark.parametrize("engine", Engine)
def test_a_rejection_adds_a_revision_and_an_audit_before_the_queue_and_the_build(engine: Engine) -> None:
    run = Run(3, rejecting("AUDIT-001"), engine=engine)

    assert run.waves[2:] == [["AUDIT-001"], ["SOLVE-fix-001"], ["AUDIT-002"], ["MARSHAL-001"], ["BUILD-001"]]
    assert run.state.tasks.plan["MARSHAL-001"].deps == ("AUDIT-002",)
    assert ISSUES.records(run.state).session["fix_cycles"] == 1
    assert {progress.status for _, progress in run.state.tasks.rows()} == {Status.completed}
    assert compare(run.entries, ISSUES).difference is None


def test_a_verdict_names_the_solution_that_was_audited_also_when_a_revision_was_chosen() -> None:
    run = Run(3, rejecting("AUDIT-001"))

    first = issue_part(run.state).audits["AUDIT-001"]
    (rejected,) = (one for one in first.verdicts if one.issue_id == "GH-1")
    assert rejected.solution_id == "SOL-GH-1-1"
    assert issue_part(run.state).chosen["GH-1"] == "SOL-GH-1-2"


def test_a_revision_leaves_solutions_alone_that_were_not_rejected() -> None:
    run = Run(3, rejecting("AUDIT-001"))

    chosen = {"GH-1": "SOL-GH-1-2", "GH-2": "SOL-GH-2-1", "GH-3": "SOL-GH-3-1"}
    assert issue_part(run.state).chosen == chosen
    assert "SOLVE-fix-001 plans GH-2, GH-3 anew, which nobody rejected; it is left out" in run.state.warnings


@pytest.mark.requirement("R152")
def test_after_two_fix_cycles_a_rejected_solution_is_built_with_a_warning_and_a_debt() -> None:
    run = Run(3, rejecting("AUDIT-001", "AUDIT-002", "AUDIT-003"))

    (debt,) = run.state.debt
    assert [task.id for task in run.state.tasks.of_role(Role.reviewer)] == ["AUDIT-001", "AUDIT-002", "AUDIT-003"]
    assert run.state.tasks.status("BUILD-001") is Status.completed
    assert any("GH-1 are built although AUDIT-003 rejected them" in text for text in run.state.warnings)
    assert debt.description == "Rejected solutions of GH-1 were built: GH-1: thin"
    assert ISSUES.view(run.state).shortcomings == ("solutions were built that the audit had rejected",)


@pytest.mark.requirement("R152")
def test_concerns_never_block() -> None:
    run = Run(3, lambda task, _: audit(task, dict.fromkeys(fields(task).issues, 70)) if "AUDIT" in task.id else None)

    assert run.state.tasks.status("BUILD-001") is Status.completed
    assert issue_part(run.state).cycles == 0
    assert "AUDIT-001 has concerns about GH-1, GH-2, GH-3" in run.state.warnings


@pytest.mark.parametrize(("choice", "audits", "built"), [("proceed", 3, True), ("revise", 4, True), ("stop", 3, False)])
def test_the_user_can_be_asked_after_the_last_rejection(choice: str, audits: int, *, built: bool) -> None:
    run = Run(
        3,
        rejecting("AUDIT-001", "AUDIT-002", "AUDIT-003"),
        {"rejection-AUDIT-003": choice},
        asks=True,
        auto=False,
    )

    assert len(issue_part(run.state).audits) == audits
    assert (run.state.tasks.status("BUILD-001") is Status.completed) is built


@pytest.mark.requirement("R160")
@pytest.mark.parametrize("engine", Engine)
def test_an_audit_without_a_report_counts_as_approved_and_is_warned_about(engine: Engine) -> None:
    run = Run(3, lambda task, _: Failed(error="no result") if task.role == Role.reviewer else None, engine=engine)

    assert run.state.tasks.status("BUILD-001") is Status.completed
    assert any(text.startswith("AUDIT-001 left no audit report") for text in run.state.warnings)


def test_a_solution_that_an_audit_leaves_out_is_said_to_be_unaudited_or_stays_rejected() -> None:
    scores = {"AUDIT-001": {"GH-1": 40, "GH-2": 40}, "AUDIT-002": {"GH-1": 90}, "AUDIT-003": {"GH-2": 90}}
    run = Run(3, lambda task, _: audit(task, scores[task.id]) if task.role == Role.reviewer else None)

    assert [text for text in run.state.warnings if "says nothing" in text] == [
        "AUDIT-001 says nothing about GH-3; its solution counts as approved, and nobody has audited it",
        "AUDIT-002 says nothing about GH-2; its solution stays rejected",
    ]
    assert run.state.tasks.status("BUILD-001") is Status.completed


def several(task: Task, _: State) -> Success | None:
    return plan(task, planned("GH-1", id="A"), planned("GH-1", id="B")) if task.role == Role.planner else None


@pytest.mark.requirement("R168")
def test_of_several_solutions_the_user_chooses_one_and_a_single_one_is_taken_at_once() -> None:
    asked = Run(1, several, {"solution-GH-1": "B"}, auto=False)
    unanswered = Run(1, several, auto=False)

    assert issue_part(asked.state).chosen == {"GH-1": "B"}
    assert issue_part(unanswered.state).chosen == {}
    assert list(unanswered.state.gates.open) == ["solution-GH-1"]
    assert issue_part(Run(1, several).state).chosen == {"GH-1": "A"}
    assert issue_part(Run(1, auto=False).state).chosen == {"GH-1": "SOL-GH-1-1"}


@pytest.mark.requirement("R166")
def test_a_queue_cannot_be_formed_of_solutions_that_depend_on_each_other_in_a_circle() -> None:
    def circle(task: Task, _: State) -> Success | None:
        if task.role != Role.planner:
            return None
        return plan(task, planned("GH-1", dependencies=("GH-2",)), planned("GH-2", dependencies=("GH-1",)))

    run = Run(2, circle)

    assert run.state.tasks.status("MARSHAL-001") is Status.failed
    assert "GH-1 -> GH-2 -> GH-1" in run.state.tasks.progress["MARSHAL-001"].error
    assert run.state.tasks.status("BUILD-001") is Status.skipped


def test_a_plan_without_a_solution_for_every_issue_fails() -> None:
    run = Run(2, lambda task, _: plan(task, planned("GH-1")) if task.role == Role.planner else None)

    assert run.state.tasks.progress["SOLVE-001"].error == "there is no solution for GH-2"


@pytest.mark.requirement("R148")
def test_only_builds_have_an_execution_method() -> None:
    run = Run(1, method="codex")

    methods = {task.id: fields(task).method for task, _ in run.state.tasks.rows()}
    assert methods == {"EXPLORE-001": "", "SOLVE-001": "", "MARSHAL-001": "", "BUILD-001": "codex"}


@pytest.mark.requirement("R167")
@pytest.mark.parametrize(("tasks", "agent"), [(3, "gemini"), (4, "codex")])
def test_the_method_auto_depends_on_the_number_of_tasks(tasks: int, agent: str) -> None:
    run = Run(1, lambda t, _: plan(t, planned("GH-1", tasks=tasks)) if t.role == Role.planner else None, method="auto")

    row = run.state.tasks.plan["BUILD-001"]
    assert (fields(row).method, row.agent, run.state.tasks.progress["BUILD-001"].agent) == (agent, agent, agent)


@pytest.mark.requirement("R169")
@pytest.mark.parametrize(
    ("text", "priority", "expected"),
    [
        ("Fix a typo", 3, "Low"),
        ("Integrate the api", 3, "Low"),
        ("Refactor the parser", 3, "Medium"),
        ("Refactor across modules", 3, "High"),
        ("A rapid ecosystem", 3, "Low"),
        ("Integrate the database, restructure it", 4, "High"),
    ],
)
def test_the_complexity_of_an_issue_is_graded_by_its_words_and_its_priority(
    text: str, priority: int, expected: str
) -> None:
    assert complexity(Description(title=text, priority=priority)) == expected


def test_work_of_which_nothing_is_known_is_no_success() -> None:
    run = Run(1, lambda task, _: built(task, None) if task.role == Role.implementer else None)

    assert ISSUES.view(Run(1).state).shortcomings == ()
    assert ISSUES.view(run.state).shortcomings == ("BUILD-001: nothing could be verified: there are no tests",)


@pytest.mark.requirement("R166")
def test_no_queue_is_formed_while_an_issue_has_no_bound_solution() -> None:
    run = Run(1, lambda task, _: Failed(error="no idea") if task.role == Role.planner else None)
    by_hand = {"SOLVE-001": Status.completed, "MARSHAL-001": Status.pending, "BUILD-001": Status.pending}

    # A person completes the planner's task in the table, and there is no solution.
    plan = run.state.tasks.plan
    rows = tuple(RowEdit(task=plan[task], status=status) for task, status in by_hand.items())
    run.go_on(TableEdited(rows), EngineStarted(2, "b"))

    assert run.state.tasks.progress["MARSHAL-001"].error == "no solution is bound to GH-1"
    assert run.state.tasks.status("BUILD-001") is Status.skipped


def undecided(task: Task, state: State) -> Success | None:
    """All solutions touch one file, and the integrator says nothing about their order."""
    if task.role == Role.integrator:
        return Success(result=Integration(id=task.id, status="completed", findings="who knows"))
    return same_file(task, state)


@pytest.mark.requirement("R166")
@pytest.mark.parametrize("engine", Engine)
def test_what_the_integrator_leaves_open_is_a_question_to_the_user(engine: Engine) -> None:
    asked = Run(3, undecided, auto=False, engine=engine)

    (gate,) = asked.state.gates.open.values()
    assert (gate.id, gate.choices) == ("order-GH-1", ("GH-1", "GH-2", "GH-3"))
    assert asked.state.tasks.status("BUILD-001") is Status.pending
    assert [one.type for one in asked.state.messages.sent if one.sender == "integrator"] == ["conflict_found"]
    asked.go_on(GateAnswered("order-GH-1", "GH-3"))
    asked.go_on(GateAnswered("order-GH-1", "GH-2"))
    queue = issue_part(asked.state).queue
    assert queue
    assert [entry.candidate.issue_id for entry in queue.order.entries] == ["GH-3", "GH-2", "GH-1"]
    assert asked.state.tasks.status("BUILD-001") is Status.completed
    assert compare(asked.entries, ISSUES).difference is None


def test_in_auto_mode_the_first_issue_comes_first_with_a_warning() -> None:
    run = Run(2, undecided, priority=5)

    assert "MARSHAL-001 does not say which of GH-1, GH-2 comes first; GH-1 does, by its priority" in run.state.warnings
    assert run.state.tasks.status("BUILD-001") is Status.completed


def test_a_commit_names_the_issues_that_it_resolves() -> None:
    run = Run(2)

    body = ISSUES.commit_body(run.state, run.state.tasks.plan["BUILD-001"])

    assert body == ("- GH-1: Problem 1", "- GH-2: Problem 2")


def test_solutions_and_shared_files_are_put_on_the_discovery_board() -> None:
    run = Run(2, same_file)

    decided = [entry.event for entry in run.entries]
    found = [(task, one.type, one.data) for task, one in ISSUES.discoveries(run.state, decided)]

    assert found == [
        ("SOLVE-001", "solution_approach", {"issue_id": "GH-1", "approach": "write it", "estimated_files": 1}),
        ("SOLVE-001", "solution_approach", {"issue_id": "GH-2", "approach": "write it", "estimated_files": 1}),
        (
            "MARSHAL-001",
            "conflict_found",
            {"issues": ["GH-1", "GH-2"], "files": ["a.py"], "resolution": "sequential"},
        ),
    ]


@pytest.mark.parametrize("engine", Engine)
def test_an_update_brings_the_users_branch_in_and_is_tested_before_it_lands(engine: Engine) -> None:
    run = Run(1, engine=engine)

    run.go_on(UpdateRequested(branch="main", commit="c" * 40), EngineStarted(2, run.state.branch.tip))

    assert run.state.tasks.plan["UPDATE-001"].title == f"Bring in main ({'c' * 12})"
    assert run.state.tasks.status("UPDATE-001") is Status.completed
    assert run.tested[-1:] == [("UPDATE-001",)]
    assert ISSUES.view(run.state).shortcomings == ()


def test_an_update_with_which_the_tests_fail_is_parked_at_once_because_no_agent_made_it() -> None:
    run = Run(1, fails=lambda tasks: "UPDATE-001" in tasks)

    run.go_on(UpdateRequested(branch="main", commit="c" * 40), EngineStarted(2, run.state.branch.tip))

    assert run.tested == [("UPDATE-001",)]
    assert run.state.tasks.status("UPDATE-001") is Status.failed
    assert run.state.tasks.progress["UPDATE-001"].error.endswith(f"the work is parked as {'c' * 40}")
    assert [debt.source_task_id for debt in run.state.debt] == ["UPDATE-001"]


def test_the_end_names_the_issues_that_are_not_resolved_and_why() -> None:
    def fails(task: Task, _: State) -> Failed | None:
        return Failed(error=f"the tests fail:\n{'test_x, ' * 20}") if task.id == "BUILD-002" else None

    run = Run(5, fails)

    issues = ", ".join(fields(run.state.tasks.plan["BUILD-002"]).issues)
    assert ISSUES.view(run.state).shortcomings == (
        f"{issues} are not resolved: BUILD-002 failed: the tests fail: {'test_x, ' * 7}test_x,…",
    )


def test_the_tests_of_work_that_did_not_land_are_no_verdict() -> None:
    run = Run(5, fails=lambda tasks: {"BUILD-001", "BUILD-002"} <= tasks)

    lost = {task.id for task, progress in run.state.tasks.rows() if progress.status is Status.failed}
    lines = [line for line in ISSUES.view(run.state).verdicts if line.startswith("Tests: ")]
    assert lost
    assert not any(task in line for task in lost for line in lines)
    assert len(lines) == 3 - len(lost)


def test_a_failure_before_the_builds_is_why_no_issue_is_resolved() -> None:
    run = Run(5, lambda task, _: Failed(error="lost") if task.id == "SOLVE-004" else None)

    assert ISSUES.view(run.state).shortcomings == (
        "GH-1, GH-2, GH-3, GH-4, GH-5 are not resolved: SOLVE-004 failed: lost",
    )


def test_every_artifact_that_the_table_names_is_written() -> None:
    run = Run(3)

    rows = [task.id for task, _ in run.state.tasks.rows()]
    paths = {ISSUES.result_cells(run.state, task)["artifact_path"] for task in rows}
    written = documents(run.state)
    assert all(any(name.startswith(path) for name in written) for path in paths), paths
    assert len(written) == 3 * 3 + len(("audit", "queue", "result of the audit"))


@pytest.mark.parametrize("seed", range(40))
def test_every_session_ends_whatever_happens_to_it(seed: int) -> None:
    chance = Random(seed)
    request = Request(
        requirement="Resolve them",
        auto=chance.random() < 0.5,
        concurrency=chance.randint(1, 5),
        engine=chance.choice(list(Engine)),
    )
    issues = [facts(number, chance.randint(1, 5)) for number in range(1, chance.choice((1, 2, 3, 6)) + 1)]
    first = beginning(request, issues, chance.choice(("gemini", "auto")), Settings())

    history = World(chance, ISSUES, first, random_work, rollbacks=1).live()

    assert history.ending == "over", history
    assert compare(history.entries, ISSUES).difference is None


SHARED = ("GH-1", "GH-4", "GH-7", "GH-10")


def sharing(task: Task, _: State) -> Success | None:
    """Four issues of twelve touch the same file, and one of the others depends on another."""
    if task.role != Role.planner:
        return None
    needs = {"GH-3": ("GH-2",)}
    names = ((name, ("shared.txt",) if name in SHARED else ()) for name in fields(task).issues)
    return plan(task, *(planned(name, *files, dependencies=needs.get(name, ())) for name, files in names))


@pytest.mark.parametrize("engine", Engine)
def test_why_explains_the_order_of_issues_that_change_the_same_file(engine: Engine) -> None:
    run = Run(12, sharing, engine=engine)

    builds = {issue: task.id for task in run.state.tasks.of_role(Role.implementer) for issue in fields(task).issues}
    reasons = [line for issue in SHARED for line in why(run.state, ISSUES, builds[issue], engine_alive=True)[1:]]
    assert [line for line in reasons if line.split()[0] in SHARED] == [
        "GH-4 comes after GH-1: they change shared.txt too (the order was chosen)",
        "GH-7 comes after GH-1, GH-4: they change shared.txt too (the order was chosen)",
        "GH-10 comes after GH-1, GH-4, GH-7: they change shared.txt too (the order was chosen)",
    ]
    assert "GH-3 comes after GH-2: its solution depends on that" in why(
        run.state, ISSUES, builds["GH-3"], engine_alive=True
    )


def test_why_gives_the_reason_of_the_integrator_for_the_order_it_chose() -> None:
    def agents(task: Task, state: State) -> Success | None:
        if task.role != Role.integrator:
            return sharing(task, state)
        said = OrderedConflict(issues=("GH-1", "GH-4"), files=("shared.txt",), resolution="the schema comes first")
        result = Integration(id=task.id, status="completed", order=("GH-4", "GH-1"), conflicts=(said,))
        return Success(result=result)

    run = Run(5, agents)

    (build,) = (task.id for task in run.state.tasks.of_role(Role.implementer) if "GH-1" in fields(task).issues)
    assert "GH-1 comes after GH-4: they change shared.txt too (the schema comes first)" in why(
        run.state, ISSUES, build, engine_alive=True
    )


@pytest.mark.parametrize("engine", Engine)
def test_a_build_that_fails_together_with_another_is_built_again_and_then_parked(engine: Engine) -> None:
    run = Run(6, engine=engine, fails=lambda done: {"BUILD-001", "BUILD-002"} <= done)

    out = [entry.event for entry in run.entries if isinstance(entry.event, LandingTakenOut)]
    unsuccessful = [task.id for task, progress in run.state.tasks.rows() if progress.status is not Status.completed]
    assert [(one.task, one.status) for one in out] == [("BUILD-002", Status.pending), ("BUILD-002", Status.failed)]
    assert unsuccessful == ["BUILD-002"]
    assert [debt.source_task_id for debt in run.state.debt] == ["BUILD-002"]
    assert [line for line in ISSUES.view(run.state).verdicts if "BUILD-002" in line] == []
    assert [one.type for one in run.state.messages.sent if "BUILD-002 failed" in one.summary] == ["impl_failed"]
    assert compare(run.entries, ISSUES).difference is None
