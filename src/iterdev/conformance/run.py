"""Plays all scenarios with the chosen agents, a few at a time, and reports the results."""

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import gettempdir

import anyio
import msgspec

from iterdev.agents.contract import Probe
from iterdev.conformance.agent_setup import agent_in_home
from iterdev.conformance.known_deviations import deviation
from iterdev.conformance.scenario_run import observe
from iterdev.conformance.scenarios import SCENARIOS, TURN_TIMEOUT, Scenario
from iterdev.conformance.verdict import AgentReport, ScenarioResult, judge
from iterdev.host.processes.spawn import Spawn, Supervisor

PARALLEL_SCENARIOS = 3
"""Most of the time of a scenario is waiting."""

Progress = Callable[[str, ScenarioResult], None]
"""Called with the agent and the result after each scenario."""


def check(names: Sequence[str], progress: Progress) -> tuple[AgentReport, ...]:
    """Plays every scenario with each of the agents that is installed."""
    probes = {name: agent_in_home(name, Path(gettempdir())).probe() for name in names}
    results = anyio.run(_play, [name for name, probe in probes.items() if probe.installed], progress)
    return tuple(_report(name, probe, results.get(name, {})) for name, probe in probes.items())


def _report(name: str, probe: Probe, results: dict[str, ScenarioResult]) -> AgentReport:
    return AgentReport(
        agent=name,
        installed=probe.installed,
        version=probe.version,
        note=probe.note,
        hint=probe.hint,
        results=tuple(results[scenario.name] for scenario in SCENARIOS if results),
    )


async def _play(names: Sequence[str], progress: Progress) -> dict[str, dict[str, ScenarioResult]]:
    results: dict[str, dict[str, ScenarioResult]] = {name: {} for name in names}
    limiter = anyio.CapacityLimiter(PARALLEL_SCENARIOS)

    async def play(name: str, scenario: Scenario, spawn: Spawn) -> None:
        async with limiter:
            result = await _played(name, scenario, spawn)
        results[name][scenario.name] = result
        progress(name, result)

    async with Supervisor() as supervisor, anyio.create_task_group() as group:
        for name in names:
            for scenario in sorted(SCENARIOS, key=lambda scenario: not scenario.takes_long):
                group.start_soon(play, name, scenario, supervisor.spawn)
    return results


async def _played(name: str, scenario: Scenario, spawn: Spawn) -> ScenarioResult:
    known, started = deviation(name, scenario.name), anyio.current_time()
    timeout = known.timeout if known else TURN_TIMEOUT
    try:
        observation = await observe(name, scenario, spawn, turn_timeout=timeout)
        if not observation.requests and scenario.limit < TURN_TIMEOUT:
            # The agent had not even started: the limit of this scenario can be too short for a busy machine.
            longer = msgspec.structs.replace(scenario, limit=TURN_TIMEOUT)
            observation = await observe(name, longer, spawn, turn_timeout=2 * TURN_TIMEOUT)
    except Exception as error:  # noqa: BLE001 - an adapter that fails is a result
        words = f"the adapter failed: {type(error).__name__}: {error}"
        return ScenarioResult(scenario=scenario.name, standing="failed", misses=(words,))
    return judge(scenario, known, observation, anyio.current_time() - started)
