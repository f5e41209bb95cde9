"""Changes of the machine's clock. Limits count the time that passes while the machine works, whatever its clock shows.

The journal has the time of the clock, which people read. When a machine wakes up, or its clock is set, the engine
records by how much the clock moved, and what is counted from a time in the journal moves with it.
"""

from msgspec import Struct

TOLERANCE = 5.0
"""Seconds by which the clock may differ from the time that passed; a loaded machine reads one later than the other."""


class ClockChanged(Struct, frozen=True, tag=True):
    seconds: float
    """By how much more the clock advanced than time passed; negative if the clock was set back."""


def moved_start(start: float, change: ClockChanged, now: float) -> float:
    """When something began, so that the change is not counted; what is still to begin does not begin later."""
    return min(start + change.seconds, max(start, now))


def moved_end(end: float, change: ClockChanged) -> float:
    """The end of a pause, which is the time of another machine: the pause continues while this one sleeps.

    If the clock was set back, the end would otherwise be further away than it was.
    """
    return end + min(change.seconds, 0)
