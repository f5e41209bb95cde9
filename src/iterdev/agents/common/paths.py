"""Where paths lead to, links followed: an agent may write in its workspace only."""

import os
from pathlib import Path


def real(*parts: str) -> Path:
    return Path(os.path.realpath(Path(*parts)))


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is in the folder; a relative one starts there."""
    return real(folder, path).is_relative_to(real(folder))
