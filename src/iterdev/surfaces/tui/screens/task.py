"""One task: what it is, what it waits for, all its attempts, and their results."""

from collections.abc import Iterator

from rich.text import Text
from textual.widget import Widget

from iterdev.core.types import TaskId
from iterdev.core.views.keys import Action, Place
from iterdev.core.views.tasks import TaskView
from iterdev.surfaces.tui import render
from iterdev.surfaces.tui.lines import Lines
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.screens.view import View, begin
from iterdev.surfaces.tui.source import Frame


class TaskScreen(View):
    places = (Place.task,)
    DEFAULT_CSS = "#task { padding: 1 2; }"

    def __init__(self, task: TaskId) -> None:
        super().__init__()
        self.task_id = task
        self._why: list[str] = []

    def body(self) -> Iterator[Widget]:
        self.facts: Lines[Text] = Lines(lambda text, _: text, has_cursor=False, id="task")
        yield self.facts

    def on_mount(self) -> None:
        super().on_mount()
        self.facts.focus()

    @property
    def selected(self) -> TaskView | None:
        view = self.frame.session
        return next((task for task in view.tasks if task.id == self.task_id), None) if view else None

    def show(self, frame: Frame) -> None:
        self._show(frame)
        begin(self, self._read_why, replaces=True)

    def _show(self, frame: Frame) -> None:
        task, width = self.selected, max(self.app.size.width - 6, 20)
        if task is None:
            self.facts.show([line((f"{self.task_id} is not in the table any more", "attention"))])
            return
        lines = list(render.task_lines(frame, task, width, why=self._why))
        lines += [line(), line((f"iterdev rollback {frame.session.id if frame.session else ''} {task.id}", "muted"))]
        self.facts.show(lines)

    async def _read_why(self) -> None:
        why = await self.dashboard.try_read(self.dashboard.source.why, self.task_id)
        if why is not None and why != self._why:
            self._why = why
            self._show(self.frame)

    def act_on(self, action: Action) -> None:
        match action:
            case Action.changes:
                self.dashboard.open_changes(task=self.task_id)
            case Action.output:
                self.dashboard.open_output(self.task_id)
            case _:
                super().act_on(action)
