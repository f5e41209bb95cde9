"""A host that relies on the heartbeats of the SDK, as one would write it at first: the negative control.

`python -m tests.chaos.control_host worker`
"""

import asyncio
import signal
from collections.abc import Callable

import anyio
from temporalio import activity
from temporalio.client import AsyncActivityHandle

from iterdev.app.remote.host_file import host_file, read_host_settings
from iterdev.app.remote.worker import home
from iterdev.execution.lease import LeaseTerms
from iterdev.execution.temporal.connection import connect
from iterdev.execution.temporal.host import Stopping, serve
from iterdev.execution.temporal.keys import read_keys


class SdkHeartbeats:
    """Tells the server that the attempt goes on, and does not know whether it heard."""

    def __init__(
        self, _handle: AsyncActivityHandle, terms: LeaseTerms, message: Callable[[], bytes], _end: Callable[[], None]
    ) -> None:
        self._between, self._message = min(10.0, terms.heartbeat_timeout / 8), message
        self.lost = anyio.Event()

    async def begin(self) -> bool:
        activity.heartbeat(self._message())
        return True

    async def hold(self) -> None:
        while True:
            await anyio.sleep(self._between)
            activity.heartbeat(self._message())


async def main() -> None:
    settings = read_host_settings(host_file())
    connection = await connect(settings.profile, read_keys(settings.key), identity=settings.name)
    stopping = Stopping()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.stop.set)
    await serve(
        connection.client, settings, name=settings.name, home=home(), stopping=stopping, make_lease=SdkHeartbeats
    )


if __name__ == "__main__":
    anyio.run(main)
