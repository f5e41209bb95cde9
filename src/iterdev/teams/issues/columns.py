"""The columns of tasks.csv of the issue team: the issues, the execution method and the artifact."""

from collections.abc import Iterator, Mapping, Sequence

from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session.events import Warned
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import TaskId
from iterdev.teams.contract import TableColumns
from iterdev.teams.issues.documents import written
from iterdev.teams.issues.roles import Fields, fields
from iterdev.teams.issues.state import issue_part

COLUMNS = TableColumns(
    order=(
        "id", "title", "description", "role", "issue_ids", "exec_mode", "execution_method", "deps", "context_from",
        "wave", "status", "findings", "artifact_path", "error",
    ),
    results=("artifact_path",),
)  # fmt: skip
SEPARATOR = ";"


def plan_cells(task: Task) -> dict[str, str]:
    own = fields(task)
    return {"issue_ids": SEPARATOR.join(own.issues), "execution_method": own.method}


def result_cells(state: State, task: TaskId) -> dict[str, str]:
    return {"artifact_path": written(state, state.tasks.plan[task])}


def read_fields(cells: Mapping[str, str]) -> Fields:
    issues = tuple(name.strip() for name in cells.get("issue_ids", "").split(SEPARATOR) if name.strip())
    if not issues:
        raise ValueError(f'the issue_ids of "{cells["id"]}" are empty')
    return Fields(issues=issues, method=cells.get("execution_method", "").strip(), cycle=_cycle(cells["id"]))


def table_edited(state: State, rows: Sequence[TableRow]) -> Iterator[Warned]:
    """Warnings about issues in edited rows that the session is not about; nothing is known of them."""
    known = issue_part(state).issues
    for task in (row.edit.task for row in rows):
        if unknown := [name for name in fields(task).issues if name not in known]:
            yield Warned(f'tasks.csv names "{", ".join(unknown)}" in {task.id}, which the session is not about')


def _cycle(task: str) -> int:
    """The fix cycle of a task by its id: an audit of a cycle has the next number."""
    prefix, _, number = task.rpartition("-")
    if not number.isdecimal():
        return 0
    return int(number) if prefix == "SOLVE-fix" else max(int(number) - 1, 0) if prefix == "AUDIT" else 0
