"""The live output of an agent, with a search over all of it that is kept."""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from rich.text import Text
from textual.widget import Widget
from textual.widgets import Input

from iterdev.core.formatting import plain
from iterdev.core.types import Status, TaskId
from iterdev.core.views.keys import Action, Place
from iterdev.surfaces.tui.lines import Lines, OneLine
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.screens.view import View, begin
from iterdev.surfaces.tui.source import Frame, Output

INTERVAL = 0.2
"""Seconds between two reads of the output."""


class Said(Struct, frozen=True):
    text: str
    words: str
    """What is searched for."""


def said_line(said: Said, _: int) -> Text:
    text = line(f" {said.text}")
    if said.words:
        text.highlight_words([said.words], "found", case_sensitive=False)
    return text


class OutputScreen(View):
    places = (Place.output,)
    prompt = "search"

    def __init__(self, task: TaskId) -> None:
        super().__init__()
        self.task_id = task
        self._opened: tuple[TaskId, int] | None = None
        self._output: Output | None = None
        self._heard: list[str] = []
        self._follows, self._is_reading = True, False
        self._words = ""
        self._match = -1

    def body(self) -> Iterator[Widget]:
        self.said: Lines[Said] = Lines(said_line, has_cursor=False, id="said")
        yield OneLine(self._title, id="title")
        yield self.said

    def _title(self, _: int) -> Text:
        attempts = self.frame.history.of_task(self.task_id)
        last = attempts[-1] if attempts else None
        facts = f"  attempt {last.number}  {last.agent}  {last.outcome}" if last else "  has not been started"
        following = "  following" if self._follows else ""
        found = self.matches
        match = f'  "{self._words}": {self._match + 1} of {len(found)}' if self._words and found else ""
        nothing = f'  "{self._words}" is not in it' if self._words and not found else ""
        return line(
            (f" {self.task_id}", "strong"), (facts, "muted"), (following, "done"), (match or nothing, "attention")
        )

    def on_mount(self) -> None:
        super().on_mount()
        self.said.focus()
        self.set_interval(INTERVAL, self._look)

    def show(self, _: Frame) -> None:
        self.query_one("#title").refresh()
        self._look()

    def _look(self) -> None:
        # Not begun twice: what is read is not read again.
        if not self._is_reading:
            self._is_reading = True
            begin(self, self._read)

    async def _read(self) -> None:
        try:
            await self._add_output()
        finally:
            self._is_reading = False

    async def _add_output(self) -> None:
        attempts = self.frame.history.of_task(self.task_id)
        wanted = (self.task_id, attempts[-1].number) if attempts else None
        if wanted != self._opened or (wanted and self._output is None):
            self._opened, self._output, self._heard = wanted, None, []
            if wanted:
                self._output = await self.dashboard.try_read(self.dashboard.source.output, *wanted)
        news = (await self.dashboard.try_read(self._output.new_lines) if self._output else None) or []
        if wanted == self._opened and (news or not self.said.items):
            self._heard += map(plain, news)
            self._show_lines()

    def _show_lines(self) -> None:
        self.said.show([Said(text, self._words) for text in self._heard])
        if self._follows:
            self.said.to_end()
        self.query_one("#title").refresh()

    @property
    def matches(self) -> Sequence[int]:
        words = self._words.casefold()
        return [place for place, text in enumerate(self._heard) if words in text.casefold()] if words else []

    def on_input_changed(self, event: Input.Changed) -> None:
        self._words, self._match = event.value, -1
        self._show_lines()
        self._to_match(1)

    def _to_match(self, step: int) -> None:
        if found := self.matches:
            self._follows, self._match = False, (self._match + step) % len(found)
            self.said.move_to(max(found[self._match] - self.said.size.height // 2, 0))
        self.query_one("#title").refresh()

    def act_on(self, action: Action) -> None:
        match action:
            case Action.follow:
                self._follows = not self._follows
                self._show_lines()
            case Action.next_match:
                self._to_match(1)
            case Action.previous_match:
                self._to_match(-1)
            case Action.next_agent:
                self._to_next_agent()
            case Action.changes:
                self.dashboard.open_changes(task=self.task_id)
            case _:
                super().act_on(action)

    def _to_next_agent(self) -> None:
        tasks = self.frame.session.tasks if self.frame.session else ()
        running = [task.id for task in tasks if task.effective_status is Status.in_progress]
        others = running or [task.id for task in tasks if self.frame.history.of_task(task.id)]
        if others:
            place = others.index(self.task_id) if self.task_id in others else -1
            self.task_id = others[(place + 1) % len(others)]
            self._words, self._match = "", -1
            self.said.show(())
            self._look()
