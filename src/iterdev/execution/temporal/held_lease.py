"""The lease of a host on an attempt, kept by its own heartbeats: it knows which of them were answered.

The SDK has heartbeats too, and a timer that ends an attempt after the server has given it away. It is only told of
those that were answered, so that its timer never runs out first.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

import anyio
from temporalio import activity
from temporalio.client import AsyncActivityCancelledError, AsyncActivityHandle
from temporalio.service import RPCError

from iterdev.execution.lease import LeaseTerms, SentHeartbeat, lease_end
from iterdev.execution.temporal.patience import is_unknown

MOST_BETWEEN = 10.0
"""Seconds between two heartbeats; a cancellation waits for the next one."""
PARTS = 8
"""At least so many heartbeats are sent in the time after which an attempt is given away."""
AGAIN = 0.5
TICK = 0.25
"""Seconds between two looks at the clock: a machine that slept wakes up with all timers late."""


def elapsed() -> float:
    """Seconds, which also pass while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Lease(Protocol):
    @property
    def lost(self) -> anyio.Event:
        """Set when the attempt may belong to another host."""

    async def begin(self) -> bool:
        """Whether the server still waits for the attempt; it may not begin before that is known."""

    async def hold(self) -> None:
        """Runs beside the attempt until it is cancelled."""


MakeLease = Callable[[AsyncActivityHandle, LeaseTerms, Callable[[], bytes], Callable[[], None]], Lease]


class HeldLease:
    def __init__(
        self, handle: AsyncActivityHandle, terms: LeaseTerms, message: Callable[[], bytes], end: Callable[[], None]
    ) -> None:
        """`end` is called when the attempt has to end; it may be called again."""
        self._handle, self._terms, self._message, self._end = handle, terms, message, end
        self._heartbeat: SentHeartbeat | None = None
        """The last one that was answered."""
        self.lost = anyio.Event()

    async def begin(self) -> bool:
        """Whether the server still waits for the attempt; it may not begin before that is known."""
        with anyio.move_on_after(self._terms.heartbeat_timeout):
            while self._heartbeat is None and not self.lost.is_set():
                if not await self._send():
                    await anyio.sleep(AGAIN)
        return self._heartbeat is not None

    async def hold(self) -> None:
        """Sends heartbeats, and ends the attempt when the lease is over. Runs until it is cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._send_on)
            group.start_soon(self._watch)

    async def _send_on(self) -> None:
        between = min(MOST_BETWEEN, self._terms.heartbeat_timeout / PARTS)
        while not self.lost.is_set():  # noqa: ASYNC110 - a pause between heartbeats
            await anyio.sleep(between if await self._send() else min(AGAIN, between))

    async def _send(self) -> bool:
        """Whether the heartbeat was answered."""
        sent, message = elapsed(), self._message()
        patience = timedelta(seconds=max(1.0, self._terms.heartbeat_timeout / 4))
        try:
            await self._handle.heartbeat(message, rpc_timeout=patience)
        except AsyncActivityCancelledError:
            self._end()
        except RPCError as error:
            if is_unknown(error):
                self._lose()
            return False
        self._heartbeat = SentHeartbeat(sent, elapsed())
        activity.heartbeat(message)
        return True

    async def _watch(self) -> None:
        """A task of its own: a heartbeat that is not answered keeps nobody alive."""
        while (left := self._left()) > 0:  # noqa: ASYNC110 - no timer of this machine can be trusted
            await anyio.sleep(min(left, TICK))
        self._lose()

    def _left(self) -> float:
        now = elapsed()
        return lease_end(self._terms, [self._heartbeat] if self._heartbeat else [], now) - now

    def _lose(self) -> None:
        self.lost.set()
        self._end()
