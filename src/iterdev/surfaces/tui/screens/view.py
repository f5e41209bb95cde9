"""What the screens have in common: a head, a body, a line to type in, a message, and the keys at the bottom."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.dom import DOMNode
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Input

from iterdev.core.views.keys import Action, Key, Place, Surface, keys_of
from iterdev.surfaces.tui import render
from iterdev.surfaces.tui.lines import Lines, OneLine
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.source import Frame

if TYPE_CHECKING:
    from iterdev.surfaces.tui.dashboard import Dashboard

WORDS = {"escape": "Escape", "enter": "Enter", "tab": "Tab"}
"""The names of keys in the table, where textual has others."""
LABELS = {
    Action.answer: "answer",
    Action.changes: "diff",
    Action.output: "output",
    Action.needs: "needs you",
    Action.timeline: "timeline",
    Action.sessions: "sessions",
    Action.comment: "comment",
    Action.next_finding: "finding",
    Action.next_round: "round",
    Action.next_agent: "agent",
    Action.follow: "follow",
    Action.next_match: "match",
    Action.filter: "filter",
    Action.command: "command",
    Action.back: "back",
    Action.keys: "keys",
    Action.quit: "quit",
}
"""What the foot says of a key, in the order in which it does."""
SHORT = {"Escape": "Esc"}


def begin(
    node: DOMNode, work: Callable[[], Coroutine[Any, Any, None]], *, group: str = "default", replaces: bool = False
) -> None:
    """Has something done beside what is shown; with `replaces`, what was begun in the same group is given up."""
    node.run_worker(cast("Callable[[], Awaitable[None]]", work), group=group, exclusive=replaces)


def word_of(event: events.Key) -> str:
    return WORDS.get(event.key) or event.character or event.key


def key_for(word: str, places: Iterable[Place]) -> Key | None:
    wanted = {Place.everywhere, *places}
    return next((key for key in keys_of(Surface.terminal) if word in key.keys and key.place in wanted), None)


def is_prefix(word: str) -> bool:
    return any(pressed.startswith(f"{word} ") for key in keys_of(Surface.terminal) for pressed in key.keys)


class Pressed:
    """Turns what is pressed into actions, by the table of keys."""

    def __init__(self, *places: Place) -> None:
        self._places = places
        self._prefix = ""

    def action(self, word: str) -> Action | bool:
        """The action; True if more is to be pressed, False if the key means nothing here."""
        before, self._prefix = self._prefix, ""
        if not before and is_prefix(word):
            self._prefix = word
            return True
        key = key_for(f"{before} {word}" if before else word, self._places)
        return key.action if key else False


def foot(places: Iterable[Place], width: int, *, is_main: bool) -> Text:
    """The keys that work here, as far as there is room; always the one that lists them all."""
    hints = [_hint(key) for key in _hinted(places) if not (is_main and key.action is Action.back)]
    others, last = hints[:-2], hints[-2:]
    drawn, room = line((" ", "muted")), width - sum(hint.cell_len for hint in last)
    for hint in others:
        if drawn.cell_len + hint.cell_len <= room:
            drawn.append_text(hint)
    for hint in last:
        drawn.append_text(hint)
    return drawn


def _hinted(places: Iterable[Place]) -> Iterator[Key]:
    here = {Place.everywhere, *places}
    known = {key.action: key for key in keys_of(Surface.terminal) if key.place in here}
    hinted = [known[action] for action in LABELS if action in known]
    return iter(sorted(hinted, key=lambda key: key.place is Place.everywhere))


def _hint(key: Key) -> Text:
    return line((SHORT.get(key.keys[0], key.keys[0]), "key"), (f" {LABELS[key.action]}  ", "muted"))


class View(Screen[None]):
    """A screen that shows a frame, and shows the next one when something has changed."""

    places: ClassVar[tuple[Place, ...]] = ()
    prompt: ClassVar[str] = "filter"
    DEFAULT_CSS = """
    View { layout: vertical; background: $background; }
    #head { background: $panel; }
    #foot { background: $panel; }
    #message { background: $surface; display: none; }
    #prompt { display: none; height: 1; border: none; padding: 0 1; background: $surface; }
    #prompt:focus { border: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._pressed = Pressed(*self.places)
        self.message: tuple[str, str] = ("", "text")
        self._is_ready = False
        """Its parts are there: a frame may come before they are, and after they were."""

    @property
    def dashboard(self) -> "Dashboard":
        return cast("Dashboard", self.app)

    @property
    def frame(self) -> Frame:
        return self.dashboard.frame

    def compose(self) -> ComposeResult:
        yield OneLine(lambda width: render.head(self.frame, self.dashboard.now(), width), id="head")
        yield from self.body()
        yield Input(placeholder=self.prompt, id="prompt", compact=True)
        yield OneLine(lambda _: line(" ", self.message), id="message")
        yield OneLine(lambda width: foot(self.places, width, is_main=self.is_main), id="foot")

    def body(self) -> Iterator[Widget]:
        raise NotImplementedError

    @property
    def is_main(self) -> bool:
        return False

    def show(self, frame: Frame) -> None:
        """Shows what is known now."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self._is_ready = True
        self.show(self.frame)

    def on_unmount(self) -> None:
        self._is_ready = False

    def on_screen_resume(self) -> None:
        self.update()

    def update(self) -> None:
        # When the dashboard ends, the parts of a screen are gone before it hears of its own end.
        if self._is_ready and (heads := self.query_children("#head")):
            heads.refresh()
            self.show(self.frame)

    def say(self, text: str, style: str = "text") -> None:
        """Shows a sentence above the keys until the next key is pressed."""
        self.message = text, style
        for said in self.query_children("#message") if self._is_ready else ():
            said.display = bool(text)
            said.refresh()

    def on_key(self, event: events.Key) -> None:
        if self.app.screen is not self:
            # It was typed after the key that opened the other screen, and before that one was there.
            event.stop()
            event.prevent_default()
            self.app.screen.post_message(events.Key(event.key, event.character))
            return
        word, typing = word_of(event), isinstance(self.focused, Input)
        if typing and word != "Escape":
            return
        event.stop()
        event.prevent_default()
        if typing:
            self.close_prompt()
            return
        self.say("")
        action = self._pressed.action(word)
        if isinstance(action, Action):
            self.act_on(action)

    def act_on(self, action: Action) -> None:
        """What a key does in this screen; everything else is done by the dashboard."""
        match action:
            case Action.filter:
                self.open_prompt()
            case _:
                self.dashboard.act_on(action)

    def open_prompt(self) -> None:
        typed = self.query_one("#prompt", Input)
        typed.display = True
        typed.focus()

    def close_prompt(self) -> None:
        typed = self.query_one("#prompt", Input)
        typed.value = ""
        typed.display = False
        self.focus_body()

    def focus_body(self) -> None:
        if found := list(self.query(Lines)):
            found[0].focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        event.input.display = bool(event.value)
        self.focus_body()


class Dialog(ModalScreen[None]):
    """A box above a screen, with rows, and sometimes a line to type in."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    #box { width: 92%; max-width: 110; height: auto; max-height: 90%; border: round $primary; padding: 0 1;
           background: $surface; border-title-color: $foreground; border-subtitle-color: $foreground 70%; }
    #box Lines { background: $surface; height: auto; max-height: 100%; }
    #box Input { background: $panel; border: none; height: 1; padding: 0 1; }
    """

    @property
    def dashboard(self) -> "Dashboard":
        return cast("Dashboard", self.app)

    @property
    def frame(self) -> Frame:
        return self.dashboard.frame

    @property
    def room(self) -> int:
        """Columns inside of the box."""
        return max(min(int(self.app.size.width * 0.92), 110) - 4, 20)

    def update(self) -> None:
        """What is known has changed."""


class FieldDialog(Dialog):
    """A dialog with a field to type in."""

    def on_mount(self) -> None:
        self.query_one(Input).focus()

    def on_key(self, event: events.Key) -> None:
        if self._typed_early(event):
            return
        if event.key == "escape":
            event.stop()
            event.prevent_default()
            self.dismiss()

    def _typed_early(self, event: events.Key) -> bool:
        """Puts what was typed before the field was there into the field; False if it is no text."""
        field = self.query_one(Input)
        if field.has_focus:
            return False
        if event.key == "enter":
            self.call_later(field.action_submit)
        elif event.is_printable and event.character:
            field.insert_text_at_cursor(event.character)
        else:
            return False
        event.stop()
        event.prevent_default()
        return True
