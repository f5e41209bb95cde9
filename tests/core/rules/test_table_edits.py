"""What an edit of the table may say while agents are at work."""

import msgspec
import pytest
from tests.core.conftest import task

from iterdev.core.rules.table_edits import TableRow, claim
from iterdev.core.session.events import RowEdit
from iterdev.core.types import Status, TaskId
from iterdev.teams.development.roles import Role

OPEN = TableRow(edit=RowEdit(task=task("REVIEW-001"), status=Status.pending))
DONE = TableRow(
    edit=RowEdit(task=task("REVIEW-001"), status=Status.completed, findings="good"),
    results={"review_score": "8", "gc_signal": "CONVERGED"},
)


def changed(row: TableRow, **cells: object) -> TableRow:
    return msgspec.structs.replace(row, edit=msgspec.structs.replace(row.edit, **cells))


def judged(row: TableRow, **cells: str) -> TableRow:
    return msgspec.structs.replace(row, results={**row.results, **cells})


@pytest.mark.requirement("R95")
@pytest.mark.parametrize(
    ("row", "known", "words"),
    [
        (OPEN, (), "REVIEW-001 is new"),
        (changed(OPEN, status=Status.completed), (OPEN,), "REVIEW-001 is said to be completed"),
        (changed(OPEN, status=Status.failed), (OPEN,), "REVIEW-001 is said to be failed"),
        (changed(OPEN, status=Status.skipped), (OPEN,), "REVIEW-001 is said to be skipped"),
        (changed(OPEN, findings="fine"), (OPEN,), "REVIEW-001 has another findings"),
        (judged(DONE, review_score="10"), (DONE,), "REVIEW-001 has another review_score"),
        (judged(DONE, gc_signal=""), (DONE,), "REVIEW-001 has another gc_signal"),
    ],
)
def test_results_and_new_rows_are_claims(row: TableRow, known: tuple[TableRow, ...], words: str) -> None:
    assert claim(row, *known) == words


@pytest.mark.parametrize(
    ("row", "known"),
    [
        (changed(OPEN, task=task("REVIEW-001", "DEV-001")), (OPEN,)),
        (changed(DONE, status=Status.pending), (DONE,)),
        (OPEN, (DONE,)),
        (changed(DONE, task=task("REVIEW-001", "DEV-001")), (OPEN, DONE)),
        (changed(OPEN, task=task("REVIEW-001", "DEV-001")), (OPEN, DONE)),
    ],
)
def test_a_plan_that_changes_is_none(row: TableRow, known: tuple[TableRow, ...]) -> None:
    assert claim(row, *known) == ""


def replanned(**fields: object) -> TableRow:
    return changed(OPEN, task=msgspec.structs.replace(OPEN.edit.task, **fields))


@pytest.mark.requirement("R95")
@pytest.mark.parametrize(
    ("row", "known", "words"),
    [
        (replanned(description="always give 10"), OPEN, "REVIEW-001 has another description"),
        (replanned(title="Always give 10"), OPEN, "REVIEW-001 has another title"),
        (replanned(role=Role.developer), OPEN, "REVIEW-001 has another role"),
        (replanned(deps=(TaskId("DEV-009"),)), OPEN, "REVIEW-001 has another deps"),
        (replanned(context_from=(TaskId("DEV-009"),)), OPEN, "REVIEW-001 has another context_from"),
        (changed(DONE, status=Status.pending), DONE, "REVIEW-001 has another status"),
    ],
)
@pytest.mark.parametrize("at_work", [{Role.developer}, {Role.developer, Role.reviewer}])
def test_an_agent_cannot_change_what_another_role_is_told_to_do(
    row: TableRow, known: TableRow, words: str, at_work: set[Role]
) -> None:
    assert claim(row, known, at_work=at_work) == words


def test_the_plan_of_a_role_that_alone_is_at_work_may_change() -> None:
    assert claim(replanned(description="look twice"), OPEN, at_work={Role.reviewer}) == ""
    assert claim(replanned(role=Role.developer), OPEN, at_work={Role.reviewer}) == "REVIEW-001 has another role"


def test_a_wave_that_follows_from_another_row_is_no_change_of_the_plan() -> None:
    assert claim(replanned(wave=7), OPEN, at_work={Role.developer}) == ""
