"""Signals that ask iterdev to stop."""

import atexit
import signal

STOPPING = (signal.SIGTERM, signal.SIGHUP)


def treat_as_interrupt() -> None:
    """Has the other signals that ask to stop do what Ctrl-C does at that moment; one that is ignored stays ignored.

    By default they would end Python where it is, with nothing cleaned up. An event loop that stops listening to them
    restores that default, so that this has to be called again.
    """
    for number in STOPPING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))


def ignore_at_exit() -> None:
    """Has the interpreter ignore them while it shuts down: everything is done, and the exit code is decided."""
    atexit.register(lambda: [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *STOPPING)])
