"""What an edit of the table may say while agents are at work."""

import msgspec
import pytest
from tests.core.conftest import task

from iterdev.core.rules.table_edits import TableRow, claim
from iterdev.core.session.events import RowEdit
from iterdev.core.types import Status

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
        (changed(OPEN, status=Status.skipped, error="not today"), (OPEN,)),
        (changed(DONE, status=Status.pending), (DONE,)),
        (OPEN, (DONE,)),
        (changed(DONE, task=task("REVIEW-001", "DEV-001")), (OPEN, DONE)),
        (changed(OPEN, task=task("REVIEW-001", "DEV-001")), (OPEN, DONE)),
    ],
)
def test_a_plan_that_changes_is_none(row: TableRow, known: tuple[TableRow, ...]) -> None:
    assert claim(row, *known) == ""
