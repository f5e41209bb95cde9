"""The columns of tasks.csv that the development team adds."""

import csv
import io
from collections.abc import Callable

import pytest
from tests.core.conftest import Story, review, task

from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session.events import RowEdit, TableEdited
from iterdev.core.session.tasks import Task
from iterdev.core.types import Engine, Status, TaskId, TaskKind
from iterdev.store.session_folder import tasks_csv
from iterdev.teams.development import columns
from iterdev.teams.development.events import ConvergenceForced, RoundStarted, VerdictEdited
from iterdev.teams.development.pipelines import first_tasks
from iterdev.teams.development.roles import Part, Pipeline, Role, fields
from iterdev.teams.development.team import DEVELOPMENT

REVIEW = TaskId("REVIEW-001")
BAD = {"review_score": "5", "gc_signal": "REVISION_NEEDED"}


def cells(name: str, description: str = "work", **more: str) -> dict[str, str]:
    return {"id": name, "description": description, **more}


def read(cells: dict[str, str]) -> Task:
    """The task of a table that has only this row."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(cells))
    writer.writeheader()
    writer.writerow(cells)
    (row,) = tasks_csv.parse(text.getvalue(), DEVELOPMENT)
    return row.edit.task


def completed(story: Story, name: str, **results: str) -> TableRow:
    edit = RowEdit(task=story.row(name), status=Status.completed, findings="by hand")
    return TableRow(edit=edit, results=results)


@pytest.mark.parametrize(
    ("name", "role", "kind"),
    [
        ("DESIGN-001", Role.architect, TaskKind.work),
        ("DEV-fix-1", Role.developer, TaskKind.work),
        ("DEV-002-fix-conflict", Role.developer, TaskKind.conflict_fix),
        ("GC-CHECK-001", Role.gc_controller, TaskKind.decision),
    ],
)
def test_a_row_without_a_role_has_the_one_of_its_id_and_its_kind(name: str, role: Role, kind: TaskKind) -> None:
    row = read(cells(name))

    assert (row.role, row.kind) == (role, kind)
    assert fields(row).pipeline is Pipeline.sprint


@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize("pipeline", Pipeline)
def test_every_task_of_a_template_is_read_back_as_it_was_written(pipeline: Pipeline, engine: Engine) -> None:
    for row in first_tasks(pipeline, Story().state.scope, engine):
        written = cells(row.id, row.description, role=row.role, **columns.plan_cells(row))

        again = read(written)

        assert (again.role, again.kind, again.fields) == (row.role, row.kind, row.fields)


def test_a_row_for_the_rest_of_the_breakdown_is_known_by_its_description() -> None:
    *_, more = (row for row in first_tasks(Pipeline.multi_sprint, Story().state.scope, Engine.beat) if "DEV" in row.id)

    assert fields(more).part is Part.rest
    assert fields(read(cells("DEV-009"))).part is Part.own


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({"review_score": "good"}, 'review_score is "good", expected a number'),
        ({"review_score": "11"}, 'review_score is "11", expected 1 to 10'),
        ({"gc_signal": "MAYBE"}, 'gc_signal is "MAYBE", expected one of REVISION_NEEDED, CONVERGED'),
    ],
)
def test_a_result_cell_that_is_wrong_is_refused(results: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DEVELOPMENT.check_results(results)


def test_a_verdict_that_was_not_touched_is_no_edit() -> None:
    story = Story(task("REVIEW-001"))
    story.reviews("REVIEW-001", review(5))
    row = completed(story, "REVIEW-001", **DEVELOPMENT.result_cells(story.state, REVIEW))

    assert DEVELOPMENT.table_edited(story.state, [row]) == ()


@pytest.mark.requirement("R68")
def test_a_verdict_that_a_person_writes_has_its_consequences() -> None:
    story = Story(task("REVIEW-001"), engine=Engine.beat)
    row = completed(story, "REVIEW-001", **BAD)
    story.edits(row.edit, **row.results)

    assert story.goes_on() == ["DEV-fix-1"]


def test_a_verdict_whose_fix_is_in_the_table_already_has_no_further_consequences() -> None:
    story = Story(task("REVIEW-001"), task("DEV-fix-1", "REVIEW-001", round=1), engine=Engine.beat, rounds=1)
    fix = TableRow(edit=RowEdit(task=story.row("DEV-fix-1"), status=Status.pending))
    rows = (completed(story, "REVIEW-001", **BAD), fix)
    story.happens(TableEdited(tuple(row.edit for row in rows)), *DEVELOPMENT.table_edited(story.state, rows))

    assert story.goes_on() == ["DEV-fix-1"]
    assert [event.judged for event in story.seen(VerdictEdited)] == [True]


def test_only_the_edited_rows_are_known_and_the_fix_in_the_table_counts_all_the_same() -> None:
    story = Story(task("REVIEW-001"), task("DEV-fix-1", "REVIEW-001", round=1), engine=Engine.beat)
    row = completed(story, "REVIEW-001", **BAD)
    story.edits(row.edit, **row.results)

    assert story.goes_on() == ["DEV-fix-1"]
    assert not story.seen(RoundStarted)


def test_another_score_beside_a_verdict_that_had_its_consequences_has_no_further_ones() -> None:
    story = Story(task("REVIEW-001"), engine=Engine.beat)
    story.reviews("REVIEW-001", review(9))
    story.goes_on()
    row = completed(story, "REVIEW-001", **BAD)
    story.edits(row.edit, **row.results)

    assert story.goes_on() == []
    assert DEVELOPMENT.result_cells(story.state, REVIEW) == BAD
    assert not story.seen(RoundStarted)


@pytest.mark.parametrize("settle", [Story.fails, Story.does])
def test_a_verdict_beside_a_row_that_is_not_completed_is_not_judged(settle: Callable[..., object]) -> None:
    story = Story(task("REVIEW-001"), task("DEV-001"), engine=Engine.beat, rounds=0)
    story.edits(RowEdit(task=story.row("REVIEW-001"), status=Status.skipped), **BAD)
    settle(story, "DEV-001")
    story.goes_on()

    assert not story.seen(ConvergenceForced)
