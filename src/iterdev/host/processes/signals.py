"""Signals that ask iterdev to stop."""

import atexit
import signal
import sys

STOPPING = (signal.SIGTERM, signal.SIGHUP)
MOMENT = 0.01
"""Seconds."""


def treat_as_interrupt() -> None:
    """Has the other signals that ask to stop do what Ctrl-C does at that moment; one that is ignored stays ignored.

    By default they would end Python where it is, with nothing cleaned up.
    """
    for number in STOPPING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))


def ignore_at_exit() -> None:
    """Has the interpreter ignore them while it shuts down: everything is done, and the exit code is decided."""
    atexit.register(lambda: [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *STOPPING)])


def repeat_ignored_interrupts() -> None:
    """Has an interrupt sent again that comes while Python deletes an object, where nothing can be raised."""

    def hook(ignored: "sys.UnraisableHookArgs") -> None:
        if isinstance(ignored.exc_value, KeyboardInterrupt):
            signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
            signal.setitimer(signal.ITIMER_REAL, MOMENT)
        else:
            sys.__unraisablehook__(ignored)

    sys.unraisablehook = hook
