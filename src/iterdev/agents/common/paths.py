"""Paths as agents and users write them, with links followed: an agent may write in its workspace only."""

import os
from pathlib import Path


def real(*parts: str) -> Path:
    return Path(os.path.realpath(Path(*parts)))


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is in the folder; a relative one starts there."""
    return real(folder, path).is_relative_to(real(folder))


def absolute(folder: str, path: str) -> str:
    return os.path.normpath(Path(folder).absolute() / path)


def is_file(path: str) -> bool:
    # An argument can be a whole text, which Path.is_file answers with an error because it is too long for a name.
    return os.path.isfile(path)  # noqa: PTH113
