"""The live picture of a run in a terminal: waves, tasks, time, the last line of each agent, cost."""

import time
from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from iterdev.agents.contract import AgentEvent, Said
from iterdev.core.ids import moment
from iterdev.core.limits import providers
from iterdev.core.limits.spending import spending
from iterdev.core.session import conflict_tasks
from iterdev.core.session.events import Gate
from iterdev.core.session.state import Progress, State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Signal, Status, TaskId
from iterdev.core.views import session as session_view
from iterdev.core.views.session import excerpt
from iterdev.surfaces.cli.output import prompt
from iterdev.teams.development import critic, sprints

STYLES = {
    Status.pending: ("·", "dim"),
    Status.in_progress: ("▸", "bold cyan"),
    Status.landing: ("▸", "cyan"),
    Status.completed: ("✓", "green"),
    Status.failed: ("✗", "bold red"),
    Status.skipped: ("-", "yellow"),
}
FRAMES = 8
"""Pictures per second."""
MARGIN = 2
"""Lines of the terminal that are not for tasks: the head, and the one that the cursor is in."""


class Live:
    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False)
        self._state: State | None = None
        self._said: dict[str, str] = {}
        self._since = time.time()
        # Last, because rich asks for the first picture at once.
        self._live = self._new()

    def _new(self) -> RichLive:
        return RichLive(console=self._console, get_renderable=self._picture, refresh_per_second=FRAMES)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, state: State) -> None:
        self._state = state

    def hear(self, task: str, event: AgentEvent) -> None:
        if isinstance(event, Said) and event.text.strip():
            self._said[task] = event.text.strip()

    def say(self, text: str) -> None:
        self._console.print(text, style="yellow")

    async def ask(self, gate: Gate) -> str | None:
        if not prompt.can_ask():
            return None
        # The picture makes room for the question; one that is started again would paint over it.
        self._live.transient = True
        self._live.stop()
        try:
            return await prompt.ask(gate)
        finally:
            self._live = self._new()
            self._live.start()

    def _picture(self) -> Group:
        if self._state is None:
            return Group(Text("starting", style="dim"))
        foot = self._foot(self._state)
        room = self._console.height - len(foot) - MARGIN
        return Group(self._head(self._state), *self._rows(self._state, max(room, 1)), *foot)

    def _head(self, state: State) -> Text:
        done = state.count(Status.completed)
        cost = f"  ${state.spent.cost_usd:.2f}" if state.spent.cost_usd else ""
        text = Text(f"{state.session.id}  ", style="bold")
        sprint = f" sprint {state.sprint} of {total}" if (total := sprints.total(state)) > 1 else ""
        elapsed = _span(time.time() - self._since)
        text.append(f"{state.pipeline or ''}{sprint} {done}/{len(state.tasks)}  {elapsed}{cost}")
        return text

    def _rows(self, state: State, room: int) -> list[Table | Text]:
        """The table; of one that is too long for the terminal, a part that says most, and what the rest is."""
        if len(state.order) <= room:
            return [self._table(state, state.order)]
        shown = excerpt(state, max(room - 1, 1))
        hidden = Counter(state.progress[task].status for task in state.order.keys() - shown)
        counts = ", ".join(f"{hidden[status]} {status}" for status in Status if hidden[status])
        return [self._table(state, shown), Text(f"   and {counts}", "dim")]

    def _table(self, state: State, tasks: Iterable[TaskId]) -> Table:
        table = Table.grid(padding=(0, 1), expand=True)
        for options in ({"width": 2, "justify": "right"}, {}, {}, {}, {"justify": "right"}):
            table.add_column(no_wrap=True, **options)
        # Only the note gives way in a narrow terminal.
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        wave = 0
        for task, progress in ((state.tasks[name], state.progress[name]) for name in tasks):
            mark, style = _mark(state, task, progress)
            note = conflict_tasks.collision(state, task.id) or self._note(task, progress)
            table.add_row(
                str(task.wave) if task.wave != wave else "",
                Text(mark, style),
                Text(task.id, style),
                Text(task.role, "dim"),
                Text(_elapsed(progress), "dim"),
                Text(note, style if progress.status is Status.failed else ""),
            )
            wave = task.wave
        return table

    def _note(self, task: Task, progress: Progress) -> str:
        match progress.status:
            case Status.in_progress:
                worker = session_view.asked_agent(task, progress) or "iterdev"
                return self._said.get(task.id, f"{worker} is working")
            case Status.landing:
                return "landing"
            case Status.completed if progress.score is not None:
                return f"score {progress.score:g}  {progress.findings}"
            case Status.completed:
                return " ".join(progress.findings.split())
            case Status.failed | Status.skipped:
                return progress.error
            case _:
                return task.title

    def _foot(self, state: State) -> list[Text]:
        lines = [Text(f"warning: {text}", "yellow") for text in state.warnings[-3:]]
        lines += [Text(text, "bold yellow") for text in _pauses(state, time.time())]
        if state.round:
            lines.append(Text(f"fix rounds: {state.round} of {state.policy.rounds}", "dim"))
        if spent := spending(state).by_role_and_agent:
            lines.append(Text(f"spent: {spent}", "dim"))
        return lines


def _mark(state: State, task: Task, progress: Progress) -> tuple[str, str]:
    """How the task stands; a verdict that asks for a fix round is done, but no success."""
    verification = state.verifications.get(task.id)
    bad = progress.signal is Signal.revision_needed or (verification is not None and critic.fails(verification))
    status = state.progress[conflict_tasks.resolver(state, task.id) or task.id].status
    return ("!", "yellow") if bad and status is Status.completed else STYLES[status]


def _pauses(state: State, now: float) -> list[str]:
    return [
        f"the provider of {', '.join(providers.clients(state, provider))} is paused for {_span(pause.until - now)}, "
        f"until {moment(pause.until)}: {pause.why}"
        for provider, pause in providers.in_force(state, now).items()
    ]


def _elapsed(progress: Progress) -> str:
    if progress.started_at is None:
        return ""
    cost = f" ${progress.usage.cost_usd:.2f}" if progress.usage.cost_usd else ""
    return _span((progress.ended_at or time.time()) - progress.started_at) + cost


def _span(seconds: float) -> str:
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    return f"{minutes}:{rest:02d}"
