"""Whose turn it is in a conversation: one at a time, and the next one interrupts the one that is running."""

import math
from collections.abc import Awaitable, Callable

import anyio

from iterdev.agents.contract import Reply


class Floor:
    """Lets turns follow each other within the time of one attempt."""

    def __init__(self, limit: float) -> None:
        self._deadline = anyio.current_time() + limit
        self._lock = anyio.Lock()
        self._running = anyio.CancelScope()

    @property
    def time_left(self) -> float:
        return self._deadline - anyio.current_time()

    async def take(self, turn: Callable[[], Awaitable[Reply]]) -> Reply | None:
        """The reply of a turn, or none if it was interrupted by the next one."""
        self._running.cancel()
        async with self._lock:
            with anyio.CancelScope() as self._running:
                return await turn()
        return None

    async def close(self) -> None:
        """Interrupts a turn that is still running, and leaves no time for another one."""
        self._deadline = -math.inf
        self._running.cancel()
        with anyio.CancelScope(shield=True):
            async with self._lock:
                pass
