"""Turns of a conversation: one at a time, each within the time of the attempt, the next one interrupts the last."""

import math
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

import anyio

from iterdev.agents.contract import Process, Reply, Spawn
from iterdev.core.processes import Exit


class TurnGate:
    """Lets one turn run at a time, within the time of one attempt."""

    def __init__(self, limit: float, ask_to_stop: Callable[[], Awaitable[bool]], stop_timeout: float) -> None:
        """`ask_to_stop` asks the agent to end its turn; if that returns True, the gate waits for `stop_timeout` s."""
        self._deadline = anyio.current_time() + limit
        self._ask_to_stop = ask_to_stop
        self._stop_timeout = stop_timeout
        self._lock = anyio.Lock()
        self._running = anyio.CancelScope()

    @property
    def time_left(self) -> float:
        return self._deadline - anyio.current_time()

    @property
    def is_busy(self) -> bool:
        return self._lock.locked()

    async def run(self, turn: Callable[[], Awaitable[Reply]]) -> Reply | None:
        """The reply of a turn, or None if the next turn interrupted it."""
        await self._interrupt()
        async with self._lock:
            with anyio.CancelScope() as self._running:
                return await turn()
        return None

    async def close(self) -> None:
        """Interrupts a turn that is still running, and leaves no time for another one."""
        self._deadline = -math.inf
        with anyio.CancelScope(shield=True):
            await self._interrupt()
            async with self._lock:
                pass

    async def _interrupt(self) -> None:
        with anyio.move_on_after(self._stop_timeout), suppress(ConnectionError):
            if await self._ask_to_stop():
                async with self._lock:
                    return
        self._running.cancel()


async def run_turn(
    spawn: Spawn,
    argv: Sequence[str],
    prompt: bytes,
    *,
    cwd: str,
    env: Mapping[str, str],
    limit: float,
    feed: Callable[[str, bytes], None],
) -> Exit:
    """Starts a program for one turn, with the prompt on its standard input, and feeds its output as it comes."""
    if limit <= 0:
        return Exit(code=-signal.SIGTERM, timed_out=True)
    async with spawn(argv, cwd=cwd, env=env, limit=limit) as process, anyio.create_task_group() as group:
        group.start_soon(_write_input, process, prompt)
        async for stream, chunk in process.output():
            feed(stream, chunk)
        ended = await process.wait()
        group.cancel_scope.cancel()
    return ended


async def _write_input(process: Process, data: bytes) -> None:
    # A program is free to end, or to close its input, before it has read everything.
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.write(data)
        await process.close_input()
