"""The session: its tasks, and where there is room the task under the cursor with what its agent says."""

from collections.abc import Iterator

from rich.text import Text
from textual import events
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input

from iterdev.core.types import Status
from iterdev.core.views.keys import Action, Place
from iterdev.core.views.tasks import TaskView
from iterdev.surfaces.tui import render
from iterdev.surfaces.tui.lines import Lines, OneLine
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.render import TaskRow
from iterdev.surfaces.tui.screens.view import View, begin
from iterdev.surfaces.tui.source import Frame, Output

RIGHT = 0.44
"""The part of the screen that the right half takes."""
OUTPUT_INTERVAL = 0.5
"""Seconds between two reads of the output of the selected task."""
KEPT = 400
"""Lines of output that are kept for the right half."""


class MainScreen(View):
    places = (Place.list,)
    prompt = "words that the tasks have: failed, wave-3 ..."
    DEFAULT_CSS = """
    #columns { background: $background; }
    #left { width: 1fr; }
    #tasks { height: 1fr; }
    #right { width: 44%; border-left: vkey $panel; padding: 0 0 0 1; display: none; }
    #right Lines { background: $background; }
    #facts { height: auto; max-height: 55%; }
    #output { height: 1fr; }
    #columns.wide #right { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.words = ""
        self._output: Output | None = None
        self._shown: tuple[str, int] | None = None
        """The attempt whose output is shown."""
        self._heard: list[str] = []
        self._is_wide = self._is_reading = False

    @property
    def is_main(self) -> bool:
        return True

    def body(self) -> Iterator[Widget]:
        self.tasks: Lines[TaskRow] = Lines(render.task_line, key=lambda row: row.task.id, id="tasks")
        self.facts: Lines[Text] = Lines(lambda text, _: text, has_cursor=False, id="facts")
        self.output: Lines[Text] = Lines(lambda text, _: text, has_cursor=False, id="output")
        self.facts.can_focus = self.output.can_focus = False
        left = Vertical(OneLine(self._table_head, id="table-head"), self.tasks, id="left")
        right = Vertical(self.facts, self.output, id="right")
        yield Horizontal(left, right, id="columns")
        yield OneLine(lambda width: render.waves_line(self.frame.session, width), id="waves")

    def _table_head(self, _: int) -> Text:
        rows = self.tasks.items
        if not rows:
            return line((f" {self._empty()}", "muted"))
        # As wide as the rows, which may have a scroll bar beside them.
        return render.task_head(self.tasks.scrollable_content_region.width, rows[0].id_width)

    def _empty(self) -> str:
        if self.words:
            return f'No task has "{self.words}"; Esc shows all'
        if self.frame.session is None:
            return f'No sessions yet in {self.frame.repository}. Start one with: iterdev run --detach "Add a greeting"'
        return "No tasks yet"

    @property
    def selected(self) -> TaskView | None:
        return self.tasks.current.task if self.tasks.current else None

    def on_resize(self, event: events.Resize) -> None:
        if not self._is_ready:
            return
        self._set_width(event.size.width)
        self.query_one("#waves").display = event.size.height >= 12
        self.update()

    def _set_width(self, width: int) -> None:
        self._is_wide = width >= render.WIDE
        self.query_one("#columns").set_class(self._is_wide, "wide")

    @property
    def _right_width(self) -> int:
        """Columns for text in the right half, beside its border and the scroll bar."""
        return max(int(self.app.size.width * RIGHT) - 4, 20)

    def on_mount(self) -> None:
        self._set_width(self.app.size.width)
        super().on_mount()
        self.tasks.focus()
        self._to_running()
        self.set_interval(OUTPUT_INTERVAL, self._follow_output)

    def _to_running(self) -> None:
        """The cursor begins at what runs."""
        rows = self.tasks.items
        running = (place for place, row in enumerate(rows) if row.task.effective_status is Status.in_progress)
        self.tasks.move_to(next(running, 0))
        # There is no size before the first picture.
        self.call_after_refresh(self.tasks.reveal)

    def show(self, frame: Frame) -> None:
        widths = {row.id_width for row in self.tasks.items}
        rows = render.task_rows(frame, self.dashboard.now(), self.words)
        self.tasks.show(rows, whole={row.id_width for row in rows} != widths)
        for name in ("#table-head", "#waves"):
            self.query_one(name).refresh()
        self._show_task()

    def _follow_output(self) -> None:
        if self._is_wide and self.is_current:
            self._look_at_output()

    def _look_at_output(self) -> None:
        # Not begun twice: what is read is not read again.
        if not self._is_reading:
            self._is_reading = True
            begin(self, self._read_output, group="output")

    def _show_task(self) -> None:
        task = self.selected
        if task is None or not self._is_wide:
            self.facts.show(())
            return
        width = self._right_width
        self.facts.show(list(render.task_lines(self.frame, task, width)))
        attempts = self.frame.history.of_task(task.id)
        shown = (task.id, attempts[-1].number) if attempts else None
        if shown != self._shown:
            self._shown, self._output, self._heard = shown, None, []
            self.output.show(())
        self._look_at_output()

    async def _read_output(self) -> None:
        shown = self._shown
        try:
            await self._add_output()
        finally:
            self._is_reading = False
        if shown != self._shown:
            self._look_at_output()

    async def _add_output(self) -> None:
        """Adds what the agent of the selected task has said since."""
        shown, task = self._shown, self.selected
        if shown is None or task is None or not self._is_wide:
            return
        if self._output is None:
            opened = await self.dashboard.try_read(self.dashboard.source.output, task.id, shown[1])
            if shown != self._shown:
                return
            self._output = opened
        news = await self.dashboard.try_read(self._output.new_lines) if self._output else None
        if news is not None and shown == self._shown and (news or not self._heard):
            self._heard = [*self._heard, *news][-KEPT:]
            width = self._right_width
            said = [text for heard in self._heard for text in render.wrapped(heard, width)]
            self.output.show([render.rule("output", width), *said] if said else [])
            self.output.to_end()

    def on_lines_moved(self) -> None:
        self._show_task()

    def on_lines_opened(self) -> None:
        if task := self.selected:
            self.dashboard.open_task(task.id)

    def on_input_changed(self, event: Input.Changed) -> None:
        self.words = event.value
        self.update()

    def act_on(self, action: Action) -> None:
        if action is Action.back and self.words:
            self.close_prompt()
        elif action is not Action.back:
            super().act_on(action)
