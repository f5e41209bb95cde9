"""All keys and commands; typing filters them, and Enter does what is under the cursor."""

from msgspec import Struct
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from iterdev.core.views.keys import Action, Place, Surface, keys_of
from iterdev.surfaces.tui.command_line import COMMANDS
from iterdev.surfaces.tui.lines import Lines
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.screens.view import FieldDialog


class Entry(Struct, frozen=True, kw_only=True):
    pressed: str
    help: str
    place: str
    run: Action | str
    """An action, or the command that is to be typed."""


def entries() -> list[Entry]:
    keys = [
        Entry(
            pressed=", ".join(key.keys) if len(key.keys) < 4 else f"{key.keys[0]}-{key.keys[-1]}",
            help=key.help,
            place="" if key.place is Place.everywhere else key.place,
            run=key.action,
        )
        for key in keys_of(Surface.terminal)
    ]
    return [*keys, *(Entry(pressed=f":{name}", help=text, place="", run=name) for name, text in COMMANDS.items())]


def entry_line(entry: Entry, _: int) -> Text:
    place = f"  ({entry.place})" if entry.place else ""
    return line((f" {entry.pressed:<12}", "key"), (entry.help, "text"), (place, "muted"))


class KeysScreen(FieldDialog):
    DEFAULT_CSS = "KeysScreen Lines { height: 1fr; } KeysScreen #box { height: 90%; }"

    def compose(self) -> ComposeResult:
        self.entries: Lines[Entry] = Lines(entry_line)
        self.entries.can_focus = False
        box = Vertical(Input(placeholder="type to filter", compact=True), self.entries, id="box")
        box.border_title, box.border_subtitle = (
            "keys and commands",
            "type to filter · ↑↓ choose · Enter do it · Esc close",
        )
        yield box

    def on_mount(self) -> None:
        self.entries.show(entries(), whole=True)

    def on_input_changed(self, event: Input.Changed) -> None:
        words = event.value.casefold().split()
        searched = ((entry, f"{entry.pressed} {entry.help} {entry.place}".casefold()) for entry in entries())
        self.entries.show([entry for entry, text in searched if all(word in text for word in words)], whole=True)
        self.entries.move_to(0)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        chosen = self.entries.current
        self.dismiss()
        if chosen and isinstance(chosen.run, Action):
            self.dashboard.act_below(chosen.run)
        elif chosen:
            self.dashboard.type_command(str(chosen.run))

    def on_key(self, event: events.Key) -> None:
        if event.key in {"up", "down"}:
            event.stop()
            event.prevent_default()
            self.entries.move_to(self.entries.cursor + (1 if event.key == "down" else -1))
