"""The time at which a limit of a provider is lifted, parsed from the message of an agent."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_UNIT = r"(?:ms|d(?:ays?)?|h(?:ours?|rs?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_SPAN = rf"(?:\d+(?:\.\d+)? ?{_UNIT}[\s,]*(?:and )?)+"

_EPOCH = re.compile(r"(?:\||\bresets?(?:_at|\s+(?:at|on))?\W{1,4})(\d{10})(?:\d{3})?\b", re.IGNORECASE)
_MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))")
_WAIT = re.compile(rf"(?:retry|again|resets?|wait)\W{{0,3}}(?:\w+\W{{1,4}}){{0,2}}?({_SPAN})", re.IGNORECASE)
_PART = re.compile(rf"(\d+(?:\.\d+)?) ?({_UNIT})", re.IGNORECASE)
_BARE_WAIT = re.compile(
    r"(?:retry.after|(?:again|retry|resets?) (?:in|after))\W{1,3}(\d+(?:\.\d+)?)\b(?!:)", re.IGNORECASE
)
_DAY = re.compile(r"\bat ([A-Z][a-z]{2}) (\d{1,2})(?:st|nd|rd|th), (\d{4}) (\d{1,2}:\d\d [AP]M)")
_CLOCK = re.compile(r"\b(resets?(?: at)?|again at) (\d{1,2})(?::(\d\d))? ?([ap])m\b(?: \(([\w/+-]+)\))?", re.IGNORECASE)
_MINUTE = timedelta(minutes=1)


def reset_at(words: str, now: float) -> float | None:
    """The time that a message names, in seconds since the epoch."""
    readings = (reading(words, now) for reading in _READINGS)
    return next((moment for moment in readings if moment is not None), None)


def _epoch(words: str, _now: float) -> float | None:
    found = _EPOCH.search(words)
    return float(found[1]) if found else None


def _moment(words: str, _now: float) -> float | None:
    found = _MOMENT.search(words)
    return datetime.fromisoformat(found[1]).timestamp() if found else None


def _wait(words: str, now: float) -> float | None:
    if found := _WAIT.search(words):
        return now + sum(float(number) * _seconds(unit.lower()) for number, unit in _PART.findall(found[1]))
    found = _BARE_WAIT.search(words)
    return now + float(found[1]) if found else None


def _seconds(unit: str) -> float:
    return _SECONDS["ms" if unit == "ms" else unit[0]]


def _day(words: str, _now: float) -> float | None:
    """The end of a minute of some day, on the clock of this machine."""
    found = _DAY.search(words)
    if not found:
        return None
    minute = datetime.strptime(" ".join(found.groups()), "%b %d %Y %I:%M %p").astimezone()
    return (minute + _MINUTE).timestamp()


def _clock(words: str, now: float) -> float | None:
    """The next moment at which a clock in the zone, or here, shows the time."""
    found = _CLOCK.search(words)
    if not found:
        return None
    saying, hour, minute, half, zone = found.groups()
    try:
        there = datetime.fromtimestamp(now, ZoneInfo(zone)) if zone else datetime.fromtimestamp(now).astimezone()
        of_day = int(hour) % 12 + 12 * (half.lower() == "p")
        named = there.replace(hour=of_day, minute=int(minute or 0), second=0, microsecond=0)
    except (KeyError, ValueError, OSError):
        return None
    # Codex, which says "again at", omits the seconds.
    moment = named + _MINUTE if "again" in saying.lower() else named
    return (moment if moment > there else moment + timedelta(days=1)).timestamp()


_READINGS: tuple[Callable[[str, float], float | None], ...] = (_epoch, _moment, _wait, _day, _clock)
