"""All scenarios with all agents that were asked for, a few at a time: who is there, and how each did."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import gettempdir

import anyio
import msgspec

from iterdev.agents.contract import Probe
from iterdev.conformance.agent_setup import client
from iterdev.conformance.known_deviations import deviation
from iterdev.conformance.scenario_run import seen
from iterdev.conformance.scenarios import PATIENCE, SCENARIOS, Scenario
from iterdev.conformance.verdict import Checked, Judged, judge
from iterdev.host.processes.spawn import Spawn, Supervisor

AT_ONCE = 3
"""Scenarios that are played at the same time; most of their time is waiting."""

Tell = Callable[[str, Judged], None]
"""Hears the agent and how it did, as soon as a scenario is over."""


def check(names: Sequence[str], tell: Tell) -> tuple[Checked, ...]:
    """Tries every scenario with each of the agents that is installed."""
    probes = {name: client(name, Path(gettempdir())).probe() for name in names}
    results = anyio.run(_play, [name for name, probe in probes.items() if probe.installed], tell)
    return tuple(_checked(name, probe, results.get(name, {})) for name, probe in probes.items())


def _checked(name: str, probe: Probe, results: dict[str, Judged]) -> Checked:
    return Checked(
        agent=name,
        installed=probe.installed,
        version=probe.version,
        note=probe.note,
        hint=probe.hint,
        results=tuple(results[scenario.name] for scenario in SCENARIOS if results),
    )


async def _play(names: Sequence[str], tell: Tell) -> dict[str, dict[str, Judged]]:
    results: dict[str, dict[str, Judged]] = {name: {} for name in names}
    places = anyio.CapacityLimiter(AT_ONCE)

    async def play(name: str, scenario: Scenario, spawn: Spawn) -> None:
        async with places:
            result = await _played(name, scenario, spawn)
        results[name][scenario.name] = result
        tell(name, result)

    async with Supervisor() as supervisor, anyio.create_task_group() as group:
        for name in names:
            for scenario in sorted(SCENARIOS, key=lambda scenario: not scenario.takes_long):
                group.start_soon(play, name, scenario, supervisor.spawn)
    return results


async def _played(name: str, scenario: Scenario, spawn: Spawn) -> Judged:
    known, began = deviation(name, scenario.name), anyio.current_time()
    patience = known.patience if known else PATIENCE
    try:
        evidence = await seen(name, scenario, spawn, patience=patience)
        if not evidence.asked and scenario.limit < PATIENCE:
            # It had not even started: on a busy machine the short time of this scenario can be too short.
            longer = msgspec.structs.replace(scenario, limit=PATIENCE)
            evidence = await seen(name, longer, spawn, patience=2 * PATIENCE)
    except Exception as error:  # noqa: BLE001 - whatever an agent does to its adapter is a result of its own
        words = f"the adapter broke: {type(error).__name__}: {error}"
        return Judged(scenario=scenario.name, standing="failed", misses=(words,))
    return judge(scenario, known, evidence, anyio.current_time() - began)
