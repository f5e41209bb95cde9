"""What a file of another tool becomes, and what of it could not be carried over."""

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from iterdev.core.formatting import counted
from iterdev.tracker.issues import Issue
from iterdev.tracker.solutions import Solution


class ImportedTask(Struct, frozen=True, kw_only=True):
    """A row of a task table."""

    id: str
    title: str
    description: str
    deps: tuple[str, ...] = ()
    is_done: bool = False
    cells: Mapping[str, str] = {}
    """Further cells, by column."""


class Import(Struct, frozen=True, kw_only=True):
    tool: str
    issues: tuple[Issue, ...] = ()
    solutions: Mapping[str, Solution] = {}
    """By issue."""
    tasks: tuple[ImportedTask, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be carried over, one sentence each."""


class Losses:
    """Counts what could not be carried over."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._sentences: list[str] = []

    def count(self, what: str) -> None:
        """`what` is said of one or several, such as "deleted, and left out"."""
        self._counts[what] += 1

    def say(self, sentence: str) -> None:
        self._sentences.append(sentence)

    def notes(self, one: str = "issue") -> tuple[str, ...]:
        return (*self._sentences, *(f"{counted(number, one)}: {what}" for what, number in self._counts.items()))


def sections(*parts: tuple[str, object]) -> str:
    """A text with a heading over each part but the first; empty parts are left out."""
    said = [(heading, str(text).strip()) for heading, text in parts if text and str(text).strip()]
    return "\n\n".join(f"{heading}:\n{text}" if heading else text for heading, text in said)
