"""What shows a run: a live picture in a terminal, plain lines anywhere else."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from iterdev.app.resume import RunObserver
from iterdev.core.types import SessionId
from iterdev.surfaces.cli.output.console import print_line, print_warning
from iterdev.surfaces.cli.output.prompt import ask, can_ask, is_terminal


@contextmanager
def observing(session: SessionId, *, quiet: bool) -> Iterator[RunObserver]:
    """The observer of one run."""
    if quiet:
        yield RunObserver(say=print_warning)
    elif is_terminal():
        from iterdev.surfaces.cli.output.live import Live  # noqa: PLC0415 - rich takes 60 ms to load

        with Live() as live:
            yield RunObserver(show=live.show, hear=live.hear, ask=live.ask, say=live.say)
    else:
        print_line(f"session {session}")
        observer = RunObserver(report=print_line, say=print_warning)
        yield msgspec.structs.replace(observer, ask=ask) if can_ask() else observer
