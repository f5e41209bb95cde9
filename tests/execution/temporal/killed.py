"""A host or an engine that kills itself at an effect.

    python -m tests.execution.temporal.killed host before push work

What an effect is, see `iterdev.engine.effects`. The first one of that name counts, for whichever task it is.
"""

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
    def __init__(self, when: str, name: str) -> None:
        self._when, self._name = when, name

    @contextmanager
    def observer(self, name: str, _: Mapping[str, object]) -> Iterator[None]:
        if (self._when, self._name) == ("before", name):
            os.kill(os.getpid(), signal.SIGKILL)
        yield
        if (self._when, self._name) == ("after", name):
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def effect(self, name: str, **fields: str | int) -> Iterator[None]:
        with self.observer(name, fields):
            yield


async def host(point: KillPoint) -> None:
    settings = read_host_settings(host_file())
    identity = str(HostIdentity(settings.name, "0"))
    connection = await connect(settings.profile, read_keys(settings.key), identity=identity)
    await serve(connection.client, settings, name=settings.name, home=home(), stopping=Stopping(), effect=point.effect)


def engine(point: KillPoint) -> None:
    repository = Repository(Path.cwd())
    session = start(repository, Request(requirement="Fix it", pipeline="patch", auto=True))
    executor = executor_for(repository)
    anyio.run(partial(drive, repository, session, RunObserver(), executor=executor, observers=(point.observer,)))


if __name__ == "__main__":
    kind, when, *words = sys.argv[1:]
    kill_point = KillPoint(when, " ".join(words))
    if kind == "host":
        anyio.run(host, kill_point)
    else:
        engine(kill_point)
    os._exit(0)
