"""The result of a scenario: as expected, explained by a known deviation, or failed."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from iterdev.conformance.expectations import Observation, misses
from iterdev.conformance.known_deviations import Deviation
from iterdev.conformance.scenarios import Scenario


class ScenarioResult(Struct, frozen=True, kw_only=True):
    scenario: str
    standing: Literal["ok", "explained", "failed"]
    misses: tuple[str, ...] = ()
    """What was not as expected."""
    behaviour: str = ""
    """What the agent does instead, if that is a known deviation."""
    reaction: str = ""
    """What iterdev does about it."""
    news: str = ""
    """A known deviation that no longer occurs."""
    left: tuple[str, ...] = ()
    """Processes that were still running afterwards; always a failure."""
    seconds: float = 0


class AgentReport(Struct, frozen=True, kw_only=True):
    agent: str
    installed: bool
    version: str
    note: str = ""
    hint: str = ""
    results: tuple[ScenarioResult, ...] = ()

    @property
    def failed(self) -> bool:
        return any(result.standing == "failed" for result in self.results)


def judge(scenario: Scenario, known: Deviation | None, observation: Observation, seconds: float) -> ScenarioResult:
    result = ScenarioResult(scenario=scenario.name, standing="ok", seconds=round(seconds, 1))
    missed = misses(scenario.expects, observation)
    if not missed:
        return replace(result, news=f"no longer so: {known.behaviour}") if known else result
    unexplained = misses(known.expects, observation) if known else missed
    if known is None or unexplained:
        return replace(result, standing="failed", misses=unexplained, left=tuple(observation.left))
    return replace(result, standing="explained", misses=missed, behaviour=known.behaviour, reaction=known.reaction)
