"""What the words of a failed turn of Codex mean: the status of the provider stands nowhere else."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from iterdev.agents.contract import TroubleKind

UNKNOWN_WAIT = 60.0
"""Seconds until a limited provider is asked again when it does not say how long; Codex keeps Retry-After to itself."""

# The order decides: a limit can end a stream, and its words can name a model, a plan or a window.
MEANINGS: tuple[tuple[TroubleKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(words, re.IGNORECASE))
    for kind, words in (
        (TroubleKind.limited, r"\b429\b|usage limit|rate.?limit|too many requests|quota exceeded|spend limit"),
        (TroubleKind.too_long, r"context_length_exceeded|context window|input exceeds .{0,40}(tokens|length)"),
        (
            TroubleKind.not_logged_in,
            r"\bstatus:? 40[13]\b|unauthorized|not logged in|refresh token|(sign|log) in again|environment variable: ",
        ),
        (
            TroubleKind.overloaded,
            r"\bstatus:? 5\d\d\b|high demand|at capacity|overloaded|stream disconnected|connection failed|timed? ?out",
        ),
    )
)

_EPOCH = re.compile(r"\bresets?(?:_at| at| on)?\W{1,4}(\d{10})(?:\d{3})?\b", re.IGNORECASE)
_MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))")
_WAIT = re.compile(
    r"(?:retry.after|(?:again|retry|resets?) in)\W{1,3}((?:\d+(?:\.\d+)? ?(?:ms|[dhms][a-z]*)?[\s,]*(?:and )?)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?) ?(ms|[dhms]?)", re.IGNORECASE)
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "": 1.0}
_DAY_AND_CLOCK = re.compile(r"\bat ([A-Z][a-z]{2}) (\d{1,2})(?:st|nd|rd|th), (\d{4}) (\d{1,2}:\d\d [AP]M)")
_CLOCK = re.compile(r"\bat (\d{1,2}:\d\d [AP]M)")
_MINUTE = timedelta(minutes=1)


def kind_of(words: str) -> TroubleKind:
    return next((kind for kind, pattern in MEANINGS if pattern.search(words)), TroubleKind.crashed)


def reset_at(words: str, now: float) -> float:
    """When a limited provider answers again, in seconds since the epoch, as far as the words tell."""
    readings = (reading(words, now) for reading in _READINGS)
    return next((moment for moment in readings if moment is not None), now + UNKNOWN_WAIT)


def _epoch(words: str, _now: float) -> float | None:
    found = _EPOCH.search(words)
    return float(found[1]) if found else None


def _moment(words: str, _now: float) -> float | None:
    found = _MOMENT.search(words)
    return datetime.fromisoformat(found[1]).timestamp() if found else None


def _wait(words: str, now: float) -> float | None:
    found = _WAIT.search(words)
    return (
        now + sum(float(number) * _SECONDS[unit.lower()] for number, unit in _PART.findall(found[1])) if found else None
    )


def _day(words: str, _now: float) -> float | None:
    found = _DAY_AND_CLOCK.search(words)
    if not found:
        return None
    told = datetime.strptime(" ".join(found.groups()), "%b %d %Y %I:%M %p").astimezone()
    return (told + _MINUTE).timestamp()


def _clock(words: str, now: float) -> float | None:
    """The next end of the minute that the clock here shows; Codex leaves the seconds out."""
    found = _CLOCK.search(words)
    if not found:
        return None
    here = datetime.fromtimestamp(now).astimezone()
    clock = datetime.strptime(found[1], "%I:%M %p").time()  # noqa: DTZ007 - the zone is the one of this machine
    told = here.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0) + _MINUTE
    return (told if told > here else told + timedelta(days=1)).timestamp()


_READINGS: tuple[Callable[[str, float], float | None], ...] = (_epoch, _moment, _wait, _day, _clock)
