"""The clock, and the only way to it."""

import time
from datetime import datetime


def now() -> float:
    """Seconds since the epoch."""
    return time.time()


def midnight(at: float) -> float:
    """When the day began, where this machine is."""
    here = datetime.fromtimestamp(at)  # noqa: DTZ006 - the day is the one on the user's wall
    return here.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
