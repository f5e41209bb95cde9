"""Reads the part of the shell's language that test commands are written in.

Positions are kept, so that a command can be changed in one place and otherwise stays as its author wrote it.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

LIMIT = 20_000
"""Longer commands are not read."""

_OPERATORS = ("&&", "||", ";;", ";", "|", "&", "\n")
_UNREADABLE = frozenset("()<>`#{}")
_BLANK = " \t"


class Word(Struct, frozen=True):
    text: str
    """Without quotes."""
    start: int
    end: int


class Step(Struct, frozen=True):
    """A command without operators in it."""

    words: tuple[Word, ...]
    after: str
    """The operator before it; empty for the first."""


def steps(text: str) -> tuple[Step, ...] | None:
    """The commands of a line, or None if it uses more of the shell than this module reads."""
    try:
        return tuple(_steps(text)) if len(text) <= LIMIT else None
    except _TooMuch:
        return None


class _TooMuch(Exception):
    """The text has subshells, redirections, expansions of commands or quotes without an end."""


def _steps(text: str) -> Iterator[Step]:
    position, words, after = 0, list[Word](), ""
    while position < len(text):
        operator = next((name for name in _OPERATORS if text.startswith(name, position)), "")
        if operator:
            if not words:
                raise _TooMuch
            yield Step(tuple(words), after)
            words, after = [], operator
            position += len(operator)
        elif text[position] in _BLANK:
            position += 1
        else:
            word = _word(text, position)
            words.append(word)
            position = word.end
    if words:
        yield Step(tuple(words), after)
    elif after not in {"", ";", "\n"}:
        raise _TooMuch


def _word(text: str, start: int) -> Word:
    position, parts = start, list[str]()
    while position < len(text) and text[position] not in " \t\n;&|":
        char = text[position]
        if char in "'\"":
            end = _closing(text, position)
            parts.append(text[position + 1 : end])
            position = end
        elif char == "\\":
            position += 1
            parts.append(text[position : position + 1])
        elif (char in _UNREADABLE and not _plain(text, position, start)) or text.startswith("$(", position):
            raise _TooMuch
        else:
            parts.append(char)
        position += 1
    return Word("".join(parts), start, min(position, len(text)))


def _plain(text: str, position: int, start: int) -> bool:
    """Whether a special character only stands for itself: braces of a pattern, and # inside of a word."""
    return text[position] in "{}" or (text[position] == "#" and position > start)


def _closing(text: str, start: int) -> int:
    quote = text[start]
    position = start + 1
    while position < len(text) and text[position] != quote:
        if quote == '"' and (text[position] in "`\\" or text.startswith("$(", position)):
            raise _TooMuch
        position += 1
    if position >= len(text):
        raise _TooMuch
    return position


def raw(text: str, words: Sequence[Word]) -> str:
    """The words as they are written in the text, with single spaces."""
    return " ".join(text[word.start : word.end] for word in words)
