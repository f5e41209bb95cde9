"""What an edit of tasks.csv may change while agents run, because they can write the file as well as a person can.

It may change the plan of tasks whose role is the only one at work: an agent must not rewrite what another role is told
to do, or keep it from being asked. Results come from attempts alone, and tasks from a person or from the team's rules.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.session.events import RowEdit
from iterdev.core.types import Role, Status

RESULTS = (Status.completed, Status.failed)
SETTLED = (*RESULTS, Status.skipped)
"""Statuses that decide what becomes of the tasks that depend on one."""
PLAN = {
    "title": "title",
    "description": "description",
    "role": "role",
    "deps": "deps",
    "context_from": "context_from",
    "mode": "exec_mode",
    "fields": "plan",
}
"""The fields of a task that a person can edit, and the words for them; its wave follows from the dependencies."""


class TableRow(Struct, frozen=True, kw_only=True, gc=False):
    """A row of the file: what the kernel knows of it, and the team's own result columns."""

    edit: RowEdit
    results: Mapping[str, str] = {}
    """The cells of the result columns that the team adds, such as a score."""


def left_out(row: TableRow, before: Status | None) -> TableRow:
    """The row; a person who sets a task to skipped leaves it out, also one that has failed and has an error."""
    skips = row.edit.status is Status.skipped and before is not Status.skipped
    return replace(row, edit=replace(row.edit, left_out=True)) if skips else row


def claim(row: TableRow, *known: TableRow, at_work: Collection[Role] = ()) -> str:
    """What a changed row claims, in a few words; empty if it only changes what an agent may have changed.

    `known` is the row as it is, and as it was when it was last written; there is none of an unplanned task. `at_work`
    are the roles of the agents that may have written it.
    """
    edit = row.edit
    if not known:
        return f"{edit.task.id} is new"
    if edit.status in SETTLED and edit.status not in {other.edit.status for other in known}:
        return f"{edit.task.id} is said to be {edit.status}"
    columns = {"findings": (edit.findings, {other.edit.findings for other in known})}
    columns |= {name: (cell, {other.results.get(name, "") for other in known}) for name, cell in row.results.items()}
    for column, (cell, before) in columns.items():
        # To have a task done again, its results are emptied.
        if cell not in before and (cell or edit.status in RESULTS):
            return f"{edit.task.id} has another {column}"
    return _foreign_change(edit, [other.edit for other in known], at_work)


def _foreign_change(edit: RowEdit, known: Sequence[RowEdit], at_work: Collection[Role]) -> str:
    """What is changed in the plan of a task that belongs, or would belong, to another role than the running agents."""
    own = {other.task.role for other in known}
    if own.issuperset(at_work) and edit.task.role in own:
        return ""
    changed = [word for name, word in PLAN.items() if getattr(edit.task, name) not in _values(known, name)]
    changed += ["status"] * (edit.status not in {other.status for other in known})
    return f"{edit.task.id} has another {changed[0]}" if changed else ""


def _values(known: Sequence[RowEdit], name: str) -> list[object]:
    return [getattr(other.task, name) for other in known]
