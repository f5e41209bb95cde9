"""Rows of text: painted when they are seen, and painted again only if they differ from what they were."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

from rich.text import Text
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from iterdev.surfaces.tui.palette import Painter

Item = TypeVar("Item")
Paint = Callable[[Item, int], Text]
"""A row as text that fits into a number of columns."""


class Painted(Protocol):
    """The application, as far as rows need it."""

    painter: Painter


def painter_of(widget: Widget) -> Painter:
    return cast("Painted", widget.app).painter


class OneLine(Widget):
    """A line of the screen, such as the head."""

    DEFAULT_CSS = "OneLine { height: 1; }"

    def __init__(self, paint: Callable[[int], Text], *, id: str | None = None) -> None:  # noqa: A002 - textual's word
        super().__init__(id=id)
        self._paint = paint

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y:
            return Strip.blank(width, self.rich_style)
        return painter_of(self).strip(self._paint(width), width, self.rich_style)


class Lines(ScrollView, Generic[Item], can_focus=True):
    DEFAULT_CSS = """
    Lines { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; background: $background; }
    """
    cursor = reactive(0, repaint=False)

    class Moved(Message):
        """The cursor is in another row."""

    class Opened(Message):
        """The row under the cursor is to be opened."""

        def __init__(self, lines: "Lines[Any]") -> None:
            super().__init__()
            self.lines = lines

        @property
        def control(self) -> "Lines[Any]":
            return self.lines

    def __init__(
        self,
        paint: Paint[Item],
        *,
        key: Callable[[Item], Hashable] | None = None,
        has_cursor: bool = True,
        id: str | None = None,  # noqa: A002 - textual's word
    ) -> None:
        """With a `key`, the cursor stays at its item when rows come and go above it."""
        super().__init__(id=id)
        self._paint, self._key, self._has_cursor = paint, key, has_cursor
        self.items: Sequence[Item] = ()
        self.can_focus = True

    @property
    def current(self) -> Item | None:
        return self.items[self.cursor] if self._has_cursor and self.cursor < len(self.items) else None

    def show(self, items: Sequence[Item], *, whole: bool = False) -> None:
        """Shows these rows; with `whole`, all of them are painted again."""
        before, self.items = self.items, items
        self._keep_cursor(before)
        if whole or len(before) != len(items):
            self._measure()
            self.refresh()
            return
        for place, (old, new) in enumerate(zip(before, items, strict=True)):
            if old != new:
                self.refresh_line(place)

    def _keep_cursor(self, before: Sequence[Item]) -> None:
        if self._key and self.cursor < len(before):
            wanted = self._key(before[self.cursor])
            same = self.cursor < len(self.items) and self._key(self.items[self.cursor]) == wanted
            found = None if same else next((at for at, one in enumerate(self.items) if self._key(one) == wanted), None)
            if found is not None:
                self.cursor = found
        self.cursor = max(0, min(self.cursor, len(self.items) - 1))

    def _measure(self) -> None:
        self.virtual_size = Size(self.size.width, len(self.items))

    def on_resize(self, _: events.Resize) -> None:
        self._measure()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        # Without the scroll bar.
        width, place = self.scrollable_content_region.width, y + self.scroll_offset.y
        base = self.rich_style
        if place >= len(self.items):
            return Strip.blank(width, base)
        text, under_cursor = self._paint(self.items[place], width), self._has_cursor and place == self.cursor
        return painter_of(self).strip(text, width, base, under_cursor=under_cursor)

    def watch_cursor(self, before: int, now: int) -> None:
        if before != now and self.is_mounted:
            for place in (before, now):
                self.refresh_line(place)
            self.reveal()
            self.post_message(self.Moved())

    def reveal(self) -> None:
        """Scrolls to the cursor."""
        top, height = self.scroll_offset.y, max(self.size.height, 1)
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def move_to(self, place: int) -> None:
        """Moves the cursor, or without one the rows."""
        if self._has_cursor:
            self.cursor = max(0, min(place, len(self.items) - 1))
        else:
            self.scroll_to(y=max(0, min(place, self.max_scroll_y)), animate=False)

    @property
    def place(self) -> int:
        return self.cursor if self._has_cursor else round(self.scroll_offset.y)

    def to_end(self) -> None:
        self.scroll_to(y=max(len(self.items) - self.size.height, 0), animate=False)

    def on_key(self, event: events.Key) -> None:
        if self.app.screen is not self.screen:
            # Another screen was opened since; the screen of these rows passes it on.
            return
        page = max(self.size.height - 1, 1)
        last = len(self.items) - 1
        places = {
            "down": self.place + 1,
            "j": self.place + 1,
            "up": self.place - 1,
            "k": self.place - 1,
            "pagedown": self.place + page,
            "space": self.place + page,
            "pageup": self.place - page,
            "home": 0,
            "end": last,
            "G": last,
        }
        if event.key in places:
            self.move_to(places[event.key])
        elif event.key == "enter" and self._has_cursor:
            self.post_message(self.Opened(self))
        else:
            return
        event.stop()
        event.prevent_default()

    def on_click(self, event: events.Click) -> None:
        if self._has_cursor and (place := event.y + self.scroll_offset.y) < len(self.items):
            again, self.cursor = place == self.cursor, place
            if again:
                self.post_message(self.Opened(self))
