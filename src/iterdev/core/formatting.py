"""How values become text for people: counts, durations and percentages, and text without control codes."""

import json
import re
from collections import Counter
from collections.abc import Iterable

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours and movements
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"  # titles and links
    r"|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters except for tabs and line ends, and those that change the direction of the text."""
MINUTE, HOUR = 60, 3600
MASK = "[secret]"
"""Stands where a secret was removed."""


def plain(text: str) -> str:
    """The text without escape sequences and control characters, which a terminal would obey."""
    # Every sequence begins with a control character, and a look for one takes a fifth of the time.
    return _CONTROLS.sub("", _ESCAPES.sub("", text)) if _CONTROLS.search(text) else text


def visible(text: str) -> str:
    """The text with its control characters written as escapes, for a reader who has to know that they are there."""
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Text of others as a part of a line: with line breaks, it could look like further lines."""
    return " ".join(plain(text).split())


def shown_name(name: str) -> str:
    """The exact name of a file, test or task in a list; one with line breaks or control codes is a JSON string."""
    return name if name.isprintable() else json.dumps(name, ensure_ascii=True)


def counted(count: int, one: str, several: str = "") -> str:
    """A number and its noun: "1 problem", "2 problems"."""
    return f"{count} {one if count == 1 else several or f'{one}s'}"


def merged(texts: Iterable[str]) -> tuple[str, ...]:
    """Each text once, in the order in which they came first, with the number of times if there are several."""
    return tuple(f"{text} ({count} times)" if count > 1 else text for text, count in Counter(texts).items())


def duration(seconds: float) -> str:
    """A length of time to two units: "0.3 s", "4 s", "15 min", "1 min 30 s", "2 h 5 min"."""
    if seconds < 1:
        # Rounded to one digit first; a format of its own would write 0.00004 as 4e-05.
        return f"{float(f'{seconds:.1g}'):.3f}".rstrip("0").rstrip(".") + " s"
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return _two_units(*divmod(whole, MINUTE), "min", "s")
    return _two_units(*divmod(round(whole / MINUTE), MINUTE), "h", "min")


def _two_units(larger: int, smaller: int, *units: str) -> str:
    parts = zip((larger, smaller), units, strict=True)
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def percent(rate: float) -> float:
    """A part of 1 in per cent, to one decimal; rounded down, so that only the whole is 100."""
    # Rounded first, because 0.57 * 1000 is 569.9999999999999.
    return int(round(rate * 1000, 6)) / 10
