"""Failure kinds of Claude Code: by the reason it gives, by the HTTP status, then by its words."""

from collections.abc import Mapping

from iterdev.agents.claude.protocol import TurnResult
from iterdev.agents.common.failures import FailurePatterns
from iterdev.agents.contract import TroubleKind

BY_REASON: Mapping[str, TroubleKind] = {
    "error_max_budget_usd": TroubleKind.over_budget,
    "prompt_too_long": TroubleKind.too_long,
}
BY_STATUS: Mapping[int, TroubleKind] = {
    401: TroubleKind.not_logged_in,
    402: TroubleKind.over_budget,
    403: TroubleKind.not_logged_in,
    408: TroubleKind.overloaded,
    413: TroubleKind.too_long,
    429: TroubleKind.limited,
}
BY_WORDS = FailurePatterns(
    {
        TroubleKind.over_budget: r"credit balance|out of usage credits|spend limit",
        TroubleKind.limited: r"rate.?limit|usage limit|hit your .{0,40}limit|limit reached|too many requests",
        TroubleKind.too_long: r"(prompt|input) is too long|context (window|length|limit)|exceeds? .{0,40}tokens",
        TroubleKind.not_logged_in: r"not logged in|/login|invalid (x-)?api.?key|authenticat|oauth token"
        r"|token (has )?(expired|been revoked)",
        TroubleKind.overloaded: r"overloaded|server-side issue|connection|unable to connect|ECONN\w+|socket|stream"
        r"|fetch failed|timed out",
    }
)


def failure_kind(result: TurnResult) -> TroubleKind:
    reason = BY_REASON.get(result.subtype) or BY_REASON.get(result.terminal_reason or "")
    status = result.api_error_status or 0
    by_status = BY_STATUS.get(status) or (TroubleKind.overloaded if status >= 500 else None)
    return reason or by_status or BY_WORDS.find(result.text) or TroubleKind.crashed


def provider_wait(status: int | None, milliseconds: float) -> float | None:
    """The seconds that the provider asks to wait; Claude Code's own waits are random, not whole seconds."""
    asked = status == 429 and milliseconds >= 1000 and milliseconds % 1000 == 0
    return milliseconds / 1000 if asked else None
