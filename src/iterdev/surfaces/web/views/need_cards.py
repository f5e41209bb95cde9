"""What needs the user, with links to what can be done about it. Every link to an act leads to its preview first."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from iterdev.core.types import Phase
from iterdev.core.views.attention import Need, NeedKind
from iterdev.core.views.gates import GateView
from iterdev.core.views.session import SessionView

MOST_BUTTONS = 3
"""Choices of a question that are buttons; with more of them, the page of the question is linked."""
WORDS = {
    NeedKind.question: ("?", "Question"),
    NeedKind.failed: ("✗", "Failed"),
    NeedKind.conflict: ("⇄", "Conflict"),
    NeedKind.stalled: ("∥", "Stalled"),
    NeedKind.agent: ("!", "Agent"),
    NeedKind.unfinished: ("↻", "Unfinished"),
    NeedKind.denied: ("⊘", "Denied"),
    NeedKind.ready: ("✓", "Ready"),
    NeedKind.paused: ("~", "Paused"),
}


class Link(Struct, frozen=True):
    label: str
    href: str
    is_main: bool = False


class NeedCard(Struct, frozen=True, kw_only=True):
    need: Need
    requirement: str
    gate: GateView | None
    buttons: tuple[str, ...]
    """The choices that can be taken at once."""
    links: tuple[Link, ...]

    @property
    def glyph(self) -> str:
        return WORDS[self.need.kind][0]

    @property
    def word(self) -> str:
        return WORDS[self.need.kind][1]


def need_cards(needs: Iterable[Need], view: SessionView) -> Iterator[NeedCard]:
    gates = {gate.id: gate for gate in view.gates}
    for need in needs:
        gate = gates.get(need.gate)
        few = gate is not None and len(gate.choices) <= MOST_BUTTONS
        yield NeedCard(
            need=need,
            requirement=view.requirement,
            gate=gate,
            buttons=gate.choices if gate and few else (),
            links=tuple(_links(need, view)),
        )


def _links(need: Need, view: SessionView) -> Iterator[Link]:
    session = f"/s/{need.session}"
    over = view.phase in {Phase.completed, Phase.archived}
    match need.kind:
        case NeedKind.question:
            yield Link("Look", f"{session}/q/{need.gate}")
        case NeedKind.ready:
            yield Link("Look at the changes", f"{session}/changes")
            yield Link("Pull request…", f"{session}/do/pr")
            yield Link("Accept…", f"{session}/do/accept", is_main=True)
        case NeedKind.failed | NeedKind.denied:
            yield Link("Look", f"{session}/t/{need.about}" if need.about in _tasks(view) else session)
            if over and need.kind is NeedKind.failed:
                yield Link("Roll back…", f"{session}/do/rollback")
                yield Link("Retry…", f"{session}/do/retry", is_main=True)
        case NeedKind.conflict:
            yield Link("Look at the changes", f"{session}/changes?task={need.about}")
        case NeedKind.unfinished | NeedKind.stalled:
            yield Link("Look", session)
            yield Link("Resume…", f"{session}/do/resume", is_main=True)
        case _:
            yield Link("Look", session)


def _tasks(view: SessionView) -> set[str]:
    return {task.id for task in view.tasks}
