"""The templates of the pipelines, and the rows of a fix round."""

import re

import msgspec
import pytest
from tests.core.conftest import Story, task

from iterdev.core import task_description
from iterdev.core.errors import UserError
from iterdev.core.session.tasks import Task, checked
from iterdev.core.task_description import Scope
from iterdev.core.types import Engine, Mode, TaskId
from iterdev.teams.development.pipelines import TaskFactory, dispatched, first_tasks, fix_round, reverification
from iterdev.teams.development.roles import Pipeline, Role, fields

SCOPE = Scope(requirement="Add export endpoint", folder=".workflow/x")
BEFORE = [TaskId(name) for name in ("DESIGN-001", "DEV-001", "VERIFY-001", "REVIEW-001")]


def a_round(
    number: int = 1, raised_by: str = "REVIEW-001", *more: str, verify: bool = False, check: bool = False
) -> tuple[Task, ...]:
    """A fix round of the second sprint; `more` are the tasks that are there besides those of the first work."""
    existing = [*BEFORE, *map(TaskId, more)]
    new = TaskFactory(Pipeline.sprint, SCOPE, sprint=2, round_=number, existing=existing)
    return fix_round(new, [TaskId(raised_by)], [TaskId(raised_by)], verify=verify, check=check)


def table(rows: tuple[Task, ...]) -> list[tuple[str, Role, int, tuple[str, ...]]]:
    return [(row.id, row.role, row.wave, row.deps) for row in rows]


@pytest.mark.requirement("R30")
@pytest.mark.parametrize("engine", Engine)
def test_patch_is_a_fix_and_its_verification(engine: Engine) -> None:
    assert table(first_tasks(Pipeline.patch, SCOPE, engine)) == [
        ("DEV-001", Role.developer, 1, ()),
        ("VERIFY-001", Role.tester, 2, ("DEV-001",)),
    ]


@pytest.mark.requirement("R31")
@pytest.mark.parametrize("engine", Engine)
def test_sprint_designs_builds_and_then_verifies_and_reviews_side_by_side(engine: Engine) -> None:
    assert table(first_tasks(Pipeline.sprint, SCOPE, engine)) == [
        ("DESIGN-001", Role.architect, 1, ()),
        ("DEV-001", Role.developer, 2, ("DESIGN-001",)),
        ("VERIFY-001", Role.tester, 3, ("DEV-001",)),
        ("REVIEW-001", Role.reviewer, 3, ("DEV-001",)),
    ]


@pytest.mark.requirement("R32", "R33", "R34", "R35")
def test_multi_sprint_builds_twice_and_lets_a_controller_decide_in_the_wave_engine() -> None:
    assert table(first_tasks(Pipeline.multi_sprint, SCOPE, Engine.wave)) == [
        ("DESIGN-001", Role.architect, 1, ()),
        ("DEV-001", Role.developer, 2, ("DESIGN-001",)),
        ("DEV-002", Role.developer, 3, ("DEV-001",)),
        ("VERIFY-001", Role.tester, 4, ("DEV-002",)),
        ("REVIEW-001", Role.reviewer, 4, ("DEV-002",)),
        ("GC-CHECK-001", Role.gc_controller, 5, ("REVIEW-001",)),
    ]


@pytest.mark.requirement("R32", "R33", "R34")
def test_multi_sprint_needs_no_controller_row_in_the_beat_engine() -> None:
    rows = first_tasks(Pipeline.multi_sprint, SCOPE, Engine.beat)

    assert [row.id for row in rows] == ["DESIGN-001", "DEV-001", "DEV-002", "VERIFY-001", "REVIEW-001"]


@pytest.mark.requirement("R35")
def test_only_the_controller_row_is_interactive() -> None:
    rows = first_tasks(Pipeline.multi_sprint, SCOPE, Engine.wave)

    assert [row.id for row in rows if row.mode is Mode.interactive] == ["GC-CHECK-001"]


@pytest.mark.requirement("R39", "R40", "R41")
@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("pipeline", Pipeline)
def test_every_description_of_every_pipeline_has_the_whole_form(pipeline: Pipeline, engine: Engine) -> None:
    for row in first_tasks(pipeline, SCOPE, engine):
        assert task_description.missing_sections(row.description) == ()
        assert "Success:" in row.description
        assert f"InnerLoop: {'true' if row.role is Role.developer else 'false'}" in row.description


@pytest.mark.requirement("R41", "R162")
@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("pipeline", Pipeline)
def test_every_template_is_a_table_without_a_fault(pipeline: Pipeline, engine: Engine) -> None:
    tasks = first_tasks(pipeline, SCOPE, engine)

    assert checked(tasks) == tasks


@pytest.mark.requirement("R41")
@pytest.mark.parametrize(
    ("pipeline", "right", "wrong"),
    [
        (Pipeline.patch, (2,), (0, 1, 3)),
        (Pipeline.sprint, (4,), (2, 3, 5)),
        (Pipeline.multi_sprint, (5, 6, 12), (0, 4)),
    ],
)
def test_dispatching_checks_the_number_of_tasks(
    pipeline: Pipeline, right: tuple[int, ...], wrong: tuple[int, ...]
) -> None:
    rows = [task(f"DEV-{number:03d}") for number in range(1, 13)]

    for count in right:
        assert len(dispatched(rows[:count], pipeline, SCOPE)) == count
    for count in wrong:
        with pytest.raises(AssertionError, match=f"{pipeline} template made {count} tasks"):
            dispatched(rows[:count], pipeline, SCOPE)


@pytest.mark.requirement("R41")
def test_dispatching_repairs_a_faulty_description_and_leaves_the_others() -> None:
    good, other = first_tasks(Pipeline.patch, SCOPE, Engine.wave)
    faulty = msgspec.structs.replace(other, description="Run the tests")

    kept, repaired = dispatched([good, faulty], Pipeline.patch, SCOPE)

    assert kept == good
    assert task_description.missing_sections(repaired.description) == ()
    assert "Run the tests" in repaired.description


@pytest.mark.requirement("R41", "R46")
def test_dispatching_refuses_a_cycle() -> None:
    with pytest.raises(UserError, match="cycle"):
        dispatched([task("DEV-001", "VERIFY-001"), task("VERIFY-001", "DEV-001")], Pipeline.patch, SCOPE)


@pytest.mark.requirement("R70")
def test_a_round_is_one_fix_behind_what_raised_it_and_one_review_behind_the_fix() -> None:
    fix, again = a_round()

    assert (fix.id, fix.role, fix.deps) == ("DEV-fix-1", Role.developer, ("REVIEW-001",))
    assert (again.id, again.role, again.deps) == ("REVIEW-002", Role.reviewer, ("DEV-fix-1",))


@pytest.mark.requirement("R71")
def test_the_rows_of_a_round_carry_its_number_and_sprint_and_the_latest_review() -> None:
    fix, again = a_round(2, "REVIEW-002", "DEV-fix-1", "REVIEW-002")

    assert [(row.id, fields(row).sprint, fields(row).round) for row in (fix, again)] == [
        ("DEV-fix-2", 2, 2),
        ("REVIEW-003", 2, 2),
    ]
    assert fix.context_from == ("REVIEW-002",)


def test_a_round_that_failing_tests_raised_verifies_its_fix_too() -> None:
    rows = a_round(verify=True)

    assert [(row.id, row.deps) for row in rows[1:]] == [("REVIEW-002", ("DEV-fix-1",)), ("VERIFY-002", ("DEV-fix-1",))]


@pytest.mark.requirement("R72")
def test_a_round_of_a_controller_has_the_next_controller_behind_its_review() -> None:
    *_, check = a_round(1, "REVIEW-001", "GC-CHECK-001", check=True)

    assert (check.id, check.deps, check.mode) == ("GC-CHECK-002", ("REVIEW-002",), Mode.interactive)


def test_work_that_changed_during_its_verification_is_verified_again_behind_the_fix() -> None:
    again = reverification(task("DEV-fix-2", sprint=2, round=2), SCOPE, BEFORE)

    assert (again.id, again.deps, fields(again).sprint, fields(again).round) == ("VERIFY-002", ("DEV-fix-2",), 2, 2)


@pytest.mark.requirement("R89")
def test_a_fix_is_told_to_answer_critical_and_high_findings_and_to_leave_the_rest_alone() -> None:
    fix, _ = a_round()

    assert "every critical and high finding answered, nothing else changed" in fix.description
    assert "Leave code that was not flagged alone" in fix.description


@pytest.mark.requirement("R90")
@pytest.mark.parametrize("pipeline", Pipeline)
def test_every_verification_is_told_the_limit_by_which_it_is_judged(pipeline: Pipeline) -> None:
    (verify,) = [row for row in first_tasks(pipeline, SCOPE, Engine.wave) if row.role == Role.tester]
    told = re.search(r"pass rate >= (\d+) %", verify.description)
    assert told

    limit = int(told[1])
    judged = {}
    for passed in (limit - 1, limit):
        story = Story(task("VERIFY-001"))
        story.verifies("VERIFY-001", passed / 100)
        judged[passed] = story.team.test_runs[TaskId("VERIFY-001")].failed
    assert judged == {limit - 1: True, limit: False}
    assert "no regressions" in verify.description


@pytest.mark.requirement("R91")
def test_a_review_is_told_its_four_dimensions_and_to_give_references() -> None:
    *_, review = first_tasks(Pipeline.sprint, SCOPE, Engine.wave)

    assert "correctness, completeness, maintainability, security" in review.description
    assert "Give file:line references" in review.description


@pytest.mark.requirement("R42")
@pytest.mark.parametrize("engine", Engine)
def test_a_sprint_starts_one_worker_per_stage_and_the_last_two_together(engine: Engine) -> None:
    story = Story(engine=engine, pipeline=Pipeline.sprint)
    stages = []

    while started := story.goes_on():
        stages.append(started)
        for name in started:
            story.does(name)

    assert stages == [["DESIGN-001"], ["DEV-001"], ["VERIFY-001", "REVIEW-001"]]
