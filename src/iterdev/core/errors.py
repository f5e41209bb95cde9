"""The family of errors that a person can act on, split by who can fix them. Anything else is a bug."""

import difflib
from collections.abc import Iterable


class IterdevError(Exception):
    """One sentence for the user, and a hint that can be pasted."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(IterdevError):
    """The request or the configuration is wrong."""


class NeedsConfirmation(IterdevError):
    """It is done only if the user says so: nothing is wrong with the request, but with what it is about."""


class HostError(IterdevError):
    """The machine cannot do it: git, disk, a missing program."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The nearest known word in brackets, to follow a word that is not known; empty if none is near."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f' (did you mean "{near[0]}"?)' if near else ""
