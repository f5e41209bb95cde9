"""The time line: a row for each task, a bar for each attempt."""

from collections.abc import Iterator

from rich.text import Text
from textual.widget import Widget

from iterdev.core.types import TaskId
from iterdev.core.views.history import AttemptOutcome
from iterdev.core.views.keys import Place
from iterdev.core.views.timeline import attempt_text, timeline
from iterdev.surfaces.tui import render
from iterdev.surfaces.tui.lines import Lines, OneLine
from iterdev.surfaces.tui.palette import OF_OUTCOME, line
from iterdev.surfaces.tui.render import ChartRow
from iterdev.surfaces.tui.screens.view import View
from iterdev.surfaces.tui.source import Frame

LEGEND = (AttemptOutcome.done, AttemptOutcome.failed, AttemptOutcome.limited, AttemptOutcome.running)


class TimelineScreen(View):
    places = (Place.list,)
    DEFAULT_CSS = "#attempts { height: auto; max-height: 30%; background: $surface; padding: 0 1; }"

    def body(self) -> Iterator[Widget]:
        self.chart: Lines[ChartRow] = Lines(render.chart_line, key=lambda row: row.label, id="chart")
        self.attempts: Lines[Text] = Lines(lambda text, _: text, has_cursor=False, id="attempts")
        self.attempts.can_focus = False
        yield OneLine(lambda _: self._legend(), id="legend")
        yield self.chart
        yield self.attempts

    def _legend(self) -> Text:
        if not self.frame.history.attempts:
            return line((" Nothing has run yet", "muted"))
        parts = ((f" {render.PATTERNS[OF_OUTCOME[one]]} {one} ", OF_OUTCOME[one]) for one in LEGEND)
        return line(*parts, (" ▒ rolled back  // nothing ran", "muted"))

    def on_mount(self) -> None:
        super().on_mount()
        self.chart.focus()
        self.chart.move_to(1)

    def show(self, frame: Frame) -> None:
        over = frame.session is None or not frame.session.running
        last = max((one.ended_at or one.started_at for one in frame.history.attempts), default=0.0)
        drawn = timeline(frame.history, last if over else self.dashboard.now())
        self.chart.show(render.chart_rows(drawn) if drawn.rows else [])
        self.query_one("#legend").refresh()
        self._show_attempts()

    def _show_attempts(self) -> None:
        row = self.chart.current
        attempts = [bar.attempt for bar in row.bars] if row else []
        self.attempts.show([line((attempt_text(one), OF_OUTCOME[one.outcome])) for one in attempts], whole=True)

    def on_lines_moved(self) -> None:
        self._show_attempts()

    def on_lines_opened(self) -> None:
        if (row := self.chart.current) and row.label:
            self.dashboard.open_task(TaskId(row.label))
