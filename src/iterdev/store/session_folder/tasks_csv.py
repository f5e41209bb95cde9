"""tasks.csv: the table as text and back. A mistake is reported with the number of its line."""

import csv
import difflib
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

import msgspec

from iterdev.core import ids, prompts
from iterdev.core.errors import UserError
from iterdev.core.results import cut
from iterdev.core.session.events import RowEdit
from iterdev.core.session.state import Progress, State
from iterdev.core.session.tasks import Fault, Task, checked
from iterdev.core.types import Mode, Pipeline, Role, Signal, Status, TaskId

COLUMNS = (
    "id",
    "title",
    "description",
    "role",
    "pipeline",
    "sprint_num",
    "gc_round",
    "deps",
    "context_from",
    "exec_mode",
    "wave",
    "status",
    "findings",
    "review_score",
    "gc_signal",
    "error",
)
WAVE_COLUMNS = (*COLUMNS[:11], "prev_context")
RESULT_COLUMNS = ("id", "status", "findings", "review_score", "gc_signal", "error")
WRITTEN = (Status.pending, Status.completed, Status.failed, Status.skipped)
"""The table knows only these; whatever is under way is pending in it, so that it can always be taken up again."""

ROLES = {word.value: word for word in Role}
PIPELINES = {word.value: word for word in Pipeline}
MODES = {word.value: word for word in Mode}
SIGNALS = {word.value: word for word in Signal}
STATUSES = {word.value: word for word in WRITTEN}
"""What a cell may say, and what is meant by it."""

LONGEST_CELL = 2**31 - 1
LOWEST_SCORE, HIGHEST_SCORE = 1, 10

Word = TypeVar("Word", bound=StrEnum)
Number = TypeVar("Number", int, float)


def table(state: State) -> str:
    return _csv(COLUMNS, (_cells(task, progress) for task, progress in state.rows()))


def wave_file(state: State, wave: int) -> str:
    """What the batch of a wave is given."""
    rows = (
        [*_cells(task, progress)[:11], prompts.previous(state, task.id)]
        for task, progress in state.rows()
        if task.wave == wave and task.mode is Mode.csv_wave and progress.status is not Status.skipped
    )
    return _csv(WAVE_COLUMNS, rows)


def wave_results(state: State, wave: int) -> str:
    rows = (
        _cells(task, progress)[:1] + _cells(task, progress)[11:]
        for task, progress in state.rows()
        if task.wave == wave and task.mode is Mode.csv_wave and progress.status.is_final
    )
    return _csv(RESULT_COLUMNS, rows)


def parse(text: str, file: str = "tasks.csv", known: Collection[Task] = ()) -> list[RowEdit]:
    """The rows of a table that a person may have written; the first mistake raises, with its line.

    Rows may name tasks that are known, whether they have a row or not.
    """
    records = _records(text, file)
    if not records:
        raise _wrong(file, 1, "the table is empty")
    (first, header), *body = records
    _check_header(header, file, first)
    rows = []
    for line, cells in body:
        if len(cells) != len(header):
            raise _wrong(file, line, f"{len(cells)} cells for {len(header)} columns")
        try:
            rows.append(_row(dict(zip(header, cells, strict=True))))
        except ValueError as error:
            raise _wrong(file, line, str(error)) from error
    own = {row.task.id for row in rows}
    tasks = checked([*(row.task for row in rows), *(task for task in known if task.id not in own)])
    if isinstance(tasks, Fault):
        lines = [line for line, _ in body][: tasks.row + 1]
        raise _wrong(file, lines[-1] if lines else first, tasks.message)
    return [msgspec.structs.replace(row, task=task) for row, task in zip(rows, tasks, strict=False)]


def _cells(task: Task, progress: Progress) -> list[str]:
    return [
        task.id,
        task.title,
        task.description,
        task.role,
        task.pipeline,
        str(task.sprint),
        str(task.round),
        ";".join(task.deps),
        ";".join(task.context_from),
        task.mode,
        str(task.wave),
        progress.status if progress.status in WRITTEN else Status.pending,
        progress.findings,
        "" if progress.score is None else f"{progress.score:g}",
        progress.signal or "",
        progress.error,
    ]


def _csv(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    out.write(",".join(header) + "\n")
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _records(text: str, file: str) -> list[tuple[int, list[str]]]:
    """The records with the line on which each begins; cells may contain line breaks."""
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    records: list[tuple[int, list[str]]] = []
    begin = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise _wrong(file, begin, str(error)) from error
        if cells is None:
            return records
        if cells:
            records.append((begin, cells))
        begin = reader.line_num + 1


def _check_header(header: Sequence[str], file: str, line: int) -> None:
    for name in header:
        if name not in COLUMNS:
            near = difflib.get_close_matches(name, COLUMNS, 1)
            raise _wrong(file, line, f'unknown column "{name}"' + (f' (did you mean "{near[0]}"?)' if near else ""))
    if len(set(header)) < len(header):
        raise _wrong(file, line, "a column stands there twice")
    for name in ("id", "description"):
        if name not in header:
            raise _wrong(file, line, f'the column "{name}" is missing')


def _row(cells: Mapping[str, str]) -> RowEdit:
    name = cells["id"].strip()
    task = Task(
        id=TaskId(name),
        title=cells.get("title") or name,
        description=cells["description"],
        role=_word(ROLES, "role", cells.get("role") or ids.role_of(name) or ""),
        pipeline=_word(PIPELINES, "pipeline", cells.get("pipeline") or Pipeline.sprint),
        sprint=_number(int, "sprint_num", cells.get("sprint_num") or "1"),
        round=_number(int, "gc_round", cells.get("gc_round") or "0"),
        deps=_ids(cells.get("deps", "")),
        context_from=_ids(cells.get("context_from", "")),
        mode=_word(MODES, "exec_mode", cells.get("exec_mode") or Mode.csv_wave),
    )
    status = _word(STATUSES, "status", cells.get("status") or Status.pending)
    score = cells.get("review_score")
    return RowEdit(
        task=task,
        status=status,
        findings=cut(cells.get("findings", "")),
        score=_score(score) if score else None,
        signal=_word(SIGNALS, "gc_signal", cells["gc_signal"]) if cells.get("gc_signal") else None,
        error=cells.get("error", ""),
    )


def _word(known: Mapping[str, Word], column: str, value: str) -> Word:
    if word := known.get(value):
        return word
    raise ValueError(f'{column} is "{value}", expected one of {", ".join(known)}')


def _number(kind: Callable[[str], Number], column: str, value: str) -> Number:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f'{column} is "{value}", expected a number') from None


def _score(value: str) -> float:
    score = _number(float, "review_score", value)
    if not LOWEST_SCORE <= score <= HIGHEST_SCORE:
        raise ValueError(f'review_score is "{value}", expected {LOWEST_SCORE} to {HIGHEST_SCORE}')
    return score


def _ids(cell: str) -> tuple[TaskId, ...]:
    return tuple(TaskId(part) for part in map(str.strip, cell.split(";")) if part)


def _wrong(file: str, line: int, message: str) -> UserError:
    return UserError(f"{file} line {line}: {message}", hint=f"mend line {line} of {file} and try again")
