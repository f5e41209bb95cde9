"""An open question: what it is about, the choices, and the command that answers it."""

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from iterdev.app.live.acts import Answer, command
from iterdev.core.views.gates import EDIT, GateView
from iterdev.core.views.history import SpanKind
from iterdev.surfaces.tui import render
from iterdev.surfaces.tui.lines import Lines
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.screens.view import Dialog


class QuestionScreen(Dialog):
    def __init__(self, gate: GateView, choice: int | None = None) -> None:
        super().__init__()
        self.gate = gate
        self._chosen: str | None = None
        if choice is not None and choice <= len(gate.choices):
            self._chosen = gate.choices[choice - 1]

    def compose(self) -> ComposeResult:
        self.lines: Lines[Text] = Lines(lambda text, _: text, has_cursor=False)
        box = Vertical(self.lines, id="box")
        box.border_title = f"{self.gate.id} · {render.age(self.gate.opened_at, self.dashboard.now())}"
        yield box

    def on_mount(self) -> None:
        self._show()
        self.lines.focus()

    def _show(self) -> None:
        gate, width, session = self.gate, self.room, self.frame.session
        rows = [*render.wrapped(gate.question, width, "strong")]
        rows += [line((f"  {detail}", "text")) for detail in gate.details]
        rows.append(line())
        for number, choice in enumerate(gate.choices, 1):
            mark = " (recommended)" if gate.recommended and choice == gate.default else ""
            chosen = choice == self._chosen
            rows.append(
                line(
                    ("▸ " if chosen else "  ", "running"),
                    (f"{number} ", "key"),
                    (f"{choice}{mark}", "strong" if chosen else "text"),
                    (f"  {gate.descriptions.get(choice, '')}", "muted"),
                )
            )
        rows.append(line())
        if session:
            act = Answer(session=session.id, gate=gate.id, choice=self._chosen or gate.default)
            rows += render.wrapped(command(act), width, "accent")
        self.lines.show(rows, whole=True)
        self.query_one("#box").border_subtitle = self._keys()

    def _keys(self) -> str:
        if self._chosen:
            return f'Enter: answer "{self._chosen}" · Esc: do not'
        edit = " · e edit the plan" if EDIT in self.gate.actions else ""
        return f"1-{len(self.gate.choices)} choose{edit} · Esc later"

    def update(self) -> None:
        """Another process may have answered."""
        session = self.frame.session
        if session is None or any(gate.id == self.gate.id for gate in session.gates):
            return
        spans = self.frame.history.spans
        answers = [one.text for one in spans if one.kind is SpanKind.question and one.name == self.gate.id]
        self.dismiss()
        self.dashboard.say(f"{self.gate.id} was answered: {answers[-1] if answers else 'elsewhere'}", "done")

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        number = int(event.key) if event.key.isdigit() else 0
        if 1 <= number <= len(self.gate.choices):
            self._chosen = self.gate.choices[number - 1]
            self._show()
        elif event.key == "escape" and self._chosen:
            self._chosen = None
            self._show()
        elif event.key in {"escape", "q"}:
            self.dismiss()
        elif event.key == "enter":
            self._answer()
        elif event.key == "e" and EDIT in self.gate.actions:
            self.dismiss()
            self.dashboard.edit_plan()

    def _answer(self) -> None:
        """The first Enter takes the default, and the second one confirms it."""
        if self._chosen is None:
            self._chosen = self.gate.default
            self._show()
        elif self.frame.session:
            self.dismiss()
            self.dashboard.perform(Answer(session=self.frame.session.id, gate=self.gate.id, choice=self._chosen))
