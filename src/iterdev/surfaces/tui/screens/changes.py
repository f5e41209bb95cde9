"""The changes of the session, of a task or of a fix round: files, and the patch of one with the findings in it."""

from collections.abc import Iterator

from rich.text import Text
from textual import events
from textual.containers import Container
from textual.widget import Widget

from iterdev.app.branches.diff import FileChange
from iterdev.core.errors import IterdevError
from iterdev.core.formatting import counted, shown_name
from iterdev.core.types import TaskId
from iterdev.core.views.keys import Action, Place
from iterdev.core.views.team import FindingView
from iterdev.surfaces.tui import render
from iterdev.surfaces.tui.diffs import DiffRow, RowKind, diff_line, diff_rows
from iterdev.surfaces.tui.lines import Lines, OneLine
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.screens.view import View, begin
from iterdev.surfaces.tui.source import Changed, Frame


class ChangesScreen(View):
    places = (Place.changes,)
    DEFAULT_CSS = """
    #change { layout: vertical; }
    #files { height: auto; max-height: 6; background: $surface; }
    #diff { height: 1fr; }
    #change.wide { layout: horizontal; }
    #change.wide #files { width: 32%; max-width: 44; height: 1fr; max-height: 100%; }
    """

    def __init__(self, task: TaskId | None = None, round_: int | None = None) -> None:
        super().__init__()
        self.task_id, self._round = task, round_
        self._changed: Changed | None = None
        self._path = ""
        self._patch = ""
        self._problem = "reading the change ..."

    def body(self) -> Iterator[Widget]:
        self.files: Lines[FileChange] = Lines(self._file_line, key=lambda file: file.path, id="files")
        self.diff: Lines[DiffRow] = Lines(diff_line, id="diff")
        yield OneLine(self._title, id="title")
        yield Container(self.files, self.diff, id="change")

    def _title(self, _: int) -> Text:
        changed = self._changed
        if changed is None:
            return line((f" {self._problem}", "attention"))
        added, deleted = (
            sum(getattr(file, name) or 0 for file in changed.files) for name in ("additions", "deletions")
        )
        commits = f"{changed.change.base[:7]}..{changed.change.tip[:7]}"
        found = self.frame.findings
        still = sum(one.fixed_in is None for one in found)
        told = f"  {counted(len(found), 'finding')}, {still} open" if found else ""
        return line(
            (f" {changed.what}", "strong"),
            (f"  {commits}  {counted(len(changed.files), 'file')} ", "muted"),
            (f"+{added} ", "done"),
            (f"-{deleted}", "failed"),
            (told, "attention" if still else "done"),
        )

    def _file_line(self, file: FileChange, width: int) -> Text:
        found = self._findings(file.path)
        still = any(one.fixed_in is None for one in found)
        mark = (" !" if still else " ✓" if found else "  ", "attention" if still else "done")
        counts = "binary" if file.additions is None else f"+{file.additions} -{file.deletions}"
        room = max(width - len(counts) - 4, 10)
        name = shown_name(file.path)
        return line(
            mark, (f" {name if len(name) <= room else '…' + name[-room + 1 :]:<{room}}", "text"), (counts, "muted")
        )

    def _findings(self, path: str) -> tuple[FindingView, ...]:
        return tuple(one for one in self.frame.findings if one.file == path)

    def on_resize(self, event: events.Resize) -> None:
        if not self._is_ready:
            return
        self.query_one("#change").set_class(event.size.width >= render.WIDE, "wide")

    def on_mount(self) -> None:
        self.query_one("#change").set_class(self.app.size.width >= render.WIDE, "wide")
        super().on_mount()
        self.diff.focus()
        self._load()

    def show(self, _: Frame) -> None:
        self.query_one("#title").refresh()

    def _load(self) -> None:
        begin(self, self._read_change, replaces=True, group="change")

    async def _read_change(self) -> None:
        try:
            changed = await self.dashboard.read(self.dashboard.source.changed, self.task_id or "", self._round)
        except (IterdevError, OSError) as error:
            if self._changed is None:
                self._problem = str(error)
            self.say(str(error), "attention")
            self._round = None if self._changed is None else self._round_shown
            self.query_one("#title").refresh()
            return
        self._changed, self._round_shown, self._path = changed, self._round, ""
        self.files.show(changed.files, whole=True)
        self.files.move_to(self._first_file(changed))
        self.query_one("#title").refresh()
        await self._read_file()

    _round_shown: int | None = None

    def _first_file(self, changed: Changed) -> int:
        """The first one with findings, as these are what the user has to judge."""
        return next((place for place, file in enumerate(changed.files) if self._findings(file.path)), 0)

    async def _read_file(self) -> None:
        file, changed = self.files.current, self._changed
        if file is None or changed is None or file.path == self._path:
            return
        patch = await self.dashboard.try_read(self.dashboard.source.file_diff, changed.change, file.path)
        if patch is None:
            return
        self._path, self._patch = file.path, patch
        # Beside the scroll bar, which a long patch has.
        width = (self.diff.size.width or self.app.size.width) - 1
        rows = diff_rows(patch, self._findings(file.path), width)
        self.diff.show(rows, whole=True)
        self.diff.move_to(0)

    def on_lines_moved(self) -> None:
        begin(self, self._read_file, replaces=True, group="file")

    def on_lines_opened(self, event: Lines.Opened) -> None:
        (self.diff if event.lines is self.files else self.files).focus()

    def on_key(self, event: events.Key) -> None:
        if event.key in {"left", "right", "tab"}:
            to_files = event.key == "left" or (event.key == "tab" and self.diff.has_focus)
            (self.files if to_files else self.diff).focus()
            event.stop()
            event.prevent_default()
        else:
            super().on_key(event)

    def act_on(self, action: Action) -> None:
        match action:
            case Action.next_finding:
                self._to_finding(1)
            case Action.previous_finding:
                self._to_finding(-1)
            case Action.next_round:
                self._to_round((self._round or 0) + 1)
            case Action.previous_round:
                self._to_round((self._round or 0) - 1)
            case Action.comment:
                self.dashboard.comment(self._place(), self.task_id)
            case _:
                super().act_on(action)

    def _to_round(self, number: int) -> None:
        """Round 0 is the whole session."""
        self.task_id, self._round = None, number if number > 0 else None
        self._load()

    def _to_finding(self, step: int) -> None:
        """The next finding of this file, or the first one of the next file that has any."""
        rows = self.diff.items
        places = [place for place, row in enumerate(rows) if row.kind is RowKind.finding and row.finding]
        ahead = [place for place in places if (place - self.diff.cursor) * step > 0]
        if ahead:
            self.diff.move_to(min(ahead) if step > 0 else max(ahead))
            return
        files = self.files.items
        order = range(self.files.cursor + 1, len(files)) if step > 0 else range(self.files.cursor - 1, -1, -1)
        other = next((place for place in order if self._findings(files[place].path)), None)
        if other is None:
            self.say("no further finding", "muted")
        else:
            self.files.move_to(other)

    def _place(self) -> str:
        """The file and the line under the cursor, as a comment names them."""
        above = self.diff.items[: self.diff.cursor + 1]
        number = next((row.new for row in reversed(above) if row.new is not None), None)
        return f"{self._path}:{number}" if self._path and number else self._path
