"""The family of errors that a person can act on, split by who can fix them. Anything else is a bug."""


class IterdevError(Exception):
    """One sentence for the user, and a hint that can be pasted."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(IterdevError):
    """The request or the configuration is wrong."""


class HostError(IterdevError):
    """The machine cannot do it: git, disk, a missing program."""
