"""Colours of the dashboard, by what they mean. Nothing is told by colour alone: a glyph or a word says the same."""

from collections.abc import Mapping

from msgspec import Struct
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from rich.theme import Theme as RichTheme
from textual.strip import Strip
from textual.theme import Theme

from iterdev.core.formatting import plain
from iterdev.core.types import Severity, Status
from iterdev.core.views.attention import NeedKind
from iterdev.core.views.history import AttemptOutcome
from iterdev.core.views.tasks import TaskView

LIGHT_BACKGROUNDS = {"7", "15"}
"""What the last part of COLORFGBG is in a terminal with a light background."""


class Palette(Struct, frozen=True, kw_only=True):
    theme: Theme
    styles: Mapping[str, str]
    cursor: str
    """The background of the row that the cursor is in."""


DARK = Palette(
    theme=Theme(
        name="iterdev-dark",
        primary="#58a6ff",
        secondary="#a371f7",
        accent="#58a6ff",
        warning="#d29922",
        error="#f85149",
        success="#3fb950",
        foreground="#c9d1d9",
        background="#0d1117",
        surface="#161b22",
        panel="#21262d",
    ),
    styles={
        "text": "#c9d1d9",
        "strong": "bold #f0f6fc",
        "muted": "#8b949e",
        "done": "#3fb950",
        "running": "bold #58a6ff",
        "failed": "bold #f85149",
        "attention": "bold #e3b341",
        "accent": "#a371f7",
        "key": "bold #79c0ff",
        "rule": "#484f58",
        "added": "#aff5b4 on #12261e",
        "removed": "#ffdcd7 on #301418",
        "found": "bold #0d1117 on #e3b341",
    },
    cursor="#1f3350",
)
LIGHT = Palette(
    theme=Theme(
        name="iterdev-light",
        primary="#0969da",
        secondary="#8250df",
        accent="#0969da",
        warning="#9a6700",
        error="#cf222e",
        success="#1a7f37",
        foreground="#1f2328",
        background="#ffffff",
        surface="#f6f8fa",
        panel="#eaeef2",
        dark=False,
    ),
    styles={
        "text": "#1f2328",
        "strong": "bold #1f2328",
        "muted": "#59636e",
        "done": "#1a7f37",
        "running": "bold #0969da",
        "failed": "bold #cf222e",
        "attention": "bold #9a6700",
        "accent": "#8250df",
        "key": "bold #0969da",
        "rule": "#818b98",
        "added": "#116329 on #dafbe1",
        "removed": "#82071e on #ffebe9",
        "found": "bold #ffffff on #9a6700",
    },
    cursor="#ddf4ff",
)
OF_STATUS = {
    Status.pending: "muted",
    Status.in_progress: "running",
    Status.landing: "running",
    Status.completed: "done",
    Status.failed: "failed",
    Status.skipped: "attention",
}
OF_OUTCOME = {
    AttemptOutcome.running: "running",
    AttemptOutcome.done: "done",
    AttemptOutcome.reported: "done",
    AttemptOutcome.failed: "failed",
    AttemptOutcome.unmet: "failed",
    AttemptOutcome.limited: "attention",
    AttemptOutcome.interrupted: "attention",
}
OF_NEED = {
    NeedKind.question: "attention",
    NeedKind.failed: "failed",
    NeedKind.conflict: "failed",
    NeedKind.ready: "done",
    NeedKind.paused: "muted",
}
OF_SEVERITY = {
    Severity.critical: "failed",
    Severity.high: "failed",
    Severity.medium: "attention",
    Severity.low: "muted",
}


def palette_for(environment: Mapping[str, str]) -> Palette:
    """The one that suits the terminal's background, as far as the terminal tells it."""
    return LIGHT if environment.get("COLORFGBG", "").rpartition(";")[2] in LIGHT_BACKGROUNDS else DARK


def style_of(task: TaskView) -> str:
    return "attention" if task.asks_for_more else OF_STATUS[task.effective_status]


def line(*parts: str | tuple[str, str]) -> Text:
    """A line of parts, each with the name of its style; without the control codes that text of others may have."""
    text = Text(no_wrap=True, end="")
    for part in parts:
        words, style = (part, "text") if isinstance(part, str) else part
        text.append(plain(words).replace("\n", " ").replace("\t", "    "), style)
    return text


class Painter:
    """Makes lines of the screen from text whose styles are named."""

    def __init__(self, palette: Palette) -> None:
        self.palette = palette
        theme = RichTheme(dict(palette.styles), inherit=False)
        self._console = Console(theme=theme, color_system="truecolor", highlight=False)
        self._cursor = Style(bgcolor=palette.cursor)

    def strip(self, text: Text, width: int, base: Style, *, under_cursor: bool = False) -> Strip:
        """One line, cut or filled to its width."""
        shown = text.copy()
        shown.truncate(width, overflow="ellipsis", pad=True)
        behind = base + self._cursor if under_cursor else base
        segments = (segment for segment in shown.render(self._console) if segment.text)
        # The base is behind the styles of the parts, which may have a background of their own.
        return Strip([Segment(one.text, behind + one.style if one.style else behind) for one in segments], width)
