"""A lock on the whole repository, for the few things that only one process at a time may do in it.

It is a lock on git's own folder, so that no lock file can be left behind, and all worktrees share it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iterdev.host.git.refs import common_dir


@contextmanager
def repository_lock(top: Path) -> Iterator[None]:
    """Waits for its turn. It must not be held while another program of the user's may run."""
    descriptor = os.open(common_dir(top), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
