"""Failure kinds by the words of an agent; the protocol does not transmit the HTTP status of the provider."""

import re
from collections.abc import Mapping

from iterdev.agents.common.failures import kind_in
from iterdev.core.limits.agent_failures import FailureKind

LOGIN_REQUIRED = -32000
"""The protocol's error code for a missing login, the only failure that has one."""

ERROR_TEXT = re.compile(
    r"^\W*(?i:(api |request |network )?(error|failed))|\bError: |\b(Network error|Ran into this error): "
)

# The order matters: errors of every status can name a quota, and errors with status 400 a long prompt.
BY_MESSAGE: Mapping[FailureKind, str] = {
    FailureKind.limited: r"\b429\b|(rate|usage|session|weekly).?limit|quota|resource.?exhausted|too many requests",
    FailureKind.too_long: r"context.?(length|window)|(prompt|input).{0,20}too long"
    r"|(maximum|exceeds?).{0,40}(tokens|context)",
    FailureKind.not_logged_in: r"\b40[13]\b|authenticat|unauthori[sz]ed|permission_denied|api.?key"
    r"|not logged in|log ?in (first|again|required)",
    FailureKind.overloaded: r"\b(50[0234]|52\d)\b|overloaded|unavailable|bad gateway|internal server error"
    r"|fetch failed|ECONN\w+|socket hang up|connection (error|refused|reset)"
    r"|stream (ended|closed)|premature|\bterminated\b|error decoding|cannot connect|connection was closed"
    # opencode's name for all other errors of its provider.
    r'|"errorName": "APIError"',
}


def failure_kind(message: str) -> FailureKind | None:
    return kind_in(message, BY_MESSAGE)


def error_in(said: str) -> str:
    """The part of a text that reports an error of the agent itself, rather than one in its work."""
    found = ERROR_TEXT.search(said)
    return said[found.start() :] if found else ""
