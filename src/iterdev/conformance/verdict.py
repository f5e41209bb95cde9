"""From what was seen in a scenario to a standing: as expected, explained, or failed."""

from typing import Literal

from msgspec import Struct

from iterdev.conformance.expectations import Seen, misses
from iterdev.conformance.known_deviations import Deviation
from iterdev.conformance.scenarios import Scenario


class Judged(Struct, frozen=True, kw_only=True):
    scenario: str
    standing: Literal["ok", "explained", "failed"]
    misses: tuple[str, ...] = ()
    """What was not as expected."""
    behaviour: str = ""
    """Why, when that is known: what the agent does by itself."""
    reaction: str = ""
    """What iterdev does about it."""
    news: str = ""
    """That a known miss is none any more."""
    left: tuple[str, ...] = ()
    """Processes that were alive afterwards; always a failure."""
    seconds: float = 0


class Checked(Struct, frozen=True, kw_only=True):
    agent: str
    installed: bool
    version: str
    note: str = ""
    hint: str = ""
    results: tuple[Judged, ...] = ()

    @property
    def failed(self) -> bool:
        return any(result.standing == "failed" for result in self.results)


def judge(scenario: Scenario, known: Deviation | None, seen: Seen, seconds: float) -> Judged:
    name, left, took = scenario.name, tuple(seen.left), round(seconds, 1)
    missed = misses(scenario.expects, seen)
    if not missed:
        news = f"no longer so: {known.behaviour}" if known else ""
        return Judged(scenario=name, standing="ok", news=news, seconds=took)
    if known is None:
        return Judged(scenario=name, standing="failed", misses=missed, left=left, seconds=took)
    unexplained = misses(known.expects, seen)
    if unexplained:
        return Judged(scenario=name, standing="failed", misses=unexplained, left=left, seconds=took)
    return Judged(
        scenario=name,
        standing="explained",
        misses=missed,
        behaviour=known.behaviour,
        reaction=known.reaction,
        seconds=took,
    )
