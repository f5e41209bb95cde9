"""A progress bar for what takes a while, on standard error and only in a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONG = 10_000
"""With fewer steps no bar is shown."""

Advance = Callable[[int, int], None]
"""Called with the number of steps that are done, and of all."""


@contextmanager
def progress_bar(text: str) -> Iterator[Advance]:
    """The bar appears with the first call that reports many steps, and is removed at the end."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    # Most commands need no bar, and rich takes longer to load than they run.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, visible=False, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=total >= LONG)
