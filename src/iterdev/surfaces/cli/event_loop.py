"""Runs asynchronous functions. A signal that comes while the event loop is made is delivered when it is complete."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})

Value = TypeVar("Value")


def run(function: Callable[..., Awaitable[Value]], *args: object) -> Value:
    return anyio.run(function, *args, backend_options={"loop_factory": _new_loop})


def _new_loop() -> asyncio.AbstractEventLoop:
    """A loop that is interrupted in the middle of its making prints an error when it is thrown away."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        return asyncio.new_event_loop()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
