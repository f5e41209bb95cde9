"""A host or an engine that kills itself at an effect, or notes the effects that it passes.

    python -m tests.execution.temporal.killed host before push work
    python -m tests.execution.temporal.killed host-with-supervisor before push work
    python -m tests.execution.temporal.killed engine noting FILE

What an effect is, see `iterdev.engine.effects`. The first one of that name counts, for whichever task it is.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio

from iterdev.app.remote.executor import executor_for
from iterdev.app.remote.host_file import host_file, read_host_settings
from iterdev.app.remote.worker import home
from iterdev.app.start import Request, start
from iterdev.engine.repository import Repository
from iterdev.engine.run import RunObserver, drive
from iterdev.execution.temporal.connection import connect
from iterdev.execution.temporal.host import Stopping, serve
from iterdev.execution.temporal.keys import read_keys
from iterdev.execution.temporal.names import HostIdentity


class KillPoint:
    """`when` is before, after or noting; what is noted is added to the file of that name."""

    def __init__(self, when: str, name: str, *, with_supervisor: bool = False) -> None:
        self._when, self._name, self._with_supervisor = when, name, with_supervisor

    @contextmanager
    def observer(self, name: str, fields: Mapping[str, object]) -> Iterator[None]:
        effect = " ".join((name, *(str(fields[key]) for key in ("events",) if key in fields)))
        if self._when == "noting":
            with Path(self._name).open("a") as file:
                file.write(f"{effect}\n")
        self._kill_at("before", effect)
        yield
        self._kill_at("after", effect)

    @contextmanager
    def effect(self, name: str, **fields: str | int) -> Iterator[None]:
        with self.observer(name, fields):
            yield

    def _kill_at(self, when: str, effect: str) -> None:
        if (when, effect) != (self._when, self._name):
            return
        for child in _children() if self._with_supervisor else ():
            os.kill(child, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _children() -> list[int]:
    """The supervisor, and what else the host has started itself."""
    found = (path.read_text().split() for path in Path("/proc/self/task").glob("*/children"))
    return [int(pid) for some in found for pid in some]


async def host(point: KillPoint) -> None:
    settings = read_host_settings(host_file())
    identity = str(HostIdentity(settings.name, "0"))
    connection = await connect(settings.profile, read_keys(settings.key), identity=identity)
    stopping = Stopping()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.stop.set)
    await serve(connection.client, settings, name=settings.name, home=home(), stopping=stopping, effect=point.effect)


def engine(point: KillPoint) -> None:
    repository = Repository(Path.cwd())
    session = start(repository, Request(requirement="Fix it", pipeline="patch", auto=True))
    executor = executor_for(repository)
    anyio.run(partial(drive, repository, session, RunObserver(), executor=executor, observers=(point.observer,)))


if __name__ == "__main__":
    kind, when, *words = sys.argv[1:]
    kill_point = KillPoint(when, " ".join(words), with_supervisor=kind == "host-with-supervisor")
    if kind == "engine":
        engine(kill_point)
    else:
        anyio.run(host, kill_point)
    os._exit(0)
