"""Lists the hosts that engines can use."""

from pathlib import Path

from msgspec import Struct

from iterdev.app.remote.extra import require_extra
from iterdev.app.remote.host_file import host_file, read_host_settings
from iterdev.engine.repository import Repository
from iterdev.execution.temporal.keys import read_keys
from iterdev.execution.wire_format import WIRE
from iterdev.host import clock
from iterdev.host.git.checkout import NotInRepository


class AgentSlots(Struct, frozen=True, kw_only=True):
    agent: str
    slots: int
    busy: int


class HostView(Struct, frozen=True, kw_only=True):
    name: str
    version: str
    """Of iterdev."""
    agents: tuple[AgentSlots, ...]
    seen: float
    """Seconds since it was seen."""
    drains: bool
    compatible: bool
    """Whether it understands what engines of this version send."""


class HostsView(Struct, frozen=True, kw_only=True):
    address: str
    namespace: str
    hosts: tuple[HostView, ...]


async def hosts(folder: Path) -> HostsView:
    """The hosts on the server that the repository uses, or that this machine serves as a host."""
    require_extra()
    from iterdev.execution.temporal.connection import connect  # noqa: PLC0415 - it takes half a second to load
    from iterdev.execution.temporal.host_list import list_hosts  # noqa: PLC0415

    profile, key = _server(folder)
    connection = await connect(profile, read_keys(key))
    found = await list_hosts(connection.client)
    now = clock.now()
    views = (
        HostView(
            name=host.name,
            version=host.version,
            agents=tuple(AgentSlots(agent=one.agent, slots=one.slots, busy=one.busy) for one in host.agents),
            seen=max(0.0, now - host.last_seen),
            drains=host.drains,
            compatible=all(one.wire == WIRE for one in host.agents),
        )
        for host in found
    )
    return HostsView(address=connection.address, namespace=connection.namespace, hosts=tuple(views))


def _server(folder: Path) -> tuple[str, str]:
    """The profile and the key of the repository, if it uses hosts; else those of this host."""
    try:
        remote = Repository(folder).settings.remote
    except NotInRepository:
        remote = None
    if remote and remote.engine:
        return remote.profile, remote.key
    own = read_host_settings(host_file())
    return own.profile, own.key
