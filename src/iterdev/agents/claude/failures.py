"""Failure kinds of Claude Code: by the reason it gives, by the HTTP status, then by its words."""

from collections.abc import Mapping

from iterdev.agents.claude.protocol import TurnResult
from iterdev.agents.common.failures import kind_in
from iterdev.core.limits.agent_failures import FailureKind

BY_REASON: Mapping[str, FailureKind] = {
    "error_max_budget_usd": FailureKind.over_budget,
    "prompt_too_long": FailureKind.too_long,
}
BY_STATUS: Mapping[int, FailureKind] = {
    401: FailureKind.not_logged_in,
    402: FailureKind.over_budget,
    403: FailureKind.not_logged_in,
    408: FailureKind.overloaded,
    413: FailureKind.too_long,
    429: FailureKind.limited,
}
BY_MESSAGE: Mapping[FailureKind, str] = {
    FailureKind.over_budget: r"credit balance|out of usage credits|spend limit",
    FailureKind.limited: r"rate.?limit|usage limit|hit your .{0,40}limit|limit reached|too many requests",
    FailureKind.too_long: r"(prompt|input) is too long|context (window|length|limit)|exceeds? .{0,40}tokens",
    FailureKind.not_logged_in: r"not logged in|/login|invalid (x-)?api.?key|authenticat|oauth token"
    r"|token (has )?(expired|been revoked)",
    FailureKind.overloaded: r"overloaded|server-side issue|connection|unable to connect|ECONN\w+|socket|stream"
    r"|fetch failed|timed out",
}


def failure_kind(result: TurnResult) -> FailureKind:
    reason = BY_REASON.get(result.subtype) or BY_REASON.get(result.terminal_reason or "")
    status = result.api_error_status or 0
    by_status = BY_STATUS.get(status) or (FailureKind.overloaded if status >= 500 else None)
    return reason or by_status or kind_in(result.text, BY_MESSAGE) or FailureKind.crashed


def provider_wait(status: int | None, milliseconds: float) -> float | None:
    """The seconds that the provider asks to wait; Claude Code's own waits are random, not whole seconds."""
    asked = status == 429 and milliseconds >= 1000 and milliseconds % 1000 == 0
    return milliseconds / 1000 if asked else None
