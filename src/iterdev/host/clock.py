"""The clock, and the time zone of the user."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

from iterdev.core.limits.clock_changes import TOLERANCE


def now() -> float:
    """Seconds since the epoch."""
    return time.time()


class ClockWatch:
    """Notices when the clock does not show the time that passed: the machine slept, or its clock was set."""

    def __init__(self, now: Callable[[], float], passed: Callable[[], float] = time.monotonic) -> None:
        self._now, self._passed = now, passed
        self._offset = now() - passed()

    def has_changed(self) -> bool:
        return self._change(self._now()) != 0

    def change(self, now: float) -> float:
        """By how many seconds the clock, which shows `now`, moved since it was last asked for."""
        found = self._change(now)
        self._offset += found
        return found

    def _change(self, now: float) -> float:
        change = now - self._passed() - self._offset
        return change if abs(change) > TOLERANCE else 0


def midnight(at: float) -> float:
    """The beginning of the day in the machine's time zone."""
    here = datetime.fromtimestamp(at)  # noqa: DTZ006 - the user's time zone
    return here.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


class LocalZone(tzinfo):
    """The time zone of the user: that of the variable TZ, or else of the machine.

    Its offset is the one at the moment in question, so that summer and winter are told apart.
    """

    def fromutc(self, dt: datetime) -> datetime:
        return dt.replace(tzinfo=UTC).astimezone()

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return dt.replace(tzinfo=None).astimezone().utcoffset() if dt else None

    def dst(self, _: datetime | None) -> None:
        """Unknown; the offset has it."""

    def tzname(self, dt: datetime | None) -> str | None:
        return dt.replace(tzinfo=None).astimezone().tzname() if dt else None


LOCAL = LocalZone()
