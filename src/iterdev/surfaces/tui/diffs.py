"""A patch as rows, with the findings of reviews at their lines."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text

from iterdev.core.formatting import plain
from iterdev.core.views.pages.diff_lines import LineKind, diff_lines
from iterdev.core.views.team import FindingView
from iterdev.surfaces.tui.palette import OF_SEVERITY, line
from iterdev.surfaces.tui.render import wrapped

LONGEST = 5_000
"""Rows of one file that are shown."""
NARROWEST = 40
NUMBERS = 10
"""Columns of the line numbers."""
MOST = 20
"""Rows that one line takes at most."""


class RowKind(StrEnum):
    head = "head"
    context = "context"
    added = "added"
    removed = "removed"
    finding = "finding"
    note = "note"


class DiffRow(Struct, frozen=True, kw_only=True):
    kind: RowKind
    text: str
    old: int | None = None
    new: int | None = None
    finding: FindingView | None = None
    """The finding that this row, and those after it, are about; only in its first row."""
    is_fixed: bool = False
    """The finding is no longer reported."""
    style: str = "text"


def diff_rows(patch: str, findings: Sequence[FindingView], width: int) -> list[DiffRow]:
    """The rows of one file. A finding is below its line if the patch has it, and otherwise at the head."""
    rows = list(_rows(patch))
    if len(rows) > LONGEST:
        rows = [
            *rows[:LONGEST],
            DiffRow(kind=RowKind.note, text=f"and {len(rows) - LONGEST:,} more lines: iterdev diff"),
        ]
    shown = {row.new for row in rows if row.new is not None and row.kind is not RowKind.removed}
    placed = [row for finding in findings if finding.line not in shown for row in _finding_rows(finding, width)]
    for row in rows:
        placed += _wrapped(row, width)
        if row.new is not None and row.kind is not RowKind.removed:
            here = (finding for finding in findings if finding.line == row.new)
            placed += [below for finding in here for below in _finding_rows(finding, width)]
    return placed


def _wrapped(row: DiffRow, width: int) -> Iterator[DiffRow]:
    """A long line continues in further rows, which have no number."""
    room = max(width - NUMBERS - 2, NARROWEST)
    text = plain(row.text).expandtabs(4)
    yield replace(row, text=text[:room])
    for begin in range(room, min(len(text), MOST * room), room):
        yield replace(row, text=text[begin : begin + room], old=None, new=None)


def _rows(patch: str) -> Iterator[DiffRow]:
    for one in diff_lines(patch):
        match one.kind:
            case LineKind.hunk:
                place = f"@@ -{one.old} +{one.new} @@ {one.text}".rstrip()
                yield DiffRow(kind=RowKind.head, text=place, style="accent")
            case LineKind.note:
                yield DiffRow(kind=RowKind.note, text=one.text, style="muted")
            case LineKind.added:
                yield DiffRow(kind=RowKind.added, text=one.text, new=one.new, style="added")
            case LineKind.removed:
                yield DiffRow(kind=RowKind.removed, text=one.text, old=one.old, style="removed")
            case LineKind.same:
                yield DiffRow(kind=RowKind.context, text=one.text, old=one.old, new=one.new)


def standing(finding: FindingView) -> str:
    return f"fixed in {finding.fixed_in}" if finding.fixed_in else f"open, from {finding.reported_by[-1]}"


def _finding_rows(finding: FindingView, width: int) -> Iterator[DiffRow]:
    is_fixed = finding.fixed_in is not None
    style, mark = ("done", "✓") if is_fixed else (OF_SEVERITY[finding.severity], "!")
    place = f"line {finding.line}" if finding.line else "the file"
    room = max(width - 14, NARROWEST)
    words = f"{mark} {finding.severity} · {finding.dimension} · {finding.id} · {place} · {standing(finding)}"
    for number, part in enumerate(wrapped(words, room)):
        first = None if number else finding
        yield DiffRow(kind=RowKind.finding, text=part.plain, finding=first, is_fixed=is_fixed, style=style)
    suggestion = f"suggestion: {finding.suggestion}" if finding.suggestion else ""
    for text, shade in ((finding.text, "strong"), (suggestion, "muted")):
        for part in wrapped(text, room):
            yield DiffRow(kind=RowKind.finding, text=f"  {part.plain}", is_fixed=is_fixed, style=shade)


def diff_line(row: DiffRow, width: int) -> Text:
    match row.kind:
        case RowKind.head | RowKind.note:
            return line((row.text, row.style))
        case RowKind.finding:
            return line(("          ┃ ", "done" if row.is_fixed else "attention"), (row.text, row.style))
        case _:
            numbers = f"{row.old or '':>4} {row.new or '':>4} "
            sign = {RowKind.added: "+", RowKind.removed: "-"}.get(row.kind, " ")
            return line((numbers, "muted"), (f"{sign} {row.text}".ljust(max(width - len(numbers), 0)), row.style))
