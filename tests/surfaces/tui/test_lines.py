"""Rows are painted when they are seen, and again only if they changed."""

from collections.abc import Iterator

import anyio
from rich.text import Text
from textual.app import App, ComposeResult

from iterdev.surfaces.tui.lines import Lines
from iterdev.surfaces.tui.palette import DARK, Painter, line


class OneList(App[None]):
    """Nothing but rows, and what was painted of them."""

    def __init__(self) -> None:
        super().__init__()
        self.painter = Painter(DARK)
        self.painted: list[str] = []

    def compose(self) -> ComposeResult:
        self.lines: Lines[str] = Lines(self._paint, key=lambda text: text[:4])
        yield self.lines

    def _paint(self, text: str, _: int) -> Text:
        self.painted.append(text)
        return line(text)

    def news(self) -> Iterator[str]:
        """What was painted since the last call."""
        told, self.painted = self.painted, []
        return iter(told)


def test_of_a_thousand_rows_those_are_painted_that_are_seen_and_later_the_one_that_changed() -> None:
    rows = [f"{number:04d}" for number in range(1000)]
    first, second = list[str](), list[str]()

    async def run() -> None:
        one = OneList()
        async with one.run_test(size=(40, 10)) as pilot:
            one.lines.show(rows)
            await pilot.pause()
            first.extend(one.news())
            one.lines.show([*rows[:3], "0003 changed", *rows[4:]])
            await pilot.pause()
            second.extend(one.news())

    anyio.run(run)

    assert set(first) == set(rows[:10])
    assert second == ["0003 changed"]


def test_the_cursor_stays_in_view_and_at_its_row() -> None:
    rows, seen = [f"{number:04d}" for number in range(100)], list[object]()

    async def run() -> None:
        one = OneList()
        async with one.run_test(size=(40, 10)) as pilot:
            one.lines.show(rows)
            one.lines.focus()
            await pilot.press("end", "up", "pageup")
            await pilot.pause()
            seen.extend([one.lines.current, round(one.lines.scroll_offset.y)])
            one.lines.show(["new", *rows])
            await pilot.pause()
            seen.extend([one.lines.current, one.lines.cursor])

    anyio.run(run)

    assert seen == ["0089", 89, "0089", 90]
