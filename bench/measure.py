"""What all measurements share: how much is done, how it is timed, and the form of what they hand back."""

import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from stopwatch import Stopwatch


class Effort(Struct, frozen=True, kw_only=True):
    """How much a run does, and who takes the time."""

    stopwatch: Stopwatch
    repetitions: int
    lives: int
    """Independent tasks in one run of an orchestrator."""
    concurrencies: tuple[int, ...]
    sizes: tuple[int, ...]
    """Tasks in a table."""
    judged: int
    """The size that the aims speak of."""
    transitions: int
    starts: int
    """Repetitions of what takes only a moment."""
    scheduled: int
    """Tasks whose agents sleep."""
    places: int
    """How many of these may sleep at once."""
    issues: tuple[int, ...]
    """Issues in a tracker."""
    files: tuple[int, ...]
    """Files in a repository."""
    cache: Path | None = None
    """Where peers stay installed between runs; without it they are left out."""


class Aim(Struct, frozen=True, kw_only=True):
    """A limit that was set before anything was measured."""

    claim: str
    value: float
    limit: float
    unit: str = ""
    at_least: bool = False
    why: str
    """What is left, and what it is spent on; told when the aim is missed."""

    @property
    def is_met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def verdict(self) -> str:
        if self.is_met:
            return "met"
        if self.limit == 0:
            return f"missed by {self.value:g}"
        return f"missed by {abs(self.value / self.limit - 1):.0%}"


class Section(Struct, frozen=True, kw_only=True):
    """One table of the page, with a sentence that says exactly what was measured."""

    title: str
    measured: str
    repetitions: str
    """How often it was measured, and which figure of these is told."""
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    aims: tuple[Aim, ...] = ()
    notes: tuple[str, ...] = ()


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds * 1000:,.0f} ms"
