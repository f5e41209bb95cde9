"""The columns of tasks.csv that the development team adds: pipeline, sprint and round, score and signal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Status, TaskId
from iterdev.teams.contract import cell_value, common_columns
from iterdev.teams.development.events import VerdictEdited
from iterdev.teams.development.pipelines import INCREMENT
from iterdev.teams.development.roles import Fields, Part, Pipeline, Role, Signal, fields
from iterdev.teams.development.state import Development, Verdict, development

COLUMNS = common_columns(("pipeline", "sprint_num", "gc_round"), ("review_score", "gc_signal"))
LOWEST_SCORE, HIGHEST_SCORE = 1, 10
PIPELINES = {pipeline.value: pipeline for pipeline in Pipeline}
SIGNALS = {signal.value: signal for signal in Signal}
"""What a cell may say."""
REST_OF_BREAKDOWN = f"PURPOSE: {INCREMENT.purpose} |"

Number = TypeVar("Number", int, float)


def plan_cells(task: Task) -> dict[str, str]:
    own = fields(task)
    return {"pipeline": own.pipeline, "sprint_num": str(own.sprint), "gc_round": str(own.round)}


def result_cells(state: State, task: TaskId) -> dict[str, str]:
    verdict = development(state).verdicts.get(task, Verdict())
    score = "" if verdict.score is None else f"{verdict.score:g}"
    return {"review_score": score, "gc_signal": verdict.signal or ""}


def read_fields(cells: Mapping[str, str]) -> Fields:
    own = Fields(
        pipeline=cell_value(PIPELINES, "pipeline", cells.get("pipeline") or Pipeline.sprint),
        sprint=_number(int, "sprint_num", cells.get("sprint_num") or "1"),
        round=_number(int, "gc_round", cells.get("gc_round") or "0"),
        part=Part.rest if cells["description"].startswith(REST_OF_BREAKDOWN) else Part.own,
    )
    if own.sprint < 1:
        raise ValueError(f'the sprint_num of "{cells["id"]}" is {own.sprint}, and sprints are counted from 1')
    if own.round < 0:
        raise ValueError(f'the gc_round of "{cells["id"]}" is {own.round}, and rounds are counted from 0')
    return own


def edited_verdicts(
    part: Development, plan: Mapping[TaskId, Task], rows: Sequence[TableRow]
) -> Iterator[VerdictEdited]:
    """Scores and signals that differ from what is known; `plan` is the table before the edit."""
    tasks = {**plan, **{row.edit.task.id: row.edit.task for row in rows}}
    for row in rows:
        task, verdict = row.edit.task.id, read_verdict(row.results)
        known = part.verdicts.get(task, Verdict())
        if (verdict.score, verdict.signal) != (known.score, known.signal):
            judged = row.edit.status is not Status.completed or task in part.judged or _has_fix(tasks, task)
            yield VerdictEdited(task=task, score=verdict.score, signal=verdict.signal, judged=judged)


def _has_fix(tasks: Mapping[TaskId, Task], task: TaskId) -> bool:
    """Whether a fix of a later round already waits for this verdict, as in a table that was read back."""
    own, others = fields(tasks[task]), (other for other in tasks.values() if task in other.deps)
    return any(other.role == Role.developer and fields(other).round > own.round for other in others)


def read_verdict(cells: Mapping[str, str]) -> Verdict:
    score, signal = cells.get("review_score"), cells.get("gc_signal")
    value = _number(float, "review_score", score) if score else None
    if value is not None and not LOWEST_SCORE <= value <= HIGHEST_SCORE:
        raise ValueError(f'review_score is "{score}", expected {LOWEST_SCORE} to {HIGHEST_SCORE}')
    return Verdict(score=value, signal=cell_value(SIGNALS, "gc_signal", signal) if signal else None)


def _number(kind: Callable[[str], Number], column: str, value: str) -> Number:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f'{column} is "{value}", expected a number') from None
