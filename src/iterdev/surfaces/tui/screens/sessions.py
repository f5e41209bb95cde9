"""All sessions of the repository, the newest first."""

from collections.abc import Iterator

from textual.widget import Widget
from textual.widgets import Input

from iterdev.core.views.keys import Place
from iterdev.surfaces.tui import render
from iterdev.surfaces.tui.lines import Lines, OneLine
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.render import SessionRow
from iterdev.surfaces.tui.screens.view import View
from iterdev.surfaces.tui.source import Frame


class SessionsScreen(View):
    places = (Place.list,)
    prompt = "words of the session, or where it stands: running, waiting ..."

    def __init__(self) -> None:
        super().__init__()
        self.words = ""

    def body(self) -> Iterator[Widget]:
        self.sessions: Lines[SessionRow] = Lines(
            render.session_row_line, key=lambda row: row.line.summary.id, id="sessions"
        )
        yield OneLine(lambda _: line((f"   {'state':<24} {'tasks':>6}    session", "muted")))
        yield self.sessions

    def on_mount(self) -> None:
        super().on_mount()
        self.sessions.focus()

    def show(self, frame: Frame) -> None:
        watched = frame.session.id if frame.session else None
        rows = [SessionRow(line=one, watched=one.summary.id == watched) for one in reversed(frame.sessions)]
        self.sessions.show([row for row in rows if self._fits(row)])

    def _fits(self, row: SessionRow) -> bool:
        one = row.line.summary
        text = f"{one.id} {one.requirement} {row.line.standing}".casefold()
        return all(word in text for word in self.words.casefold().split())

    def on_input_changed(self, event: Input.Changed) -> None:
        self.words = event.value
        self.update()

    def on_lines_opened(self) -> None:
        if row := self.sessions.current:
            self.dashboard.select(row.line.summary.id)
