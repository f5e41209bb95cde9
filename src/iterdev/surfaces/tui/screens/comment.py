"""A comment on the work, which becomes feedback for the team."""

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from iterdev.app.live.acts import Comment, command
from iterdev.core.types import Severity, TaskId
from iterdev.surfaces.tui import render
from iterdev.surfaces.tui.lines import Lines
from iterdev.surfaces.tui.palette import OF_SEVERITY, line
from iterdev.surfaces.tui.screens.view import FieldDialog

SEVERITIES = (Severity.medium, Severity.high, Severity.critical, Severity.low)


class CommentScreen(FieldDialog):
    def __init__(self, place: str, task: TaskId | None) -> None:
        super().__init__()
        self._place, self._task_id = place, task
        self._severity = SEVERITIES[0]

    def compose(self) -> ComposeResult:
        self.lines: Lines[Text] = Lines(lambda text, _: text, has_cursor=False)
        self.lines.can_focus = False
        box = Vertical(Input(placeholder="what you think of it", compact=True), self.lines, id="box")
        box.border_title = f"comment on {self._task_id or self._place or 'the work'}"
        box.border_subtitle = "Enter send · Tab severity · Esc cancel"
        yield box

    def on_mount(self) -> None:
        self._show()

    def _comment(self) -> Comment | None:
        text, session = self.query_one(Input).value.strip(), self.frame.session
        about = f"{self._place}: " if self._place else ""
        if not text or session is None:
            return None
        return Comment(session=session.id, text=f"{about}{text}", task=self._task_id, severity=self._severity)

    def _show(self) -> None:
        comment = self._comment()
        reach = "reaches every later task" if self._severity in {Severity.high, Severity.critical} else "is kept"
        rows = [line((f"{self._severity}", OF_SEVERITY[self._severity]), (f"  {reach}", "muted"))]
        shown = render.wrapped(command(comment), self.room, "accent") if comment else [line()]
        self.lines.show([*rows, *shown], whole=True)

    def on_input_changed(self) -> None:
        self._show()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if comment := self._comment():
            self.dismiss()
            self.dashboard.perform(comment)

    def on_key(self, event: events.Key) -> None:
        if event.key == "tab":
            event.stop()
            event.prevent_default()
            self._severity = SEVERITIES[(SEVERITIES.index(self._severity) + 1) % len(SEVERITIES)]
            self._show()
