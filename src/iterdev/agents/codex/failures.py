"""Failure kinds of Codex, by its words: it reports the HTTP status of the provider nowhere else."""

from collections.abc import Mapping

from iterdev.agents.common.failures import kind_in
from iterdev.core.limits.agent_failures import FailureKind

# The order matters: a limit can end a stream, and its words can name a model, a plan or a window.
BY_MESSAGE: Mapping[FailureKind, str] = {
    FailureKind.limited: r"\b429\b|usage limit|rate.?limit|too many requests|quota exceeded|spend limit",
    FailureKind.too_long: r"context_length_exceeded|context window|input exceeds .{0,40}(tokens|length)",
    FailureKind.not_logged_in: r"\bstatus:? 40[13]\b|unauthorized|not logged in|refresh token"
    r"|(sign|log) in again|environment variable: ",
    FailureKind.overloaded: r"\bstatus:? 5\d\d\b|high demand|at capacity|overloaded|stream disconnected"
    r"|connection failed|timed? ?out",
}


def failure_kind(message: str) -> FailureKind:
    return kind_in(message, BY_MESSAGE) or FailureKind.crashed
