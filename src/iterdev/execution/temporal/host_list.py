"""The hosts that a Temporal server knows of, with what each offers."""

from collections.abc import Iterable

from temporalio.api.enums.v1 import WorkerStatus
from temporalio.api.worker.v1 import WorkerHeartbeat
from temporalio.api.workflowservice.v1 import ListWorkersRequest
from temporalio.client import Client
from temporalio.service import RPCError

from iterdev.execution.temporal.connection import TIMEOUT, unanswered
from iterdev.execution.temporal.names import Host, OfferedAgent, agent_of, host_identity

PAGE = 200


async def list_hosts(client: Client) -> tuple[Host, ...]:
    """Every host that has told the server of itself lately, by name."""
    heartbeats, token = list[WorkerHeartbeat](), b""
    while True:
        request = ListWorkersRequest(namespace=client.namespace, page_size=PAGE, next_page_token=token)
        try:
            answer = await client.workflow_service.list_workers(request, timeout=TIMEOUT)
        except RPCError as error:
            raise unanswered(client, error) from error
        heartbeats += (worker.worker_heartbeat for worker in answer.workers_info)
        if not (token := answer.next_page_token):
            return hosts_of(heartbeats)


def hosts_of(heartbeats: Iterable[WorkerHeartbeat]) -> tuple[Host, ...]:
    """A host has a Temporal worker for each agent; of those with one identity and queue the newest counts."""
    workers = dict[str, dict[str, WorkerHeartbeat]]()
    for heartbeat in sorted(heartbeats, key=_seconds):
        if agent_of(heartbeat.task_queue) and heartbeat.status != WorkerStatus.WORKER_STATUS_SHUTDOWN:
            workers.setdefault(heartbeat.worker_identity, {})[heartbeat.task_queue] = heartbeat
    return tuple(_host(identity, list(found.values())) for identity, found in sorted(workers.items()))


def _host(identity: str, workers: list[WorkerHeartbeat]) -> Host:
    host = host_identity(identity)
    draining = WorkerStatus.WORKER_STATUS_SHUTTING_DOWN
    return Host(
        name=host.name,
        version=host.version,
        agents=tuple(sorted(filter(None, map(_offered, workers)), key=lambda offered: offered.agent)),
        last_seen=max(map(_seconds, workers)),
        drains=all(worker.status == draining for worker in workers),
    )


def _offered(worker: WorkerHeartbeat) -> OfferedAgent | None:
    slots = worker.activity_task_slots_info
    named = agent_of(worker.task_queue)
    busy, free = slots.current_used_slots, slots.current_available_slots
    return named and OfferedAgent(agent=named[0], wire=named[1], slots=busy + free, busy=busy)


def _seconds(heartbeat: WorkerHeartbeat) -> float:
    return heartbeat.heartbeat_time.ToNanoseconds() / 1e9
