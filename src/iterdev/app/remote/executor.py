"""Where the attempts of a session run: on this machine, or on the hosts that the configuration names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import anyio
from anyio.abc import TaskGroup

from iterdev.app.remote.extra import require_extra
from iterdev.core.settings import RemoteSettings
from iterdev.engine.repository import Repository
from iterdev.engine.run import MakeExecutor
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Executor
from iterdev.execution.local import LocalExecutor
from iterdev.execution.temporal.keys import read_keys
from iterdev.host.git.mirrors import remote_address, without_login


def executor_for(repository: Repository) -> MakeExecutor:
    """What runs the attempts. What of the configuration cannot work is an error, before anything has begun."""
    if repository.runs_here:
        return LocalExecutor
    require_extra()
    settings = repository.settings.remote
    read_keys(settings.key)
    return partial(_on_hosts, settings, remote_address(repository.top, settings.git))


def check_server(repository: Repository) -> None:
    """Fails if the server through which hosts get attempts, or something else that they need, cannot be used."""
    executor_for(repository)
    from iterdev.execution.temporal.connection import connect  # noqa: PLC0415 - it takes half a second to load

    settings = repository.settings.remote
    anyio.run(connect, settings.profile, read_keys(settings.key))


@asynccontextmanager
async def _on_hosts(
    settings: RemoteSettings, address: str, context: AttemptContext, group: TaskGroup
) -> AsyncIterator[Executor]:
    from iterdev.execution.temporal.connection import connect  # noqa: PLC0415 - it takes half a second to load
    from iterdev.execution.temporal.executor import TemporalExecutor  # noqa: PLC0415

    connection = await connect(settings.profile, read_keys(settings.key))
    async with TemporalExecutor(
        connection.client,
        context,
        group,
        address=address,
        repository=without_login(address),
        heartbeat_timeout=settings.lease,
    ) as executor:
        yield executor
