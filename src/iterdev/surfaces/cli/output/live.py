"""The live picture of a run in a terminal: waves, tasks, time, the last line of each agent, cost."""

import time
from collections.abc import Awaitable, Callable
from typing import Self

from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from iterdev.core.formatting import plain
from iterdev.core.types import Status
from iterdev.core.views.gates import GateView
from iterdev.core.views.session import SessionView
from iterdev.core.views.tasks import TaskView
from iterdev.core.views.why import PauseView
from iterdev.surfaces.cli.output import prompt

STYLES = {
    Status.pending: "dim",
    Status.in_progress: "bold cyan",
    Status.landing: "cyan",
    Status.completed: "green",
    Status.failed: "bold red",
    Status.skipped: "yellow",
}
FRAMES = 8
"""Pictures per second."""
MARGIN = 2
"""Lines of the terminal that are not for tasks: the head, and the one that the cursor is in."""


ECHO = 2
"""Columns for the ^C that a terminal shows: after a full line it would move the cursor, and the picture with it."""

Ask = Callable[[GateView], Awaitable[str | None]]


class Live:
    def __init__(
        self, console: Console | None = None, now: Callable[[], float] = time.time, ask: Ask = prompt.ask
    ) -> None:
        self._console, self._now, self._ask = console or Console(highlight=False), now, ask
        self._view: Callable[[int], SessionView] | None = None
        self._last_line: dict[str, str] = {}
        self._since = now()
        # Last, because rich asks for the first picture at once.
        self._live = self._new()

    def _new(self) -> RichLive:
        return RichLive(console=self._console, get_renderable=self._picture, refresh_per_second=FRAMES)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, view: Callable[[int], SessionView]) -> None:
        self._view = view

    def agent_output(self, task: str, text: str) -> None:
        self._last_line[task] = text

    def notify(self, text: str) -> None:
        self._console.print(plain(text), style="yellow", markup=False)

    async def ask(self, gate: GateView) -> str | None:
        if not prompt.can_ask():
            return None
        # The picture makes room for the question; one that is started again would paint over it.
        self._live.transient = True
        self._live.stop()
        try:
            return await self._ask(gate)
        finally:
            self._live = self._new()
            self._live.start()

    def _picture(self) -> Group:
        if self._view is None:
            return Group(_text("starting", style="dim"))
        view = self._view(self._console.height)
        foot = _foot(view, self._now())
        room = max(self._console.height - len(foot) - MARGIN, 1)
        if len(view.tasks) > room:
            # One line less, which says how many tasks are not shown.
            view = self._view(max(room - 1, 1))
        return Group(self._head(view), self._table(view), *_rest(view), *foot)

    def _head(self, view: SessionView) -> Text:
        cost = f"  ${view.usage.cost_usd:.2f}" if view.usage.cost_usd else ""
        position = f" {view.team.position}" if view.team.position else ""
        done, total = view.counts[Status.completed], sum(view.counts.values())
        text = _text(f"{view.id}  ", style="bold")
        text.append(f"{view.team.pipeline}{position} {done}/{total}  {_span(self._now() - self._since)}{cost}")
        return text

    def _table(self, view: SessionView) -> Table:
        table = Table.grid(padding=(0, 1), expand=True)
        table.width = self._console.width - ECHO
        for options in ({"width": 2, "justify": "right"}, {}, {}, {}, {"justify": "right"}):
            table.add_column(no_wrap=True, **options)
        # Only the note gives way in a narrow terminal.
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        wave = 0
        for task in view.tasks:
            style = "yellow" if task.asks_for_more else STYLES[task.effective_status]
            table.add_row(
                str(task.wave) if task.wave != wave else "",
                _text(task.glyph, style),
                _text(task.id, style),
                _text(task.role, "dim"),
                _text(_elapsed(task, self._now()), "dim"),
                _text(task.result.conflict or self._note(task), style if task.status is Status.failed else ""),
            )
            wave = task.wave
        return table

    def _note(self, task: TaskView) -> str:
        result = task.result
        match task.status:
            case Status.in_progress:
                return self._last_line.get(task.id, task.activity)
            case Status.landing:
                return "landing"
            case Status.completed if result.notes.verdict:
                return f"{result.notes.verdict}  {result.findings}"
            case Status.completed:
                return " ".join(result.findings.split())
            case Status.failed | Status.skipped:
                return result.error
            case _:
                return task.title


def _rest(view: SessionView) -> list[Text]:
    """The tasks that there is no room for, by status."""
    counts = ", ".join(f"{view.omitted[status]} {status}" for status in Status if view.omitted.get(status))
    return [_text(f"   and {counts}", "dim")] if counts else []


def _foot(view: SessionView, now: float) -> list[Text]:
    lines = [_text(f"warning: {text}", "yellow") for text in view.warnings[-3:]]
    lines += [_text(_pause(pause, now), "bold yellow") for pause in view.pauses if pause.ends_at > now]
    if view.team.note:
        lines.append(_text(view.team.note, "dim"))
    if spent := view.spending.by_role_and_agent:
        lines.append(_text(f"spent: {spent}", "dim"))
    return lines


def _pause(pause: PauseView, now: float) -> str:
    left = _span(pause.ends_at - now)
    return f"the provider of {', '.join(pause.agents)} is paused for {left}, until {pause.until}: {pause.why}"


def _elapsed(task: TaskView, now: float) -> str:
    if task.started_at is None:
        return ""
    cost = f" ${task.cost_usd:.2f}" if task.cost_usd else ""
    return _span((task.ended_at or now) - task.started_at) + cost


def _span(seconds: float) -> str:
    minutes, rest = divmod(int(max(seconds, 0)), 60)
    return f"{minutes}:{rest:02d}"


def _text(text: str, style: str = "") -> Text:
    """Text without control codes, which an agent may have written."""
    return Text(plain(text), style)
