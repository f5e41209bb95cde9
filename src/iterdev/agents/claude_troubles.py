"""What a failed turn of Claude Code means, and when a limited provider answers again: by its status, then its words."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from iterdev.agents.claude_events import Ended
from iterdev.agents.contract import TroubleKind

UNKNOWN_WAIT = 60.0
"""Seconds until a limited provider is asked again when it does not say how long."""

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
# The order decides: what a limit is about may be named in the words for it.
BY_WORDS: tuple[tuple[TroubleKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(words, re.IGNORECASE))
    for kind, words in (
        (TroubleKind.over_budget, r"credit balance|out of usage credits|spend limit"),
        (TroubleKind.limited, r"rate.?limit|usage limit|hit your .{0,40}limit|limit reached|too many requests"),
        (TroubleKind.too_long, r"(prompt|input) is too long|context (window|length|limit)|exceeds? .{0,40}tokens"),
        (
            TroubleKind.not_logged_in,
            r"not logged in|/login|invalid (x-)?api.?key|authenticat|oauth token|token (has )?(expired|been revoked)",
        ),
        (
            TroubleKind.overloaded,
            r"overloaded|server-side issue|connection|unable to connect|ECONN\w+|socket|stream|fetch failed|timed out",
        ),
    )
)

_EPOCH = re.compile(r"(?:\||\bresets?(?:\s+(?:at|on))?\W{1,3})(\d{10})(?:\d{3})?\b", re.IGNORECASE)
_MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))")
_CLOCK = re.compile(r"\bresets?(?: at)? (\d{1,2})(?::(\d\d))? ?([ap])m\b(?: \(([\w/+-]+)\))?", re.IGNORECASE)
_WAIT = re.compile(
    r"(?:retry.after|(?:again|retry|resets?) in)\W{1,3}((?:\d+(?:\.\d+)? ?(?:[dhms]\w*)?[\s,]*(?:and )?)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?) ?([dhms]?)", re.IGNORECASE)
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "": 1}


def kind_of(ended: Ended) -> TroubleKind:
    reason = BY_REASON.get(ended.subtype) or BY_REASON.get(ended.terminal_reason or "")
    status = ended.api_error_status or 0
    by_status = BY_STATUS.get(status) or (TroubleKind.overloaded if status >= 500 else None)
    by_words = (kind for kind, words in BY_WORDS if words.search(ended.text))
    return reason or by_status or next(by_words, TroubleKind.crashed)


def provider_wait(status: int | None, milliseconds: float) -> float | None:
    """The seconds that the provider asks to wait; Claude Code's own waits are random, not whole seconds."""
    told = status == 429 and milliseconds >= 1000 and milliseconds % 1000 == 0
    return milliseconds / 1000 if told else None


def reset_at(text: str, now: float) -> float | None:
    """The moment that the words of a limit name, in seconds since the epoch."""
    if found := _EPOCH.search(text):
        return float(found[1])
    if found := _MOMENT.search(text):
        return datetime.fromisoformat(found[1]).timestamp()
    if found := _WAIT.search(text):
        return now + sum(float(number) * _SECONDS[unit.lower()] for number, unit in _PART.findall(found[1]))
    if found := _CLOCK.search(text):
        return _next(int(found[1]) % 12 + 12 * (found[3].lower() == "p"), int(found[2] or 0), found[4], now)
    return None


def _next(hour: int, minute: int, zone: str | None, now: float) -> float | None:
    """The next moment at which a clock in the zone, or here, shows the time."""
    try:
        there = datetime.fromtimestamp(now, ZoneInfo(zone)) if zone else datetime.fromtimestamp(now).astimezone()
        moment = there.replace(hour=hour, minute=minute, second=0, microsecond=0)
    except (KeyError, ValueError, OSError):
        return None
    return (moment if moment > there else moment + timedelta(days=1)).timestamp()
