"""The columns of tasks.csv that the development team adds: pipeline, sprint and round, score and signal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from iterdev.core import ids
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Status, TaskId, TaskKind
from iterdev.teams.contract import PlanCells, TableColumns
from iterdev.teams.development.events import VerdictEdited
from iterdev.teams.development.fields import Fields, Part, Pipeline, Role, Signal, fields
from iterdev.teams.development.pipelines import INCREMENT, role_of
from iterdev.teams.development.state import Development, Verdict, development

COLUMNS = TableColumns(
    order=(
        *("id", "title", "description", "role", "pipeline", "sprint_num", "gc_round", "deps", "context_from"),
        *("exec_mode", "wave", "status", "findings", "review_score", "gc_signal", "error"),
    ),
    results=("review_score", "gc_signal"),
)
LOWEST_SCORE, HIGHEST_SCORE = 1, 10
ROLES = {role.value: role for role in Role}
PIPELINES = {pipeline.value: pipeline for pipeline in Pipeline}
SIGNALS = {signal.value: signal for signal in Signal}
"""What a cell may say."""
REST_OF_BREAKDOWN = f"PURPOSE: {INCREMENT.purpose} |"

Word = TypeVar("Word", bound=StrEnum)
Number = TypeVar("Number", int, float)


def plan_cells(task: Task) -> dict[str, str]:
    own = fields(task)
    return {"pipeline": own.pipeline, "sprint_num": str(own.sprint), "gc_round": str(own.round)}


def result_cells(state: State, task: TaskId) -> dict[str, str]:
    verdict = development(state).verdicts.get(task, Verdict())
    score = "" if verdict.score is None else f"{verdict.score:g}"
    return {"review_score": score, "gc_signal": verdict.signal or ""}


def read_plan(cells: Mapping[str, str]) -> PlanCells:
    name = cells["id"].strip()
    role = _word(ROLES, "role", cells.get("role") or role_of(name) or "")
    own = Fields(
        pipeline=_word(PIPELINES, "pipeline", cells.get("pipeline") or Pipeline.sprint),
        sprint=_number(int, "sprint_num", cells.get("sprint_num") or "1"),
        round=_number(int, "gc_round", cells.get("gc_round") or "0"),
        part=Part.rest if cells["description"].startswith(REST_OF_BREAKDOWN) else Part.own,
    )
    if own.sprint < 1:
        raise ValueError(f'the sprint_num of "{name}" is {own.sprint}, and sprints are counted from 1')
    if own.round < 0:
        raise ValueError(f'the gc_round of "{name}" is {own.round}, and rounds are counted from 0')
    return PlanCells(role=role, fields=own, kind=_kind(name, role))


def _kind(task: str, role: Role) -> TaskKind:
    if role is Role.gc_controller:
        return TaskKind.decision
    return TaskKind.conflict_fix if ids.CONFLICT_FIX in task else TaskKind.work


def check_results(cells: Mapping[str, str]) -> None:
    _verdict(cells)


def edited_verdicts(
    part: Development, plan: Mapping[TaskId, Task], rows: Sequence[TableRow]
) -> Iterator[VerdictEdited]:
    """Scores and signals that differ from what is known; `plan` is the table before the edit."""
    tasks = {**plan, **{row.edit.task.id: row.edit.task for row in rows}}
    for row in rows:
        task, verdict = row.edit.task.id, _verdict(row.results)
        known = part.verdicts.get(task, Verdict())
        if (verdict.score, verdict.signal) != (known.score, known.signal):
            judged = row.edit.status is not Status.completed or task in part.judged or _has_fix(tasks, task)
            yield VerdictEdited(task=task, score=verdict.score, signal=verdict.signal, judged=judged)


def _has_fix(tasks: Mapping[TaskId, Task], task: TaskId) -> bool:
    """Whether a fix of a later round already waits for this verdict, as in a table that was read back."""
    own, others = fields(tasks[task]), (other for other in tasks.values() if task in other.deps)
    return any(other.role == Role.developer and fields(other).round > own.round for other in others)


def _verdict(cells: Mapping[str, str]) -> Verdict:
    score, signal = cells.get("review_score"), cells.get("gc_signal")
    return Verdict(
        score=_score(score) if score else None,
        signal=_word(SIGNALS, "gc_signal", signal) if signal else None,
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
