"""The entries of a journal as a list: what happened, when, to which task, in one line each."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from iterdev.core.formatting import one_line
from iterdev.core.results import shortened
from iterdev.core.session.events import Entry
from iterdev.core.views.event_lines import EventLine

WIDTH = 240
"""Characters of a line."""
SIZE = 200
"""Entries of a page."""


class JournalRow(Struct, frozen=True, kw_only=True):
    seq: int
    at: float
    event: str
    task: str
    text: str
    """What `iterdev follow` says of it, or else its fields."""


class JournalPage(Struct, frozen=True, kw_only=True):
    rows: tuple[JournalRow, ...]
    """The newest first."""
    matching: int
    total: int
    page: int
    pages: int
    events: tuple[str, ...]
    """The kinds of events that there are."""
    tasks: tuple[str, ...]


def journal_page(
    entries: Iterable[Entry], lines: Iterable[EventLine], *, event: str = "", task: str = "", page: int = 1
) -> JournalPage:
    """Entries of a kind, or about a task, and of many one page."""
    every = list(entries)
    said: dict[int, list[str]] = {}
    for line in lines:
        said.setdefault(line.seq, []).append(line.text)
    found = [one for one in reversed(every) if event in {"", _kind(one)} and task in {"", _task(one)}]
    pages = max(-(-len(found) // SIZE), 1)
    shown = min(max(page, 1), pages)
    return JournalPage(
        rows=tuple(_row(one, said) for one in found[(shown - 1) * SIZE : shown * SIZE]),
        matching=len(found),
        total=len(every),
        page=shown,
        pages=pages,
        events=tuple(sorted({_kind(one) for one in every})),
        tasks=tuple(dict.fromkeys(name for one in every if (name := _task(one)))),
    )


def _row(entry: Entry, said: Mapping[int, list[str]]) -> JournalRow:
    text = "; ".join(said[entry.seq]) if entry.seq in said else _fields(entry.event)
    return JournalRow(seq=entry.seq, at=entry.at, event=_kind(entry), task=_task(entry), text=shortened(text, WIDTH))


def _kind(entry: Entry) -> str:
    return type(entry.event).__name__


def _task(entry: Entry) -> str:
    found = getattr(entry.event, "task", None)
    return found if isinstance(found, str) else ""


def _fields(event: object) -> str:
    document = msgspec.to_builtins(event)
    told = {name: value for name, value in document.items() if name not in {"type", "task"} and value not in ("", None)}
    return one_line(", ".join(f"{name} {shortened(str(value), WIDTH)}" for name, value in told.items()))
