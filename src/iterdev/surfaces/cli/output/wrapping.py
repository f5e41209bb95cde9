"""Breaks lines between words, as wide as a terminal is."""

import re
import unicodedata

_PIECES = re.compile(r"(\s*)((?<=: )(?:iterdev|git) .+$|^iterdev .+$|`[^`]+`\S*|\S+)")
"""A gap and a word, or a command, which is pasted and so is never broken."""
_GAPS = re.compile(r"\S {2,}(?=\S)")
"""Between the columns of a table."""
DEEPER = 2
"""Columns by which the rest of a broken line is indented."""


def wrapped(text: str, width: int) -> str:
    """The text with long lines broken between words; a word that is longer than a line stays whole."""
    return "\n".join(_wrapped_line(line, width) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    if _columns(line) <= width:
        return line
    words = line.strip()
    margin = line[: line.index(words)]
    below = " " * _place_of_rest(line, len(margin), width)
    lines, current = list[str](), margin
    for gap, piece in _PIECES.findall(words):
        if gap and _columns(current + gap + piece) > width:
            lines.append(current)
            current = below + piece
        else:
            current += gap + piece
    return "\n".join([*lines, current])


def _place_of_rest(line: str, margin: int, width: int) -> int:
    """Where the rest of a line stands: below the last column of a table if that leaves room for some words."""
    columns = (_columns(line[: gap.end()]) for gap in _GAPS.finditer(line))
    return max((column for column in columns if column <= width * 2 // 3), default=margin + DEEPER)


def _columns(text: str) -> int:
    """How many columns the text takes; a Chinese character takes two."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)
