"""What an edit of tasks.csv may say while agents are at work, who can write it as well as a person can.

It may change the plan. Results come from attempts alone, and tasks from a person or from the team's rules.
"""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core.session.events import RowEdit
from iterdev.core.types import Status

RESULTS = (Status.completed, Status.failed)


class TableRow(Struct, frozen=True, kw_only=True, gc=False):
    """A row of the file: what the kernel knows of it, and the team's own result columns."""

    edit: RowEdit
    results: Mapping[str, str] = {}
    """The cells of the result columns that the team adds, such as a score."""


def claim(row: TableRow, *known: TableRow) -> str:
    """What a changed row claims, in a few words; empty if it only changes the plan.

    `known` is the row as it is, and as it was when it was last written; there is none of an unplanned task.
    """
    edit = row.edit
    if not known:
        return f"{edit.task.id} is new"
    if edit.status in RESULTS and edit.status not in {other.edit.status for other in known}:
        return f"{edit.task.id} is said to be {edit.status}"
    columns = {"findings": (edit.findings, {other.edit.findings for other in known})}
    columns |= {name: (cell, {other.results.get(name, "") for other in known}) for name, cell in row.results.items()}
    for column, (cell, before) in columns.items():
        # To have a task done again, its results are emptied.
        if cell not in before and (cell or edit.status in RESULTS):
            return f"{edit.task.id} has another {column}"
    return ""
