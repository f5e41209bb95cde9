"""Takes samples, and takes those again that other programs disturbed."""

import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

QUIET = 0.05
"""The share of the processors that others may take during a sample."""
TICK = 1 / os.sysconf("SC_CLK_TCK")
PAUSE = 1.0


class Moment(Struct, frozen=True, kw_only=True):
    """Seconds since some beginning."""

    clock: float
    busy: float
    """Of all processors together."""
    ours: float
    """Of this process and of those it has seen ending."""


class Stopwatch:
    """Repeats a disturbed sample until its patience, in seconds, is used up; each section begins with all of it."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._left = patience
        self._kept = 0
        self._disturbed = 0

    def begin_section(self) -> None:
        self._left = self.patience

    @property
    def spent(self) -> float:
        """Seconds that this section has lost to other programs."""
        return self.patience - self._left

    def medians(self, repetitions: int, contestants: Mapping[str, Callable[[], float]]) -> dict[str, float]:
        """Lets the contestants take turns, so that a change of the machine meets all of them; seconds each."""
        seconds: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(repetitions):
            for name, contestant in contestants.items():
                seconds[name].append(self._sample(contestant))
        return {name: statistics.median(values) for name, values in seconds.items()}

    @property
    def verdict(self) -> str:
        return (
            f"{self._kept - self._disturbed} of {self._kept} samples were taken while other programs used less than "
            f"{QUIET:.0%} of the processors"
        )

    def _sample(self, contestant: Callable[[], float]) -> float:
        while True:
            begin = _now()
            seconds = contestant()
            end = _now()
            quiet = _is_quiet(begin, end)
            if quiet or self._left <= 0:
                self._kept += 1
                self._disturbed += not quiet
                return seconds
            self._left -= end.clock - begin.clock
            self._wait_for_quiet()

    def _wait_for_quiet(self) -> None:
        quiet = False
        while not quiet and self._left > 0:
            begin = _now()
            time.sleep(PAUSE)
            quiet = _is_quiet(begin, _now())
            self._left -= PAUSE


def _now() -> Moment:
    # user nice system idle iowait irq softirq steal
    ticks = [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]
    busy = (sum(ticks) - ticks[3] - ticks[4]) * TICK
    return Moment(clock=time.monotonic(), busy=busy, ours=sum(os.times()[:4]))


def _is_quiet(begin: Moment, end: Moment) -> bool:
    """Whether others took next to nothing, as far as whole ticks of the kernel's clock can tell."""
    foreign = (end.busy - begin.busy) - (end.ours - begin.ours)
    return foreign <= QUIET * (end.clock - begin.clock) * (os.cpu_count() or 1) + 2 * TICK
