"""Tries again what a server or a git remote that is away for a while keeps from succeeding."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import anyio
from temporalio.client import ActivityHandle
from temporalio.service import RPCError, RPCStatusCode

from iterdev.core.errors import HostError
from iterdev.execution.temporal.connection import PASSING

T = TypeVar("T")

FIRST, LONGEST = 0.25, 5.0
"""Seconds before the second try, and at most between two."""
TOLD = 3
"""Tries that fail before somebody is told."""


def is_passing(error: RPCError) -> bool:
    return error.status in PASSING


def is_unknown(error: RPCError) -> bool:
    """Whether the server knows no such activity, or no longer: it has ended, or was given away."""
    return error.status is RPCStatusCode.NOT_FOUND


async def until_answered(call: Callable[[], Awaitable[T]]) -> T:
    """The server's answer, be it a refusal, however long it is away."""
    async for _ in pauses():
        try:
            return await call()
        except RPCError as error:
            if not is_passing(error):
                raise
    raise AssertionError("pauses do not end")


async def until_done(act: Callable[[], Awaitable[T]], tell: Callable[[str], None] = lambda _: None) -> T:
    """What git does, however long its remote is away; if that is long, somebody is told why it does not go on."""
    tries = 0
    async for _ in pauses():
        try:
            return await act()
        except HostError as error:
            tries += 1
            if tries == TOLD:
                tell(f"{error.message}; it is tried again")
    raise AssertionError("pauses do not end")


async def pauses() -> AsyncIterator[None]:
    """Goes on at once, and then after ever longer pauses."""
    pause = FIRST
    while True:
        yield
        await anyio.sleep(pause)
        pause = min(2 * pause, LONGEST)


async def result_of(handle: ActivityHandle[bytes]) -> bytes:
    """Waits for an activity to end, however long the server is away meanwhile; raises how it failed."""
    return await until_answered(lambda: _result(handle))


async def _result(handle: ActivityHandle[bytes]) -> bytes:
    """A deadline of the client comes as the cancellation of the task that waits; it is told from a real one."""
    waiting = asyncio.ensure_future(handle.result())
    try:
        await asyncio.wait([waiting])
    finally:
        waiting.cancel()
    if waiting.cancelled():
        raise RPCError("the wait for a result was cut off", RPCStatusCode.CANCELLED, b"")
    return waiting.result()
