"""Removes private keys from text: whole ones, and parts of them that are numbered, indented, quoted or escaped.

A key has many lines, and programs print the first or the last of them alone. Lines that may belong to a key are held
back until a later one decides it, so that the text can come line by line.
"""

import re
from collections.abc import Iterator
from string import ascii_letters, digits

from iterdev.core.formatting import MASK

_KIND = r"[A-Z0-9 ]{0,40}?PRIVATE KEY(?: BLOCK)?(?: ?-{1,5})?"
_ENDS_OF_KEYS = re.compile(
    rf"(?P<begin>-{{4,5}} ?BEGIN {_KIND}|Private-Lines: ?\d+)|-{{4,5}} ?END {_KIND}|Private-MAC: ?\w+"
)
_LINE_ENDS = re.compile(r"\r?\n|\\{1,8}[nr]")
"""Also as they are escaped in strings, in strings inside of strings, and so on."""

_ENCODED = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_WORD = re.compile(r"[A-Za-z0-9+/=]{2,}")
_NUMBER = re.compile(r"^\s*(?:[^\s:]+:)?\d+[:\t]")
_IN_ONE_LINE = re.compile(r"(?:[^A-Za-z0-9]{0,12}[A-Za-z0-9+/]{32,}+={0,2})*+")
_LETTERS = f"{ascii_letters}{digits}+/="
_PUNCTUATION = " \t\\\"'`,;:)]}|>+"
WHOLE_LINE = 32
"""Characters; every line of a key is longer, except for the last one."""
BEFORE, AFTER = 48, 12
"""Characters around the key's own on a line: a number, the name of a file, quotes."""
LONGEST = 400
"""Lines of a key; one of 16384 bits has 200."""
PATIENCE = 6
"""Lines of words, after which the end of a key is not waited for any more."""


def may_contain_key(text: str) -> bool:
    return "PRIVATE KEY" in text or "Private-Lines:" in text


def without_private_keys(text: str) -> str:
    keys = PrivateKeys()
    return "".join(map(keys.feed, lines_of(text))) + keys.flush()


def lines_of(text: str) -> Iterator[str]:
    """The lines with their ends, real or escaped."""
    begin = 0
    for end in _LINE_ENDS.finditer(text):
        yield text[begin : end.end()]
        begin = end.end()
    if begin < len(text):
        yield text[begin:]


def may_end_in_key(line: str) -> bool:
    """Whether the end of a line belongs to a key if the key's end follows."""
    return _begin_of_last_word(line) is not None


class PrivateKeys:
    def __init__(self) -> None:
        self._inside = False
        """Behind the beginning of a key."""
        self._lines = 0
        """Of the key, so far."""
        self._line_end = ""
        """What ended the last of them."""
        self._held: list[str] = []
        self._wordy = 0
        """Lines of words that are held back inside of a key."""

    @property
    def is_idle(self) -> bool:
        return not self._inside and not self._held

    def feed(self, line: str) -> str:
        """What can be passed on by now of the text up to the end of this line."""
        passed, place = [], 0
        for mark in _ENDS_OF_KEYS.finditer(line):
            text = line[place : mark.start()]
            if mark["begin"]:
                passed += [self._within(_after_key(text)) if self._inside else text, self._release(), MASK]
                self._inside, self._lines = True, 0
            else:
                passed += [] if self._inside else [_before_key(text), MASK]
                self._inside, self._held, self._line_end = False, [], ""
            place = mark.end()
        rest = line[place:]
        if self._inside:
            return "".join(passed) + self._within(_after_key(rest) if place else rest)
        return "".join(passed) + self._outside(rest)

    def flush(self) -> str:
        """What was held back; the text has ended."""
        return self._release()

    def _within(self, line: str) -> str:
        found = _line_of_key(line)
        if not line or not (found or (self._lines and _is_one_word(line))):
            self._held.append(line)
            self._wordy += _has_words(line)
            return self._release() if self._wordy >= PATIENCE else ""
        self._lines += 1
        self._held, self._wordy, self._line_end = [], 0, _end_of(line)
        rest = line[found.end() :] if found else ""
        if len(rest) > AFTER:
            # Something else follows on the same line, perhaps the end of another key.
            self._inside, self._line_end = False, ""
            return self._outside(rest)
        return self._release() if self._lines >= LONGEST else ""

    def _outside(self, line: str) -> str:
        begin = _begin_of_last_word(line)
        # The last line of a key may be short.
        is_last = begin is None and self._held and may_end_in_key(self._held[-1]) and _is_one_word(line)
        if begin is None and not is_last:
            return self._release() + line
        passed = ""
        if begin is not None and begin > BEFORE:
            passed, line = self._release() + line[:begin], line[begin:]
        self._held.append(line)
        return passed + (self._held.pop(0) if len(self._held) > LONGEST else "")

    def _release(self) -> str:
        """What was held back: it does not belong to a key, or the rest of the key was cut off."""
        text = self._line_end + "".join(self._held)
        self._held, self._wordy, self._line_end, self._inside = [], 0, "", False
        return text


def _line_of_key(line: str) -> re.Match[str] | None:
    found = _ENCODED.search(line)
    whole = found and found.start() <= BEFORE and len(found[0]) >= WHOLE_LINE
    return found if found and whole and not (found[0].islower() or found[0].isupper()) else None


def _begin_of_last_word(line: str) -> int | None:
    """Where the last word of a line begins, if it may be a line of a key."""
    text = line.rstrip()
    if text.endswith(("\\n", "\\r")):
        text = text[:-2]
    text = text.rstrip(_PUNCTUATION)
    begin = len(text.rstrip(_LETTERS))
    return begin if len(text) - begin >= WHOLE_LINE // 2 else None


def _is_one_word(line: str) -> bool:
    """Whether a line has a single word, besides its number, that looks more like a key than like a word."""
    words = _WORD.findall(_NUMBER.sub("", line, count=1))
    return len(words) == 1 and not (words[0].isalpha() and (words[0].islower() or words[0].istitle()))


def _has_words(line: str) -> bool:
    return len(line) > BEFORE or any(len(word) > 2 and word.isalpha() for word in line.split())


def _after_key(line: str) -> str:
    """What follows the lines of a key that are joined to one."""
    found = _IN_ONE_LINE.match(line)
    return line[found.end() :] if found else line


def _before_key(line: str) -> str:
    """What comes before them, up to the end of the key."""
    begin = place = len(line)
    for number, word in enumerate(reversed(list(_WORD.finditer(line)))):
        is_long = len(word[0]) >= WHOLE_LINE // 2
        # Only the last one may be short.
        if place - word.end() > AFTER or (number and not is_long):
            break
        place = word.start()
        begin = place if is_long else begin
    return line[:begin]


def _end_of(line: str) -> str:
    ends = list(_LINE_ENDS.finditer(line, max(0, len(line) - AFTER)))
    return ends[-1][0] if ends else ""
