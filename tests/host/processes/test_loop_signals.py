"""Signals that ask to stop, received by the event loop."""

import os
import signal
import subprocess
import sys

import anyio
import pytest

from iterdev.host.processes.loop_signals import received

LISTENER = """\
import signal
import anyio
from iterdev.host.processes.loop_signals import received

outside = inside = 0

def count(*_):
    global outside
    outside += 1

def receive(_):
    global inside
    inside += 1

async def main():
    for _ in range(2000):
        with received(receive):
            for _ in range(3):
                await anyio.sleep(0)

signal.signal(signal.SIGTERM, count)
print("ready", flush=True)
anyio.run(main)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(inside > 0, outside > 0)
"""


@pytest.mark.anyio
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_each_signal_calls_the_function_once(number: signal.Signals) -> None:
    before, calls, called = signal.getsignal(signal.SIGINT), list[int](), anyio.Event()

    def receive(received: int) -> None:
        calls.append(received)
        called.set()

    try:
        with received(receive):
            os.kill(os.getpid(), number)
            await called.wait()
    finally:
        signal.signal(signal.SIGINT, before)

    assert calls == [number]


def test_no_signal_ends_the_process_while_the_loop_begins_or_ceases_to_listen() -> None:
    with subprocess.Popen([sys.executable, "-c", LISTENER], stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout
        assert listener.stdout.readline() == "ready\n"
        while listener.poll() is None:
            listener.terminate()
        told = listener.stdout.read()

    assert (listener.returncode, told) == (0, "True True\n")


@pytest.mark.anyio
async def test_a_signal_that_is_ignored_stays_ignored() -> None:
    interrupt, before = signal.getsignal(signal.SIGINT), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with received(lambda _: None):
            during = signal.getsignal(signal.SIGHUP)
    finally:
        after = signal.signal(signal.SIGHUP, before)
        signal.signal(signal.SIGINT, interrupt)

    assert during is after is signal.SIG_IGN
