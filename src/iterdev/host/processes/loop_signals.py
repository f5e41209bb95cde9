"""Signals that ask to stop, as calls of the running event loop.

The loop's own `remove_signal_handler` sets the default of a signal for a moment, in which it would end the process.
"""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from iterdev.host.processes.signals import STOPPING

READ = 4096
"""Bytes at once; each is the number of a signal."""


@contextmanager
def received(receive: Callable[[int], None], *more: signal.Signals) -> Iterator[None]:
    """Meanwhile each of them, and `more`, calls a function with its number, and interrupts nothing.

    SIGTERM and SIGHUP may stay ignored.
    """
    loop, (arrived, sent) = asyncio.get_running_loop(), socket.socketpair()

    def read() -> None:
        for number in arrived.recv(READ):
            if number in {signal.SIGINT, *STOPPING, *more}:
                receive(number)

    for end in (arrived, sent):
        end.setblocking(False)
    loop.add_reader(arrived, read)
    # Whichever thread gets a signal, its number is written at once, which wakes the loop.
    other = signal.set_wakeup_fd(sent.fileno(), warn_on_full_buffer=False)
    before = {number: signal.getsignal(number) for number in (*STOPPING, *more)}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in (signal.SIGINT, *handled):
        signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, before[number])
        # Not that of asyncio, which would only cancel the task that is about to end.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(other)
        loop.remove_reader(arrived)
        for end in (arrived, sent):
            end.close()
