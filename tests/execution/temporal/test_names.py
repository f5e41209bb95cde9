"""Names on the server can be read back."""

import pytest

from iterdev.execution.temporal.names import HostIdentity, agent_of, agent_queue, host_identity, session_queue


@pytest.mark.parametrize("agent", ["claude", "session.x", "mine-2", "a.b"])
def test_the_agent_of_a_queue_is_known(agent: str) -> None:
    assert agent_of(agent_queue(agent, 7)) == (agent, 7)


@pytest.mark.parametrize("queue", ["claude", "iterdev.vx.agent.claude", session_queue("agent.claude"), "iterdev.v1"])
def test_other_queues_belong_to_no_agent(queue: str) -> None:
    assert agent_of(queue) is None


def test_a_host_is_known_by_its_identity() -> None:
    host = HostIdentity("builder@home", "0.1.0")

    assert host_identity(str(host)) == host
    assert host_identity("123@laptop") == HostIdentity("123@laptop", "")
