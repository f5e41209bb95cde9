"""Plain lines of progress, for a pipe or a log."""

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

import click

from iterdev.core.session import conflict_tasks
from iterdev.core.session.state import Progress, State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Role, Status, TaskId
from iterdev.core.views import session as session_view
from iterdev.teams.development import sprints


def complain(text: str) -> None:
    click.echo(text, err=True)


def tell(text: str) -> None:
    """Prints a line. If nobody reads any more, as after `| head`, the run goes on unseen."""
    try:
        click.echo(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Lines:
    """One line for every change of a task, and one for every sprint, wave, fix round and pause of a provider."""

    def __init__(self) -> None:
        self._seen: Mapping[TaskId, Progress] | None = None
        self._goals: Sequence[str] = ()
        self._sprint = 1
        self._wave = 0
        self._rounds = 0
        self._warnings = 0
        self._pauses: dict[str, str] = {}

    def show(self, state: State) -> None:
        if self._seen is None:
            self._seen = _over_before(state)
        self._show_where(state)
        for name, progress in state.progress.items():
            before = self._seen.get(name)
            if before is not progress and progress.status is not (before.status if before else Status.pending):
                tell(news(state, state.tasks[name], progress))
        self._seen = state.progress
        self._show_what_follows(state)
        for pause in session_view.pauses(state):
            if self._pauses.get(pause.provider) != pause.until:
                tell(f"  {session_view.paused_provider(pause)}")
            self._pauses[pause.provider] = pause.until

    def _show_where(self, state: State) -> None:
        """The heads above what becomes of tasks."""
        if state.sprint != self._sprint:
            plain = " (plain, since the one before went well)" if sprints.is_plain(state) else ""
            tell(f"sprint {state.sprint} of {sprints.total(state)}: {sprints.goal(state, state.sprint)}{plain}")
            self._sprint = state.sprint
        if state.wave and state.wave != self._wave:
            self._wave = state.wave
            tell(f"wave {state.wave}")

    def _show_what_follows(self, state: State) -> None:
        """From a design, a verdict, or something odd."""
        if len(goals := sprints.goals(state)) > 1 and goals != self._goals:
            self._goals = goals
            tell(f"{len(goals)} sprints: " + "; ".join(f"{number}. {goal}" for number, goal in enumerate(goals, 1)))
        if (rounds := sum(state.rounds.values())) > self._rounds:
            self._rounds = rounds
            tell(f"fix round {state.round} of {state.policy.rounds}")
        for warning in state.warnings[self._warnings :]:
            tell(f"  warning: {warning}")
        self._warnings = len(state.warnings)


def _over_before(state: State) -> Mapping[TaskId, Progress]:
    """The tasks that were final when this run began, which says of them only how many they are."""
    final = {task: progress for task, progress in state.progress.items() if progress.status.is_final}
    counts = Counter(progress.status for progress in final.values())
    if counts:
        tell("before: " + ", ".join(f"{count} {status}" for status, count in counts.items()))
    return final


def news(state: State, task: Task, progress: Progress) -> str:
    """What has just become of a task."""
    head = f"  {task.id} {progress.status}"
    match progress.status:
        case Status.in_progress:
            words = task.role, session_view.asked_agent(task, progress), f"attempt {progress.number + 1}"
            return f"  {task.id} started ({', '.join(filter(None, words))})"
        case Status.completed if collision := conflict_tasks.collision(state, task.id):
            return f"  {task.id} {collision}"
        case Status.completed if task.role is Role.reviewer and progress.score is not None:
            return f"{head}: score {progress.score:g}, {progress.signal}"
        case Status.completed:
            return f"{head}: {_first_line(progress.findings)}" if progress.findings else head
        case Status.failed | Status.skipped:
            return f"{head}: {progress.error}"
        case _:
            return head


def _first_line(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= 160 else f"{line[:159]}…"
