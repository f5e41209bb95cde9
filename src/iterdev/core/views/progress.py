"""What changed in a session from one state to the next, as lines of text."""

from collections import Counter
from collections.abc import Iterator

from iterdev.core.session.state import State
from iterdev.core.types import Role, Status
from iterdev.core.views.pauses import pause_text, pauses
from iterdev.core.views.tasks import TaskView, task_view
from iterdev.core.views.team import sprint_goals, sprint_view

WIDTH = 160
"""Characters of findings that a line has room for."""


def progress_lines(before: State | None, after: State) -> Iterator[str]:
    """One line for every change of a task, and one for every sprint, wave, fix round, warning and pause.

    Without an earlier state, tasks that are over are only counted.
    """
    if before is None:
        counts = Counter(progress.status for progress in after.progress.values() if progress.status.is_final)
        if counts:
            yield "before: " + ", ".join(f"{count} {status}" for status, count in counts.items())
    yield from _stages(before, after)
    yield from _tasks(before, after)
    yield from _consequences(before, after)
    known = {pause.provider: pause.until for pause in pauses(before)} if before else {}
    yield from (f"  {pause_text(pause)}" for pause in pauses(after) if known.get(pause.provider) != pause.until)


def _stages(before: State | None, after: State) -> Iterator[str]:
    if after.sprint != (before.sprint if before else 1):
        sprint = sprint_view(after)
        plain = " (plain, since the one before went well)" if sprint.is_plain else ""
        yield f"sprint {sprint.number} of {sprint.total}: {sprint.goal}{plain}"
    if after.wave and after.wave != (before.wave if before else 0):
        yield f"wave {after.wave}"


def _tasks(before: State | None, after: State) -> Iterator[str]:
    # Progress is replaced when it changes, so most tasks of a long table are passed over by comparing identities.
    final = (item for item in after.progress.items() if item[1].status.is_final)
    known = before.progress if before else dict(final)
    for name, progress in after.progress.items():
        old = known.get(name)
        if old is not progress and progress.status is not (old.status if old else Status.pending):
            yield f"  {name} {_task(task_view(after, name))}"


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
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _consequences(before: State | None, after: State) -> Iterator[str]:
    """What follows from a design, a verdict, or something odd."""
    goals = sprint_goals(after)
    if len(goals) > 1 and goals != (sprint_goals(before) if before else ()):
        yield f"{len(goals)} sprints: " + "; ".join(f"{number}. {goal}" for number, goal in enumerate(goals, 1))
    if sum(after.rounds.values()) > (sum(before.rounds.values()) if before else 0):
        yield f"fix round {after.round} of {after.policy.rounds}"
    yield from (f"  warning: {text}" for text in after.warnings[len(before.warnings) if before else 0 :])
