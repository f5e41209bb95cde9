"""What changed in a session from one state to the next, as lines of text."""

from collections import Counter
from collections.abc import Iterator
from datetime import tzinfo

from iterdev.core.formatting import one_line
from iterdev.core.ids import ZONE
from iterdev.core.results import shortened
from iterdev.core.session.state import State
from iterdev.core.types import Status
from iterdev.core.views.tasks import TaskView, task_view
from iterdev.core.views.team import TeamViews
from iterdev.core.views.why import pause_text, pauses

WIDTH = 160
"""Characters of findings or of an error that a line has room for; the summary at the end has the whole error."""


def progress_lines(before: State | None, after: State, team: TeamViews, zone: tzinfo = ZONE) -> Iterator[str]:
    """One line for every change of a task, and one for every step of the team, wave, environment, warning and pause.

    Without an earlier state, tasks that are over are only counted, and environments were made before.
    """
    if before is None:
        counts = Counter(progress.status for progress in after.tasks.progress.values() if progress.status.is_final)
        if counts:
            yield "before: " + ", ".join(f"{count} {status}" for status, count in counts.items())
    if after.tasks.wave and after.tasks.wave != (before.tasks.wave if before else 0):
        yield f"wave {after.tasks.wave}/{max(task.wave for task in after.tasks.plan.values())}{_again(after)}"
    yield from _tasks(before, after, team)
    known_steps = team.view(before).steps if before else ()
    yield from (step for step in team.view(after).steps if step not in known_steps)
    made = (before or after).environments
    yield from (f"  environment: {text}" for text in after.environments[len(made) :])
    warned = before.warnings if before else ()
    yield from (f"  warning: {text}" for text in dict.fromkeys(after.warnings[len(warned) :]) if text not in warned)
    known = {pause.provider: pause.ends_at for pause in pauses(before)} if before else {}
    yield from (f"  {pause_text(pause)}" for pause in pauses(after, zone) if known.get(pause.provider) != pause.ends_at)


def _again(state: State) -> str:
    """A task that is added may belong into a wave before others that have begun."""
    later = max((task.wave for task, progress in state.tasks.rows() if progress.attempt), default=0)
    return " again" if later > state.tasks.wave else ""


def _tasks(before: State | None, after: State, team: TeamViews) -> Iterator[str]:
    # Progress is replaced when it changes, so most tasks of a long table are passed over by comparing identities.
    final = (item for item in after.tasks.progress.items() if item[1].status.is_final)
    known = before.tasks.progress if before else dict(final)
    for name, progress in after.tasks.progress.items():
        old = known.get(name)
        if old is not progress and progress.status is not (old.status if old else Status.pending):
            yield f"  {name} {task_change(task_view(after, team, name))}"


def task_change(task: TaskView) -> str:
    """What has just become of a task."""
    result = task.result
    match task.status:
        case Status.in_progress:
            return f"started ({', '.join(filter(None, (task.role, task.agent, f'attempt {task.attempt}')))})"
        case Status.completed if result.conflict:
            return result.conflict
        case Status.completed if result.notes.verdict:
            return f"{task.status}: {result.notes.verdict}"
        case Status.completed if result.findings:
            first_line = next(iter(result.findings.strip().splitlines()), "")
            return f"{task.status}: {shortened(first_line, WIDTH)}"
        case Status.failed | Status.skipped:
            return f"{task.status}: {shortened(one_line(result.error), WIDTH)}"
        case _:
            return task.status
