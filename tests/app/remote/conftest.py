"""A real server, and machines that are hosts as far as the server knows."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from temporalio.client import Client
from temporalio.worker import Worker
from tests import temporal_server
from tests.temporal_server import TemporalServer

from iterdev.execution.temporal.connection import connect
from iterdev.execution.temporal.host_list import list_hosts
from iterdev.execution.temporal.keys import read_keys
from iterdev.execution.temporal.names import HostIdentity, agent_queue
from iterdev.execution.temporal.probe import answer_probe

PATIENCE = 60


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with temporal_server.running(tmp_path_factory.mktemp("temporal")) as running:
        yield running


@asynccontextmanager
async def host(server: TemporalServer, key: Path, name: str, *, wire: int = 1, **slots: int) -> AsyncIterator[None]:
    """A host that offers agents and answers probes, when the server knows of it."""
    connection = await connect(
        "default",
        read_keys(str(key)),
        identity=str(HostIdentity(name, "0.1.0")),
        environment=server.environment,
        worker_heartbeat=timedelta(seconds=1),
    )
    client = connection.client
    async with AsyncExitStack() as stack:
        for agent, most in slots.items():
            queue = agent_queue(agent, wire)
            worker = Worker(client, task_queue=queue, activities=[answer_probe], max_concurrent_activities=most)
            await stack.enter_async_context(worker)
        with anyio.fail_after(PATIENCE):
            while await _offered(client, name) < len(slots):  # noqa: ASYNC110 - the server tells nobody
                await anyio.sleep(0.1)
        yield


async def _offered(client: Client, name: str) -> int:
    return sum(len(one.agents) for one in await list_hosts(client) if one.name == name)
