"""Checks the way between an engine and its hosts, from either side, and says how to fix what is wrong."""

import tempfile
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from iterdev.app.agents import agent_view
from iterdev.app.doctor import Finding
from iterdev.app.remote.extra import require_extra
from iterdev.core.errors import IterdevError
from iterdev.core.formatting import duration
from iterdev.core.host_settings import HostSettings
from iterdev.core.settings import RemoteSettings
from iterdev.engine.repository import Repository
from iterdev.execution import wire_format
from iterdev.execution.temporal.keys import KeyRing, read_keys
from iterdev.execution.temporal.names import Host
from iterdev.host import clock
from iterdev.host.git.mirrors import open_mirror, probe_remote, remote_address, without_login
from iterdev.host.threads import in_thread

if TYPE_CHECKING:
    from iterdev.execution.temporal.connection import Connection

KEPT = timedelta(days=3)
"""How long the server should know how an attempt ended: over a weekend."""
SKEW = 60.0
"""Seconds by which the clocks of machines may differ; certificates and people are not more patient."""


async def engine_findings(repository: Repository, agents: Collection[str]) -> AsyncGenerator[Finding]:
    """What may keep this machine from the hosts that a run needs."""
    settings = repository.settings.remote
    async with aclosing(_guarded(_engine_checks(settings, agents))) as found:
        async for finding in found:
            yield finding
    yield await in_thread(_git_finding, repository.top, settings.git)


async def host_findings(settings: HostSettings) -> AsyncGenerator[Finding]:
    """What this machine offers as a host, and whether it can."""
    async with aclosing(_guarded(_server_checks(settings.profile, settings.key))) as found:
        async for finding in found:
            yield finding
    if not settings.agents:
        yield Finding("agents", "this host offers no agent", "iterdev worker --agent claude=1")
    for finding in await in_thread(lambda: [*_offered(settings), *_repositories(settings)]):
        yield finding


async def _guarded(checks: AsyncGenerator[Finding]) -> AsyncGenerator[Finding]:
    """The findings up to the first after which nothing more can be checked."""
    try:
        async for finding in checks:
            yield finding
    except IterdevError as error:
        yield Finding("hosts", error.message, error.hint)


async def _engine_checks(settings: RemoteSettings, agents: Collection[str]) -> AsyncGenerator[Finding]:
    async for finding in _server_checks(settings.profile, settings.key):
        yield finding
    # Loaded here, because it takes half a second and 20 MB.
    from iterdev.execution.temporal.connection import connect  # noqa: PLC0415
    from iterdev.execution.temporal.host_list import list_hosts  # noqa: PLC0415
    from iterdev.execution.temporal.offers import lacking  # noqa: PLC0415
    from iterdev.execution.temporal.probe import probe  # noqa: PLC0415

    connection = await connect(settings.profile, read_keys(settings.key))
    for finding in _server_limits(connection):
        yield finding
    hosts = await list_hosts(connection.client)
    for finding in _versions(hosts):
        yield finding
    missing = await lacking(connection.client, agents)
    for agent in sorted(agents):
        if why := missing.get(agent):
            yield Finding(f"agent {agent}", why, f"iterdev worker --agent {agent}=1    # on a host")
            continue
        # A new host is not listed for some seconds.
        offering = f"agent {agent} on {', '.join(host.name for host in hosts if _offers(host, agent)) or 'a new host'}"
        try:
            answer = await probe(connection.client, agent)
        except IterdevError as error:
            yield Finding(offering, error.message, error.hint)
            continue
        yield Finding(offering + ("" if answer else " (no answer: all slots are taken, or it has just ended)"))
        if answer and abs(skew := answer.clock - clock.now()) > SKEW:
            problem = f"it differs by {duration(abs(skew))} from this one"
            yield Finding(f"clock of {answer.host}", problem, "timedatectl set-ntp true")


async def _server_checks(profile: str, key: str) -> AsyncGenerator[Finding]:
    require_extra()
    keys = read_keys(key)
    yield Finding(f"key {keys.sealing.id} in {keys.file}{_older(keys)}")
    from iterdev.execution.temporal.connection import connect  # noqa: PLC0415

    connection = await connect(profile, keys)
    yield Finding(f"Temporal at {connection.address}, namespace {connection.namespace}")


def _server_limits(connection: "Connection") -> Iterator[Finding]:
    """What of the server is an engine's concern: it asks it how attempts ended, and sends the largest messages."""
    if connection.retention < KEPT:
        yield Finding(
            "retention",
            f"the server forgets after {duration(connection.retention.total_seconds())} how an attempt ended",
            f"temporal operator namespace update --namespace {connection.namespace} --retention 7d"
            f" --address {connection.address}",
        )
    if 0 < connection.payload_limit < wire_format.LARGEST:
        yield Finding(
            "size of messages",
            f"the server refuses more than {connection.payload_limit:,} bytes, and messages may have"
            f" {wire_format.LARGEST:,}",
            "set limit.blobSize.error in the dynamic configuration of the server",
        )


def _older(keys: KeyRing) -> str:
    others = len(keys.keys) - 1
    return f", and {others} more that only open" if others else ""


def _offers(host: Host, agent: str) -> bool:
    return any(one.agent == agent and one.wire == wire_format.WIRE for one in host.agents)


def _versions(hosts: Sequence[Host]) -> Iterator[Finding]:
    """Hosts of another version of the messages never see an order of this engine."""
    for host in hosts:
        versions = sorted({one.wire for one in host.agents} - {wire_format.WIRE})
        if versions:
            yield Finding(
                f"host {host.name}",
                f"its iterdev {host.version} speaks version {versions[0]} of the messages, this one {wire_format.WIRE}",
                "pip install --upgrade 'iterdev[temporal]'    # the same version everywhere",
            )


def _git_finding(top: Path, remote: str) -> Finding:
    try:
        address = remote_address(top, remote)
        probe_remote(top, address, "engine")
    except IterdevError as error:
        return Finding("git remote", error.message, error.hint)
    return Finding(f"git remote {without_login(address)}")


def _offered(settings: HostSettings) -> Iterator[Finding]:
    home = Path.home()
    for name, offered in settings.agents.items():
        agent = agent_view(settings.agents, home, name)
        note = f" ({agent.note})" if agent.note else ""
        yield Finding(
            f"agent {name} {agent.version}".rstrip() + f", slots: {offered.slots}{note}", agent.problem, agent.hint
        )


def _repositories(settings: HostSettings) -> Iterator[Finding]:
    if not settings.repositories:
        yield Finding(
            "repositories",
            "this host works on none, and refuses every order",
            'add [repositories."URL"] to host.toml, with the address that `git remote get-url origin` prints',
        )
    for address, repository in settings.repositories.items():
        folder = Path(repository.belongings).expanduser() if repository.belongings else None
        if folder and not folder.is_dir():
            yield Finding(
                f"repository {without_login(address)}", f'there is no folder "{folder}"', f"mkdir -p {folder}"
            )
            continue
        with tempfile.TemporaryDirectory(prefix="iterdev-probe-") as mirror:
            try:
                probe_remote(open_mirror(Path(mirror)), address, settings.name)
            except IterdevError as error:
                yield Finding(f"repository {without_login(address)}", error.message, error.hint)
            else:
                yield Finding(f"repository {without_login(address)}")
