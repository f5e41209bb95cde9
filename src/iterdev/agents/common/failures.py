"""The failure kind behind the words of an agent, and the text of a failure kind and of an exit code."""

import re
import signal
from collections.abc import Mapping

from iterdev.core.limits.agent_failures import FailureKind

FAILURE_TEXT: Mapping[FailureKind, str] = {
    FailureKind.not_logged_in: "is not logged in",
    FailureKind.limited: "has reached a limit of its provider",
    FailureKind.overloaded: "got no answer from its provider",
    FailureKind.too_long: "was given more than fits into its context",
    FailureKind.over_budget: "has used up its budget",
}


def kind_in(message: str, patterns: Mapping[FailureKind, str]) -> FailureKind | None:
    """The first kind whose pattern matches; the order matters, because a message can name causes of other kinds."""
    return next((kind for kind, pattern in patterns.items() if re.search(pattern, message, re.IGNORECASE)), None)


def exit_text(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"was ended by {known.get(-code, f'signal {-code}')}"
