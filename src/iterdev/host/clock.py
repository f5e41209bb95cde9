"""The clock."""

import time
from datetime import datetime


def now() -> float:
    """Seconds since the epoch."""
    return time.time()


def midnight(at: float) -> float:
    """The beginning of the day in the machine's time zone."""
    here = datetime.fromtimestamp(at)  # noqa: DTZ006 - the user's time zone
    return here.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
