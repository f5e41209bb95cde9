"""Failures of agents: the failure kinds behind an agent's words and a program's exit, and the text of each kind."""

import re
import signal
from collections.abc import Mapping

from iterdev.agents.common.output import last_lines
from iterdev.agents.contract import FailureKind
from iterdev.core.processes import Exit

FAILURE_TEXT: Mapping[FailureKind, str] = {
    FailureKind.not_logged_in: "is not logged in",
    FailureKind.limited: "has reached a limit of its provider",
    FailureKind.overloaded: "got no answer from its provider",
    FailureKind.too_long: "was given more than fits into its context",
    FailureKind.over_budget: "has used up its budget",
}


class FailurePatterns:
    """Expressions by failure kind. The first match decides: the words of one kind may name what another is about."""

    def __init__(self, expressions: Mapping[FailureKind, str]) -> None:
        self._patterns = {kind: re.compile(words, re.IGNORECASE) for kind, words in expressions.items()}

    def find(self, words: str) -> FailureKind | None:
        return next((kind for kind, pattern in self._patterns.items() if pattern.search(words)), None)


def exit_failure(ended: Exit, stderr: bytes | bytearray, limit: float) -> tuple[FailureKind, str]:
    """The kind and the text, to follow the agent's name, for a program that exited without a result."""
    if ended.timed_out:
        return FailureKind.timed_out, f"ran longer than {limit:g} s"
    complaint = last_lines(stderr)
    return FailureKind.crashed, _exit_text(ended.code) + (f": {complaint}" if complaint else "")


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"was ended by {known.get(-code, f'signal {-code}')}"
