"""What needs the user, in all sessions; below the list the whole reason, and what can be done about it."""

from collections.abc import Iterator

from rich.text import Text
from textual import events
from textual.widget import Widget

from iterdev.core.views.attention import NeedKind
from iterdev.core.views.keys import Place
from iterdev.surfaces.tui import render
from iterdev.surfaces.tui.lines import Lines, OneLine
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.render import NeedRow
from iterdev.surfaces.tui.screens.view import View
from iterdev.surfaces.tui.source import Frame


class NeedsScreen(View):
    places = (Place.list,)
    DEFAULT_CSS = """
    #reason { height: auto; max-height: 40%; padding: 0 1; background: $surface; }
    """

    def body(self) -> Iterator[Widget]:
        self.needs: Lines[NeedRow] = Lines(render.need_line, key=lambda row: row.need, id="needs")
        self.reason: Lines[Text] = Lines(lambda text, _: text, has_cursor=False, id="reason")
        self.reason.can_focus = False
        yield OneLine(self._title, id="title")
        yield self.needs
        yield self.reason

    def _title(self, _: int) -> Text:
        return line((" Needs you" if self.frame.needs else " Nothing needs you", "muted"))

    def on_mount(self) -> None:
        super().on_mount()
        self.needs.focus()

    def show(self, frame: Frame) -> None:
        self.needs.show(render.need_rows(frame, self.dashboard.now()))
        self.query_one("#title").refresh()
        self._show_reason()

    def _show_reason(self) -> None:
        row, width = self.needs.current, max(self.app.size.width - 3, 20)
        if row is None:
            self.reason.show(())
            return
        commands = [text for one in row.need.commands for text in render.wrapped(one, width, "accent", indent="  ")]
        self.reason.show([*render.wrapped(row.need.text, width), *commands], whole=True)

    def on_lines_moved(self) -> None:
        self._show_reason()

    def on_lines_opened(self) -> None:
        if row := self.needs.current:
            self.dashboard.open_need(row.need)

    def on_key(self, event: events.Key) -> None:
        row = self.needs.current
        if event.key.isdigit() and event.key != "0" and row and row.need.kind is NeedKind.question:
            event.stop()
            event.prevent_default()
            self.dashboard.open_need(row.need, choice=int(event.key))
        else:
            super().on_key(event)
