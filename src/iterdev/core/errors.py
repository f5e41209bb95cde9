"""The family of errors that a person can act on, split by who can fix them. Anything else is a bug."""

import re
from collections.abc import Iterable

VALUE_LIMIT = 200
"""Characters of a quoted value in a message."""
TEXT_LIMIT = 4_000
"""Characters of a message; a list of many problems is longer than a sentence."""

_LONG_VALUE = re.compile(rf'"([^"\n]{{{VALUE_LIMIT}}})[^"\n]+"')


class IterdevError(Exception):
    """One sentence for the user, and a hint that can be pasted."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = with_short_values(message)
        self.hint = cut(hint)


class UserError(IterdevError):
    """The request or the configuration is wrong."""


class NeedsConfirmation(IterdevError):
    """It is done only if the user confirms it: the request is valid, but there is a problem with its subject."""


class HostError(IterdevError):
    """The machine cannot do it: git, disk, a missing program."""


def cut(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else f"{text[:TEXT_LIMIT]}…"


def with_short_values(text: str) -> str:
    """The text with long quoted values cut."""
    return cut(_LONG_VALUE.sub(r'"\1…"', text))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The nearest known word in brackets, to follow a word that is not known; empty if none is near."""
    import difflib  # noqa: PLC0415 - only errors need it

    near = difflib.get_close_matches(word, list(known), 1)
    return f' (did you mean "{near[0]}"?)' if near else ""
