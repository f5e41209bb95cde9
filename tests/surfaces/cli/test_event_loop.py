"""The event loop of commands."""

import asyncio
import signal

import anyio
import pytest

from iterdev.surfaces.cli import event_loop


def test_no_signal_interrupts_the_making_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    make, blocked = asyncio.new_event_loop, []

    def new_loop() -> asyncio.AbstractEventLoop:
        blocked.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        return make()

    monkeypatch.setattr(asyncio, "new_event_loop", new_loop)

    event_loop.run(anyio.sleep, 0)

    assert blocked[0] >= event_loop.SIGNALS
    assert not event_loop.SIGNALS & signal.pthread_sigmask(signal.SIG_BLOCK, ())
