"""The command line, below a log of what was done and the commands that do the same in a shell."""

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.suggester import SuggestFromList
from textual.widgets import Input

from iterdev.core.errors import UserError
from iterdev.surfaces.tui.command_line import COMMANDS, parse
from iterdev.surfaces.tui.lines import Lines
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.screens.view import FieldDialog

HINT = "accept, retry, rollback TASK, comment TEXT, diff TASK, output TASK ..."


class CommandScreen(FieldDialog):
    DEFAULT_CSS = "CommandScreen { align: center bottom; }"

    def __init__(self, typed: str = "") -> None:
        super().__init__()
        self._typed = typed

    def compose(self) -> ComposeResult:
        self.log_lines: Lines[Text] = Lines(lambda text, _: text, has_cursor=False)
        self.log_lines.can_focus = False
        typed = Input(
            self._typed, placeholder=HINT, suggester=SuggestFromList(COMMANDS), select_on_focus=False, compact=True
        )
        box = Vertical(self.log_lines, typed, id="box")
        box.border_title, box.border_subtitle = "command", "Enter run · → complete · Esc close"
        yield box

    def on_mount(self) -> None:
        self._show()

    def _show(self, *more: Text) -> None:
        log = [part for entry in self.dashboard.log_entries[-8:] for part in entry]
        nothing = [] if log else [line(("Nothing was done yet; what keys and commands do is listed here", "muted"))]
        self.log_lines.show([*nothing, *log, *more], whole=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        session = self.frame.session
        try:
            typed = parse(event.value, session.id if session else None)
        except UserError as error:
            self._show(line((error.message, "failed")), line((f"hint: {error.hint}", "muted")))
            return
        self.dismiss()
        self.dashboard.run_typed(typed)
