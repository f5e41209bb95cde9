"""A miss fails unless exactly this miss is known; a known miss that no longer occurs is reported."""

from msgspec.structs import replace

from iterdev.agents.contract import AgentFailure
from iterdev.agents.registry import KNOWN_AGENTS
from iterdev.conformance.agent_setup import CLIENTS
from iterdev.conformance.expectations import Failed, NoReply, Observation
from iterdev.conformance.known_deviations import DEVIATIONS, Deviation, deviation
from iterdev.conformance.scenarios import SCENARIOS, Scenario
from iterdev.conformance.verdict import judge
from iterdev.core.limits.agent_failures import FailureKind

SCENARIO = Scenario(name="500", claim="", steps=(), expects=(Failed(FailureKind.overloaded),))
KNOWN = Deviation(agents=("x",), scenario="500", expects=(NoReply(),), behaviour="It waits.", reaction="We wait.")
SILENT = Observation(replies=(None,), events=(), requests=(), first_request_at=None, notes=(), token="", files={})
OVERLOADED = replace(SILENT, replies=(AgentFailure(kind=FailureKind.overloaded, message=""),))
CRASHED = replace(SILENT, replies=(AgentFailure(kind=FailureKind.crashed, message="bang"),))


def test_what_is_expected_is_ok() -> None:
    assert judge(SCENARIO, None, OVERLOADED, 1).standing == "ok"


def test_a_miss_without_an_explanation_is_a_failure() -> None:
    assert judge(SCENARIO, None, SILENT, 1).standing == "failed"


def test_a_known_miss_is_explained_with_the_agent_s_behaviour_and_our_reaction() -> None:
    result = judge(SCENARIO, KNOWN, SILENT, 1)

    assert (result.standing, result.behaviour, result.reaction) == ("explained", "It waits.", "We wait.")
    assert result.misses == ('expected "overloaded", got no reply',)


def test_an_explanation_covers_no_other_miss() -> None:
    result = judge(SCENARIO, KNOWN, CRASHED, 1)

    assert result.standing == "failed"
    assert result.misses == ('expected no reply, got "crashed" (bang)',)


def test_an_explanation_covers_no_process_that_is_left() -> None:
    result = judge(SCENARIO, KNOWN, replace(SILENT, left=["sleep 600"]), 1)

    assert (result.standing, result.left) == ("failed", ("sleep 600",))


def test_a_known_miss_that_no_longer_occurs_is_reported() -> None:
    result = judge(SCENARIO, KNOWN, OVERLOADED, 1)

    assert (result.standing, result.news) == ("ok", "no longer so: It waits.")


def test_every_deviation_is_about_a_scenario_and_agents_that_exist_and_says_why() -> None:
    names = {scenario.name for scenario in SCENARIOS}

    assert all(known.scenario in names for known in DEVIATIONS)
    assert all(set(known.agents) <= set(KNOWN_AGENTS) for known in DEVIATIONS)
    assert CLIENTS.keys() == set(KNOWN_AGENTS)
    assert all(known.behaviour and known.reaction for known in DEVIATIONS)
    assert deviation("claude", "write a file") is None
