"""What is known of hosts, from a real server."""

from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.enums.v1 import WorkerStatus
from temporalio.api.worker.v1 import WorkerHeartbeat, WorkerSlotsInfo
from tests.app.remote.conftest import host
from tests.conftest import Repo
from tests.temporal_server import TemporalServer

from iterdev.app.remote.hosts import hosts
from iterdev.execution.temporal.host_list import hosts_of
from iterdev.execution.temporal.keys import add_key
from iterdev.execution.temporal.names import HostIdentity, OfferedAgent, agent_queue


def heartbeat(name: str, queue: str, *, busy: int = 0, free: int = 2, at: int = 9, status: int = 1) -> WorkerHeartbeat:
    return WorkerHeartbeat(
        worker_identity=str(HostIdentity(name, "0.1.0")),
        task_queue=queue,
        status=WorkerStatus.ValueType(status),
        heartbeat_time=Timestamp(seconds=at),
        activity_task_slots_info=WorkerSlotsInfo(current_used_slots=busy, current_available_slots=free),
    )


def test_a_host_offers_what_its_workers_serve() -> None:
    claude, codex = agent_queue("claude"), agent_queue("codex")

    found = hosts_of([heartbeat("b", codex), heartbeat("a", claude, busy=1, at=90), heartbeat("b", claude, at=130)])

    assert [(one.name, one.last_seen) for one in found] == [("a", 90), ("b", 130)]
    assert found[0].agents == (OfferedAgent(agent="claude", slots=3, busy=1, wire=1),)
    assert [offered.agent for offered in found[1].agents] == ["claude", "codex"]


def test_a_worker_that_was_started_again_counts_once_and_one_that_ended_not_at_all() -> None:
    claude = agent_queue("claude")
    ended = heartbeat("b", claude, status=WorkerStatus.WORKER_STATUS_SHUTDOWN)

    found = hosts_of([heartbeat("a", claude, busy=2, at=200), heartbeat("a", claude, at=100), ended])

    assert [[(one.slots, one.busy) for one in host.agents] for host in found] == [[(4, 2)]]


def test_a_host_whose_workers_all_shut_down_is_drained() -> None:
    draining = heartbeat("a", agent_queue("claude"), status=WorkerStatus.WORKER_STATUS_SHUTTING_DOWN)

    assert hosts_of([draining])[0].drains


def test_workers_of_other_programs_are_no_hosts() -> None:
    assert hosts_of([heartbeat("a", "billing")]) == ()


@pytest.mark.anyio
async def test_the_hosts_of_a_repository_are_listed(
    server: TemporalServer, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = tmp_path / "remote.key"
    add_key(str(key))
    repo.write("iterdev.toml", f'[remote]\nengine = "temporal"\nkey = "{key}"\n')
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)

    async with host(server, key, "builder-1", mine=3, yours=1):
        view = await hosts(repo.path)

    found = next(one for one in view.hosts if one.name == "builder-1")
    assert [one.agent for one in found.agents] == ["mine", "yours"]
    assert (view.address, found.version, found.compatible) == (server.address, "0.1.0", True)
