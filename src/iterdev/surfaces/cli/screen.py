"""What a person sees while a session runs: a live picture in a terminal, plain lines anywhere else."""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import anyio
import click

from iterdev.agents.contract import AgentEvent
from iterdev.core import resolvers, sprints, view
from iterdev.core.events import Gate
from iterdev.core.plan import Task
from iterdev.core.state import Progress, State
from iterdev.core.words import Role, SessionId, Status, TaskId
from iterdev.engine.wire import Audience, nobody


def is_terminal() -> bool:
    """A person is looking, and has not asked for plain output."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not os.environ.get("CI")


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def opened(session: SessionId, *, quiet: bool) -> Iterator[Audience]:
    """The audience of one run."""
    if quiet:
        yield Audience(ask=nobody, say=complain)
    elif is_terminal():
        # rich takes 60 ms to load; plain output does without it.
        from iterdev.surfaces.cli.live import Live

        with Live() as live:
            yield Audience(show=live.show, hear=live.hear, ask=live.ask, say=live.say)
    else:
        tell(f"session {session}")
        lines = Lines()
        yield Audience(show=lines.show, hear=_unheard, ask=ask if can_ask() else nobody, say=complain)


def complain(text: str) -> None:
    click.echo(text, err=True)


def _unheard(_task: str, _event: AgentEvent) -> None:
    """Plain output tells of tasks, not of every line that agents write."""


async def ask(gate: Gate) -> str | None:
    """Asks on the terminal until an answer fits; the end of the input is no answer."""
    click.echo(gate.question)
    for number, choice in enumerate(gate.choices, 1):
        click.echo(f"  {number}. {choice}")
    while True:
        click.echo(f"{gate.id} [{gate.choices[0]}]: ", nl=False)
        await anyio.wait_readable(sys.stdin)
        line = sys.stdin.readline()
        if not line:
            click.echo()
            return None
        word = line.strip() or gate.choices[0]
        if word.isdigit() and 0 < int(word) <= len(gate.choices):
            return gate.choices[int(word) - 1]
        if word in gate.choices:
            return word
        click.echo(f'"{word}" is not one of {", ".join(gate.choices)}')


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
        for pause in view.pauses(state):
            if self._pauses.get(pause.provider) != pause.until:
                tell(f"  {view.paused_provider(pause)}")
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
            words = task.role, view.asked_agent(task, progress), f"attempt {progress.number + 1}"
            return f"  {task.id} started ({', '.join(filter(None, words))})"
        case Status.completed if collision := resolvers.collision(state, task.id):
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
