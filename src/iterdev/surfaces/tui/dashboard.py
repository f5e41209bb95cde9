"""The dashboard: follows a session, shows it, and does what the user wants with it. It never drives a session."""

import asyncio
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from iterdev.app.live.acts import Act, AnyPreview, command
from iterdev.core.errors import IterdevError, UserError
from iterdev.core.types import SessionId, Status, TaskId
from iterdev.core.views.attention import Need, NeedKind
from iterdev.core.views.keys import Action
from iterdev.surfaces.tui.command_line import Go, Typed
from iterdev.surfaces.tui.palette import DARK, Painter, Palette, line
from iterdev.surfaces.tui.screens.changes import ChangesScreen
from iterdev.surfaces.tui.screens.command import CommandScreen
from iterdev.surfaces.tui.screens.comment import CommentScreen
from iterdev.surfaces.tui.screens.keys import KeysScreen
from iterdev.surfaces.tui.screens.main import MainScreen
from iterdev.surfaces.tui.screens.needs import NeedsScreen
from iterdev.surfaces.tui.screens.output import OutputScreen
from iterdev.surfaces.tui.screens.preview import PreviewScreen
from iterdev.surfaces.tui.screens.question import QuestionScreen
from iterdev.surfaces.tui.screens.sessions import SessionsScreen
from iterdev.surfaces.tui.screens.task import TaskScreen
from iterdev.surfaces.tui.screens.timeline import TimelineScreen
from iterdev.surfaces.tui.screens.view import Dialog, View, begin
from iterdev.surfaces.tui.source import Frame, PlanEdit, Source

INTERVAL = 0.1
"""Seconds between two checks of the journal."""
MOVED_ON = "The session has moved on; this is what would be done now."

T = TypeVar("T")


class Dashboard(App[bool]):
    TITLE = "iterdev watch"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", priority=True)]

    def __init__(self, source: Source, *, now: Callable[[], float], palette: Palette = DARK) -> None:
        super().__init__()
        self.source, self.now = source, now
        self.painter = Painter(palette)
        self.register_theme(palette.theme)
        self.theme = palette.theme.name
        self.frame = Frame(repository="")
        self.log_entries: list[tuple[Text, ...]] = []
        """What was done, and the commands that would have done the same."""
        # The source is no place for two threads at once; acts have a connection of their own.
        self._reader, self._actor = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    async def on_mount(self) -> None:
        frame: Frame | None = await self.read(self.source.look)
        self.frame = frame if frame is not None else self.frame
        await self.push_screen(MainScreen())
        begin(self, self._follow, group="follow")
        self.set_interval(1, self._tick)

    def _tick(self) -> None:
        """The times of running tasks advance even if nothing happens."""
        if self.frame.session and self.frame.session.running:
            self._update()

    def _update(self) -> None:
        for screen in list(self.screen_stack):
            if isinstance(screen, View | Dialog) and screen.is_mounted:
                screen.update()

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            await self.look()

    async def look(self) -> None:
        """Looks once, and shows what has changed."""
        try:
            frame = await self.read(self.source.look)
        except (IterdevError, OSError) as error:
            self.say(f"{_told(error)}; what is shown is as of entry {self._seq()}", "failed")
            return
        if frame:
            self.frame = frame
            self._update()

    def _seq(self) -> int:
        return self.frame.session.seq if self.frame.session else 0

    async def read(self, function: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._reader, partial(function, *args))

    async def try_read(self, function: Callable[..., T], *args: object) -> T | None:
        """The same, for what may fail: the error is told, and there is no value."""
        try:
            return await self.read(function, *args)
        except (IterdevError, OSError) as error:
            self.say(_told(error), "failed")
            return None

    def close(self) -> None:
        for executor in (self._reader, self._actor):
            executor.shutdown(wait=True, cancel_futures=True)

    def say(self, text: str, style: str = "text") -> None:
        views = [screen for screen in self.screen_stack if isinstance(screen, View) and screen.is_mounted]
        if views:
            views[-1].say(text, style)

    @property
    def _top(self) -> View | None:
        views = [screen for screen in self.screen_stack if isinstance(screen, View)]
        return views[-1] if views else None

    def open(self, screen: Screen[None]) -> None:
        """Opens a screen; one of the same kind, and what is above it, is closed first."""
        stack = self.screen_stack
        place = next((at for at, one in enumerate(stack) if type(one) is type(screen)), len(stack))
        for _ in stack[place:]:
            self.pop_screen()
        self.push_screen(screen)

    def act_on(self, action: Action) -> None:
        match action:
            case Action.needs:
                self.open(NeedsScreen())
            case Action.sessions:
                self.open(SessionsScreen())
            case Action.session:
                self._to_main()
            case Action.timeline:
                self.open(TimelineScreen())
            case Action.changes:
                self.open_changes(task=None)
            case Action.output:
                self.open_output(self._selected())
            case Action.answer:
                self.open_question()
            case Action.comment:
                self.comment("", self._selected())
            case Action.command:
                self.push_screen(CommandScreen())
            case Action.keys:
                self.push_screen(KeysScreen())
            case Action.back if len(self.screen_stack) > 2:
                self.pop_screen()
            case Action.quit:
                self.exit(True)
            case _:
                pass

    def act_below(self, action: Action) -> None:
        """Does what a key would have done in the screen below a dialog."""
        if self._top:
            self._top.act_on(action)

    def _to_main(self) -> None:
        while len(self.screen_stack) > 2:
            self.pop_screen()

    def _selected(self) -> TaskId | None:
        """The task that the screen is about."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, MainScreen | TaskScreen):
                return screen.selected.id if screen.selected else None
        return None

    def open_task(self, task: TaskId) -> None:
        self.open(TaskScreen(task))

    def open_changes(self, *, task: TaskId | None = None, round_: int | None = None) -> None:
        self.open(ChangesScreen(task, round_))

    def open_output(self, task: TaskId | None) -> None:
        """Of the task, or else of one that runs."""
        tasks = self.frame.session.tasks if self.frame.session else ()
        started = [one for one in tasks if self.frame.history.of_task(one.id)]
        running = [one for one in started if one.effective_status is Status.in_progress]
        if task and any(one.id == task for one in started):
            self.open(OutputScreen(task))
        elif running or started:
            self.open(OutputScreen((running or started[-1:])[0].id))
        else:
            self.say("Nothing has run yet", "attention")

    def open_question(self, gate: str = "", choice: int | None = None) -> None:
        gates = self.frame.session.gates if self.frame.session else ()
        found = next((one for one in gates if gate in {"", one.id}), None)
        if found:
            self.push_screen(QuestionScreen(found, choice))
        else:
            self.say("No question is open", "attention")

    def open_need(self, need: Need, choice: int | None = None) -> None:
        begin(self, partial(self._open_need, need, choice), group="need")

    async def _open_need(self, need: Need, choice: int | None) -> None:
        """What shows most about a need: the question, the changes, the task, or the session."""
        if self.frame.session is None or self.frame.session.id != need.session:
            await self._select(need.session)
        view = self.frame.session
        match need.kind:
            case NeedKind.question:
                about = [gate.id for gate in view.gates if gate.question == need.text] if view else []
                self.open_question(about[0] if about else "", choice)
            case NeedKind.ready:
                self.open_changes()
            case _ if view and any(task.id == need.about for task in view.tasks):
                self.open_task(TaskId(need.about))
            case _:
                self._to_main()

    def select(self, session: SessionId) -> None:
        begin(self, partial(self._select, session), group="select")

    async def _select(self, session: SessionId) -> None:
        await self.try_read(self.source.select, session)
        await self.look()
        self._to_main()

    def comment(self, place: str, task: TaskId | None) -> None:
        self.push_screen(CommentScreen(place, task))

    def type_command(self, name: str) -> None:
        self.push_screen(CommandScreen(f"{name} "))

    def run_typed(self, typed: Typed) -> None:
        if not isinstance(typed, Go):
            self.perform(typed)
            return
        match typed:
            case Go(Action.changes, about) if about:
                number = int(about) if about.isdigit() else None
                self.open_changes(task=None if number is not None else TaskId(about), round_=number)
            case Go(Action.output, about) if about:
                self.open_output(TaskId(about))
            case Go(Action.filter, about):
                self._to_main()
                main = self._top
                if isinstance(main, MainScreen):
                    main.words = about
                    main.update()
            case Go(action):
                self.act_on(action)

    def perform(self, act: Act, seen: AnyPreview | None = None) -> None:
        """Does it, or shows first what it would do. What was seen is shown again if the session has moved on since."""
        begin(self, partial(self._perform, act, seen), group="perform")

    async def _perform(self, act: Act, seen: AnyPreview | None) -> None:
        try:
            preview = await self.read(self.source.preview, act)
            if preview and (seen is None or preview.seq != seen.seq):
                self.push_screen(PreviewScreen(act, preview, MOVED_ON if seen else ""))
                return
            self.say(f"{command(act)} ...", "muted")
            done = await asyncio.get_running_loop().run_in_executor(self._actor, self.source.perform, act)
        except (IterdevError, OSError) as error:
            self._tell(_told(error), "failed", command(act))
            return
        self._tell(done.text, "done", *done.commands)
        await self.look()

    def _tell(self, text: str, style: str, *commands: str) -> None:
        self.say(text, style)
        shown = (line(("$ ", "muted"), (one, "accent")) for one in commands)
        self.log_entries.append((*shown, line((f"  {text}", style))))

    def edit_plan(self) -> None:
        begin(self, self._edit_plan, group="edit")

    async def _edit_plan(self) -> None:
        """Opens the user's editor in place of the dashboard; the engine takes a valid plan over by itself."""
        edit: PlanEdit | None = await self.try_read(self.source.edit_plan)
        if edit is None:
            return
        words = edit.command()
        try:
            with self.suspend():
                # Nothing else is to happen while the terminal is the editor's.
                subprocess.run(words, check=True)  # noqa: ASYNC221
            await self.read(edit.take_over)
        except (OSError, subprocess.CalledProcessError):
            self.say(f'The editor "{words[0]}" failed; the plan is unchanged (hint: set EDITOR)', "failed")
        except UserError as error:
            self.say(f"{error.message}; the plan is unchanged, and your edit is kept for the next one", "failed")
        else:
            self.say("The plan was replaced", "done")


def _told(error: IterdevError | OSError) -> str:
    hint = f" (hint: {error.hint})" if isinstance(error, IterdevError) and error.hint else ""
    return f"{error.message if isinstance(error, IterdevError) else error}{hint}"
