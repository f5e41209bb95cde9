"""What the words of an agent that failed mean; the protocol passes them on, but not the status behind them."""

import re

from iterdev.agents.contract import TroubleKind

UNKNOWN_RESET = 60.0
"""Seconds until a limited provider is tried again when it does not say how long."""

LOGIN_REQUIRED = -32000
"""The protocol's own code for it, and the only failure that has one."""


class Refusal(Exception):
    """The agent answered a request with an error."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


# The order decides: a quota is named in refusals of every status, and a long prompt in refusals with status 400.
MEANINGS: tuple[tuple[TroubleKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile("|".join(patterns), re.IGNORECASE))
    for kind, patterns in {
        TroubleKind.limited: (
            r"\b429\b",
            r"(rate|usage|session|weekly).?limit",
            r"quota|resource.?exhausted|too many requests",
        ),
        TroubleKind.too_long: (
            r"context.?(length|window)",
            r"(prompt|input).{0,20}too long",
            r"(maximum|exceeds?).{0,40}(tokens|context)",
        ),
        TroubleKind.not_logged_in: (
            r"\b40[13]\b",
            r"authenticat|unauthori[sz]ed|permission_denied|api.?key",
            r"not logged in|log ?in (first|again|required)",
        ),
        TroubleKind.overloaded: (
            r"\b(50[0234]|52\d)\b",
            r"overloaded|unavailable|bad gateway|internal server error",
            r"fetch failed|ECONN\w+|socket hang up|connection (error|refused|reset)",
            r"stream (ended|closed)|premature|\bterminated\b",
        ),
    }.items()
)

SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)(?:[a-z]*)", re.IGNORECASE)
WAIT = re.compile(
    r"(?:retry|again|resets?|wait)\W{0,3}(?:\w+\W{1,4}){0,2}?"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|[dhms])[a-z]*[\s,]*)+|\d+(?:\.\d+)?)",
    re.IGNORECASE,
)


def meaning(words: str) -> TroubleKind | None:
    return next((kind for kind, pattern in MEANINGS if pattern.search(words)), None)


def seconds_to_wait(words: str) -> float:
    """How long a limited provider asks to be left alone."""
    found = WAIT.search(words)
    if not found:
        return UNKNOWN_RESET
    parts = PART.findall(found[1])
    return sum(float(number) * SECONDS[unit.lower()] for number, unit in parts) if parts else float(found[1])
