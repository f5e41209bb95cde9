"""A host on this machine: carries out attempts until it is asked to stop, or to take no more."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import msgspec

from iterdev import __version__
from iterdev.app.remote.extra import require_extra
from iterdev.core.errors import HostError, UserError
from iterdev.core.host_settings import HostSettings
from iterdev.core.processes import ProcessIdentity
from iterdev.execution.temporal.keys import KeyRing, read_keys
from iterdev.execution.temporal.names import HostIdentity
from iterdev.host import paths
from iterdev.host.processes import loop_signals
from iterdev.host.processes.identity import alive

if TYPE_CHECKING:
    from iterdev.execution.temporal.connection import Connection
    from iterdev.execution.temporal.host import Stopping

DRAIN = signal.SIGUSR1
AGAIN = 5.0
"""Seconds until a server that does not answer is tried again."""


def home() -> Path:
    """The folder of this host: mirrors, worktrees, orders."""
    return paths.state_root() / "host"


async def serve(settings: HostSettings, say: Callable[[str], None]) -> None:
    """Carries out attempts until a signal comes: SIGTERM ends the agents and keeps their work, a second one at once."""
    require_extra()
    if not settings.agents:
        raise UserError("This host offers no agent", hint="iterdev worker --agent claude=1")
    if not settings.repositories:
        raise UserError(
            "This host works on no repository",
            hint='add [repositories."URL"] to host.toml; `iterdev worker --check` tries it',
        )
    from iterdev.execution.temporal import host  # noqa: PLC0415 - it takes half a second to load

    stopping = host.Stopping()
    with loop_signals.received(_Signals(stopping.stop, stopping.drain, say).receive, DRAIN):
        connection = await _connected(settings, read_keys(settings.key), stopping, say)
        if connection is None:
            return
        offered = ", ".join(f"{name} ({one.slots})" for name, one in settings.agents.items())
        say(f"host {settings.name}: {offered}")
        await host.serve(connection.client, settings, name=settings.name, home=home(), stopping=stopping, say=say)
        say(f"host {settings.name} has ended")


async def _connected(
    settings: HostSettings, keys: KeyRing, stopping: "Stopping", say: Callable[[str], None]
) -> "Connection | None":
    """The connection, when the server answers; None if the host is to stop before."""
    from iterdev.execution.temporal.connection import Unreachable, connect  # noqa: PLC0415

    identity, told = str(HostIdentity(settings.name, __version__)), ""
    while not stopping.stop.is_set() and not stopping.drain.is_set():
        try:
            return await connect(settings.profile, keys, identity=identity)
        except Unreachable as error:
            if told != error.message:
                told = error.message
                say(f"{told}; it is tried again")
        with anyio.move_on_after(AGAIN):
            await stopping.wait()
    return None


class _Signals:
    def __init__(self, stop: anyio.Event, drain: anyio.Event, say: Callable[[str], None]) -> None:
        self._stop, self._drain, self._say = stop, drain, say

    def receive(self, number: int) -> None:
        if number == DRAIN:
            self._say("taking no more attempts; waiting for the running ones to end")
            self._drain.set()
            return
        if self._stop.is_set():
            # What is left is found by the next host of this folder.
            os._exit(130)
        self._say("stopping: the agents are ended and their work is kept; interrupt again to stop at once")
        self._stop.set()


def drain() -> int:
    """Has the host of this machine take no more attempts, and end when those that run have; its process id."""
    before: ProcessIdentity | None = None
    with suppress(OSError, ValueError):
        before = msgspec.json.decode((home() / "host.json").read_bytes(), type=ProcessIdentity)
    if before is None or not alive(before):
        raise UserError(f'No host runs in "{home()}"', hint="iterdev worker    # starts one")
    try:
        os.kill(before.pid, DRAIN)
    except PermissionError as error:
        hint = f"sudo kill -USR1 {before.pid}"
        raise HostError(f"The host is a process of another user: {before.pid}", hint=hint) from error
    return before.pid
