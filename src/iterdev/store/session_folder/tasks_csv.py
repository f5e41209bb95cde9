"""tasks.csv: the table as text and back. A mistake is reported with the number of its line."""

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from iterdev.core import ids
from iterdev.core.errors import UserError, did_you_mean
from iterdev.core.formatting import counted
from iterdev.core.results import shortened
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.rules.team_rules import Procedure, RoleSpec
from iterdev.core.session.events import RowEdit
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Progress
from iterdev.core.session.tasks import Fault, Task, checked
from iterdev.core.types import Mode, Status, TaskId, TaskKind
from iterdev.teams.contract import Team, cell_value

WRITTEN = (Status.pending, Status.completed, Status.failed, Status.skipped)
"""The statuses in the table; a task in progress is written as pending, so that it can always be resumed."""

MODES = {mode.value: mode for mode in Mode}
STATUSES = {status.value: status for status in WRITTEN}
"""The values of cells. Looking one up is much faster than calling the enum, and a table may have many rows."""

LONGEST_CELL = 2**31 - 1


class WrongTable(UserError):
    """A mistake in the table, and the line that it is in."""

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file} line {line}: {message}", hint=f"fix line {line} of {file} and try again")
        self.line = line


def table(state: State, team: Team) -> str:
    return joined(team, (row(state, team, task) for task in state.tasks.order))


def joined(team: Team, rows: Iterable[str]) -> str:
    """The table of these rows, each as `row` returns it."""
    return "".join((_header(team.columns.order), *rows))


def row(state: State, team: Team, task: TaskId) -> str:
    """The row of a task, with the end of its line."""
    cells = _cells(state, team, state.tasks.plan[task], state.tasks.progress[task])
    return _line([cells[name] for name in team.columns.order])


def wave_file(state: State, team: Team, wave: int) -> str:
    columns = (*_plan_columns(team), "prev_context")
    rows = (
        _cells(state, team, task, progress) | {"prev_context": team.previous_context(state, task.id)}
        for task, progress in state.tasks.rows()
        if task.wave == wave and task.mode is Mode.csv_wave and progress.status is not Status.skipped
    )
    return _csv(columns, rows)


def wave_results(state: State, team: Team, wave: int) -> str:
    rows = (
        _cells(state, team, task, progress)
        for task, progress in state.tasks.rows()
        if task.wave == wave and task.mode is Mode.csv_wave and progress.status.is_final
    )
    return _csv(("id", *team.columns.order[len(_plan_columns(team)) :]), rows)


def _plan_columns(team: Team) -> tuple[str, ...]:
    return team.columns.order[: team.columns.order.index("status")]


def parse(text: str, team: Team, file: str = "tasks.csv", known: Collection[Task] = ()) -> list[TableRow]:
    """The rows of a table that a person may have written; the first mistake raises, with its line.

    Rows may name tasks that are known, whether they have a row or not.
    """
    records = _records(text, file)
    first, header = next(records, (1, []))
    if not header:
        raise WrongTable(file, 1, "the table is empty")
    _check_header(header, team.columns.order, file, first)
    tasks, named, lines = list[Task](), list[dict[str, str]](), list[int]()
    for line, cells in records:
        lines.append(line)
        if len(cells) != len(header):
            raise WrongTable(file, line, f"{counted(len(cells), 'cell')} for {counted(len(header), 'column')}")
        named.append(dict(zip(header, cells, strict=True)))
        try:
            tasks.append(_task(named[-1], team))
        except ValueError as error:
            raise WrongTable(file, line, str(error)) from error
    own = {task.id for task in tasks}
    placed = checked([*tasks, *(task for task in known if task.id not in own)])
    if isinstance(placed, Fault):
        raise WrongTable(file, (lines[: placed.row + 1] or [first])[-1], placed.message)
    return [_row(task, cells, team) for task, cells in zip(placed, named, strict=False)]


def _cells(state: State, team: Team, task: Task, progress: Progress) -> dict[str, str]:
    return {
        "id": task.id,
        "title": task.title,
        "description": task.description,
        "role": task.role,
        "deps": ";".join(task.deps),
        "context_from": ";".join(task.context_from),
        "exec_mode": task.mode,
        "wave": str(task.wave),
        "status": progress.status if progress.status in WRITTEN else Status.pending,
        "findings": progress.findings,
        "error": progress.error,
        **team.plan_cells(task),
        **team.result_cells(state, task.id),
    }


def _csv(header: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    return "".join((_header(header), *(_line([cells[name] for name in header]) for cells in rows)))


def _header(columns: Sequence[str]) -> str:
    return ",".join(columns) + "\n"


def _line(cells: Sequence[str]) -> str:
    """The cells in quotes, as the `csv` module writes them with `QUOTE_ALL`, but without a file for each line."""
    return '"' + '","'.join([cell.replace('"', '""') for cell in cells]) + '"\n'


def _records(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """The records with the line on which each begins; cells may contain line breaks."""
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    begin = 1
    try:
        for cells in reader:
            if cells:
                yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        raise WrongTable(file, begin, str(error)) from error


def _check_header(header: Sequence[str], columns: Sequence[str], file: str, line: int) -> None:
    for name in header:
        if name not in columns:
            raise WrongTable(file, line, f'unknown column "{name}"{did_you_mean(name, columns)}')
    if len(set(header)) < len(header):
        raise WrongTable(file, line, "a column occurs twice")
    for name in ("id", "description"):
        if name not in header:
            raise WrongTable(file, line, f'the column "{name}" is missing')


def _task(cells: Mapping[str, str], team: Team) -> Task:
    """The task of a row; a wrong cell, even one of its results, raises ValueError."""
    name = cells["id"].strip()
    role = cell_value(team.roles, "role", cells.get("role") or team.role_of(name) or team.role_for(""))
    team.check_results(cells)
    cell_value(STATUSES, "status", cells.get("status") or Status.pending)
    return Task(
        id=TaskId(name),
        title=cells.get("title") or name,
        description=cells["description"],
        role=role.name,
        fields=team.read_fields(cells),
        kind=_kind(name, role),
        deps=_ids(cells.get("deps", "")),
        context_from=_ids(cells.get("context_from", "")),
        mode=cell_value(MODES, "exec_mode", cells.get("exec_mode") or Mode.csv_wave),
    )


def _row(task: Task, cells: Mapping[str, str], team: Team) -> TableRow:
    status, error = STATUSES[cells.get("status") or Status.pending], cells.get("error", "")
    edit = RowEdit(
        task=task,
        status=status,
        findings=shortened(cells.get("findings", "")),
        error=error,
        # A task that iterdev skips has an error, which says why.
        left_out=status is Status.skipped and not error,
    )
    return TableRow(edit=edit, results={column: cells.get(column, "") for column in team.columns.results})


def _kind(task: str, role: RoleSpec) -> TaskKind:
    if role.procedure is Procedure.decide:
        return TaskKind.decision
    if ids.CONFLICT_FIX in task:
        return TaskKind.conflict_fix
    return TaskKind.update if ids.prefix_of(task) == ids.UPDATE else TaskKind.work


def _ids(cell: str) -> tuple[TaskId, ...]:
    if ";" in cell:
        return tuple([TaskId(part) for part in map(str.strip, cell.split(";")) if part])
    # Most cells name one task or none, and a table may have many rows.
    return (TaskId(name),) if (name := cell.strip()) else ()
