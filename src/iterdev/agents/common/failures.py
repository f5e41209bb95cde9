"""What the words of an agent say about a failure: its kind, and when a limit is lifted. Texts for failures."""

import re
import signal
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from iterdev.core.limits.agent_failures import FailureKind

FAILURE_TEXT: Mapping[FailureKind, str] = {
    FailureKind.not_logged_in: "is not logged in",
    FailureKind.limited: "has reached a limit of its provider",
    FailureKind.overloaded: "got no answer from its provider",
    FailureKind.too_long: "was given more than fits into its context",
    FailureKind.over_budget: "has used up its budget",
}

READ = 2_000
"""Characters at either end of a message in which its kind and the time of a reset are looked for."""


def kind_in(message: str, patterns: Mapping[FailureKind, str]) -> FailureKind | None:
    """The first kind whose pattern matches; the order matters, because a message can name causes of other kinds."""
    text = _read(message)
    return next((kind for kind, pattern in patterns.items() if re.search(pattern, text, re.IGNORECASE)), None)


def _read(message: str) -> str:
    """The beginning and the end of a long message: an agent may write whole files into one."""
    return message if len(message) <= 2 * READ else f"{message[:READ]}\n{message[-READ:]}"


def exit_text(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"was ended by {known.get(-code, f'signal {-code}')}"


_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_UNIT = r"(?:ms|d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_SPAN = rf"(?:\d+(?:\.\d+)? ?{_UNIT}[\s,]*(?:and )?)+"

_WORDS = re.IGNORECASE | re.ASCII
"""Without other letters and digits: a long s would be the s of a second."""
_EPOCH = re.compile(r"(?:\||\bresets?(?:_at|\s+(?:at|on))?\W{1,4})(\d{10})(?:\d{3})?\b", _WORDS)
_MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))")
_WAIT = re.compile(rf"(?:retry|again|resets?|wait)\W{{0,3}}(?:\w+\W{{1,4}}){{0,2}}?({_SPAN})", _WORDS)
_PART = re.compile(rf"(\d+(?:\.\d+)?) ?({_UNIT})", _WORDS)
_BARE_WAIT = re.compile(r"(?:retry.after|(?:again|retry|resets?) (?:in|after))\W{1,3}(\d+(?:\.\d+)?)\b(?!:)", _WORDS)
_DAY = re.compile(r"\bat ([A-Z][a-z]{2}) (\d{1,2})(?:st|nd|rd|th), (\d{4}) (\d{1,2}:\d\d [AP]M)")
_CLOCK = re.compile(r"\b(resets?(?: at)?|again at) (\d{1,2})(?::(\d\d))? ?([ap])m\b(?: \(([\w/+-]+)\))?", _WORDS)
_MINUTE = timedelta(minutes=1)

Reader = Callable[[re.Match[str], float], float | None]


def reset_at(text: str, now: float) -> float | None:
    """The time that a message names, in seconds since the epoch."""
    words = _read(text)
    moments = (_moment(read, found, now) for pattern, read in _READERS if (found := pattern.search(words)))
    return next((moment for moment in moments if moment is not None), None)


def _moment(read: Reader, found: re.Match[str], now: float) -> float | None:
    """None for what looks like a time and is none, such as the 31st of February."""
    try:
        return read(found, now)
    except (ValueError, OverflowError, OSError):
        return None


def _wait(found: re.Match[str], now: float) -> float:
    parts = ((float(number), unit.lower()) for number, unit in _PART.findall(found[1]))
    return now + sum(number * _SECONDS["ms" if unit == "ms" else unit[0]] for number, unit in parts)


def _day(found: re.Match[str], _now: float) -> float:
    """The end of a minute of some day, on the clock of this machine."""
    minute = datetime.strptime(" ".join(found.groups()), "%b %d %Y %I:%M %p").astimezone()
    return (minute + _MINUTE).timestamp()


def _clock(found: re.Match[str], now: float) -> float | None:
    """The next moment at which a clock in the zone, or here, shows the time."""
    phrase, hour, minute, half, zone = found.groups()
    try:
        local = datetime.fromtimestamp(now, ZoneInfo(zone)) if zone else datetime.fromtimestamp(now).astimezone()
        hour_of_day = int(hour) % 12 + 12 * (half.lower() == "p")
        named = local.replace(hour=hour_of_day, minute=int(minute or 0), second=0, microsecond=0)
    except (KeyError, ValueError, OSError):
        return None
    # Codex, which says "again at", omits the seconds.
    moment = named + _MINUTE if "again" in phrase.lower() else named
    return (moment if moment > local else moment + timedelta(days=1)).timestamp()


_READERS: tuple[tuple[re.Pattern[str], Reader], ...] = (
    (_EPOCH, lambda found, _now: float(found[1])),
    (_MOMENT, lambda found, _now: datetime.fromisoformat(found[1]).timestamp()),
    (_WAIT, _wait),
    (_BARE_WAIT, lambda found, now: now + float(found[1])),
    (_DAY, _day),
    (_CLOCK, _clock),
)
