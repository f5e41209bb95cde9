"""Plain lines of progress, for a pipe or a log."""

import os
import sys
from typing import assert_never

import click

from iterdev.core.types import Role, Status
from iterdev.core.views.pauses import pause_text
from iterdev.core.views.progress import (
    EarlierTasks,
    NewPause,
    NewWarning,
    ProgressChange,
    RoundChange,
    SprintChange,
    SprintsPlanned,
    TaskChange,
    WaveChange,
)
from iterdev.core.views.tasks import TaskView
from iterdev.core.views.team import SprintView


def print_error(text: str) -> None:
    click.echo(text, err=True)


def print_line(text: str) -> None:
    """Prints a line. When the reader of a pipe is gone, as after `| head`, the run goes on without output."""
    try:
        click.echo(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_change(change: ProgressChange) -> None:
    print_line(change_text(change))


def change_text(change: ProgressChange) -> str:
    match change:
        case EarlierTasks(counts):
            return "before: " + ", ".join(f"{count} {status}" for status, count in counts.items())
        case SprintChange(sprint):
            return _sprint(sprint)
        case WaveChange(number):
            return f"wave {number}"
        case TaskChange(task):
            return f"  {task.id} {_task(task)}"
        case SprintsPlanned(goals):
            return f"{len(goals)} sprints: " + "; ".join(f"{number}. {goal}" for number, goal in enumerate(goals, 1))
        case RoundChange(number=number, limit=limit):
            return f"fix round {number} of {limit}"
        case NewWarning(text):
            return f"  warning: {text}"
        case NewPause(pause):
            return f"  {pause_text(pause)}"
        case _:
            assert_never(change)


def _sprint(sprint: SprintView) -> str:
    plain = " (plain, since the one before went well)" if sprint.is_plain else ""
    return f"sprint {sprint.number} of {sprint.total}: {sprint.goal}{plain}"


def _task(task: TaskView) -> str:
    """What has just become of a task."""
    result = task.result
    match task.status:
        case Status.in_progress:
            return f"started ({', '.join(filter(None, (task.role, task.agent, f'attempt {task.attempt}')))})"
        case Status.completed if result.conflict:
            return result.conflict
        case Status.completed if task.role is Role.reviewer and result.score is not None:
            return f"{task.status}: score {result.score:g}, {result.signal}"
        case Status.completed if result.findings:
            return f"{task.status}: {_first_line(result.findings)}"
        case Status.failed | Status.skipped:
            return f"{task.status}: {result.error}"
        case _:
            return task.status


def _first_line(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= 160 else f"{line[:159]}…"
