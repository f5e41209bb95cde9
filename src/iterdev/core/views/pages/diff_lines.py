"""The difference of one file as lines with their numbers, as `git diff` prints it."""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import zip_longest

from msgspec import Struct

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")


class LineKind(StrEnum):
    same = "same"
    added = "added"
    removed = "removed"
    hunk = "hunk"
    """Where a part of the file begins."""
    note = "note"
    """What git says, such as that the file is binary, or has no newline at its end."""


class DiffLine(Struct, frozen=True, kw_only=True):
    kind: LineKind
    text: str
    old: int | None = None
    new: int | None = None


def diff_lines(text: str) -> tuple[DiffLine, ...]:
    return tuple(_lines(text))


def side_by_side(lines: Sequence[DiffLine]) -> Iterator[tuple[int | None, int | None]]:
    """The places of the lines that stand beside each other: what was removed, and what was added in its place.

    A line that is in both versions, or is about neither, is beside itself.
    """
    removed: list[int] = []
    added: list[int] = []
    for place, line in enumerate(lines):
        if line.kind is LineKind.added:
            added.append(place)
        elif line.kind is LineKind.removed and not added:
            removed.append(place)
        else:
            yield from zip_longest(removed, added)
            removed, added = ([place], []) if line.kind is LineKind.removed else ([], [])
            if not removed:
                yield place, place
    yield from zip_longest(removed, added)


def _lines(text: str) -> Iterator[DiffLine]:
    old = new = 0
    inside = False
    for line in text.removesuffix("\n").split("\n"):
        if found := _HUNK.match(line):
            old, new, inside = int(found[1]), int(found[2]), True
            yield DiffLine(kind=LineKind.hunk, text=found[3].strip(), old=old, new=new)
        elif not inside:
            if line.startswith("Binary files"):
                yield DiffLine(kind=LineKind.note, text="a binary file")
        elif line.startswith("+"):
            yield DiffLine(kind=LineKind.added, text=line[1:], new=new)
            new += 1
        elif line.startswith("-"):
            yield DiffLine(kind=LineKind.removed, text=line[1:], old=old)
            old += 1
        elif line.startswith(" ") or not line:
            # With diff.suppressBlankEmpty, git leaves the space out of empty lines.
            yield DiffLine(kind=LineKind.same, text=line[1:], old=old, new=new)
            old, new = old + 1, new + 1
        elif line.startswith("\\"):
            yield DiffLine(kind=LineKind.note, text=line[2:])
