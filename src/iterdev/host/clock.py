"""The clock, and the time zone of the user."""

import time
from datetime import UTC, datetime, timedelta, tzinfo


def now() -> float:
    """Seconds since the epoch."""
    return time.time()


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
