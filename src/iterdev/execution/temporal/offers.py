"""Which agents are offered by hosts now."""

from collections.abc import Collection

from temporalio.api.enums.v1 import TaskQueueType, WorkerStatus
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, ListWorkersRequest
from temporalio.client import Client

from iterdev.core.formatting import counted
from iterdev.execution.temporal.connection import TIMEOUT
from iterdev.execution.temporal.names import agent_of, agent_queue
from iterdev.execution.wire_format import WIRE

GONE = (WorkerStatus.WORKER_STATUS_SHUTDOWN, WorkerStatus.WORKER_STATUS_SHUTTING_DOWN)


async def lacking(client: Client, agents: Collection[str]) -> dict[str, str]:
    """Those of the agents that no host offers, and why."""
    unasked = [agent for agent in agents if not await _is_polled(client, agent)]
    if not unasked:
        return {}
    # A host all of whose slots are taken does not poll.
    request = ListWorkersRequest(namespace=client.namespace)
    listed = await client.workflow_service.list_workers(request, timeout=TIMEOUT)
    workers = [one.worker_heartbeat for one in listed.workers_info if one.worker_heartbeat.status not in GONE]
    offers = {(one.worker_identity, named) for one in workers if (named := agent_of(one.task_queue))}
    hosts = len({identity for identity, _ in offers})
    why = f"{counted(hosts, 'host')} there, and none has it" if hosts else "no host is there"
    return {agent: why for agent in unasked if (agent, WIRE) not in {offered for _, offered in offers}}


async def _is_polled(client: Client, agent: str) -> bool:
    """Whether a host has asked for attempts with the agent in the last minutes."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=agent_queue(agent)),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    )
    return bool((await client.workflow_service.describe_task_queue(request, timeout=TIMEOUT)).pollers)
