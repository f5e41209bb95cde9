"""Where programs are installed: the folders that a program needs beside its own file.

Only places inside of the given roots are of interest; whatever else there is can be seen anyway.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

BINARIES = frozenset({"bin", "sbin", "shims"})
COMMON = (".local", ".config", ".cache", ".cargo")
"""Folders of a home that hold more than one thing, secrets among it."""
HOPS = 40


def places_of(argv: Sequence[str], search: str, roots: Sequence[Path]) -> list[Path]:
    """What must be seen for a command to work: its own files, and every program on the search path."""
    named = [shutil.which(argv[0], path=search) or argv[0], *argv[1:]]
    files = [Path(word) for word in named if os.path.isabs(word) and os.path.lexists(word)]  # noqa: PTH117
    files += [Path(entry, "program") for entry in search.split(os.pathsep) if os.path.isabs(entry)]  # noqa: PTH117
    inside = (placed(hop, roots) for file in files for hop in _hops(file))
    found = dict.fromkeys(installation(file, roots) for file in inside if file)
    return [place for place in found if os.access(place, os.R_OK)]


def placed(path: Path, roots: Sequence[Path]) -> Path | None:
    """The path as it is reached from one of the roots; links above the root are followed, those below are not."""
    for parent in reversed(path.parents):
        real = Path(os.path.realpath(parent))
        if real in roots:
            return real / path.relative_to(parent)
    return None


def installation(file: Path, roots: Sequence[Path]) -> Path:
    """The folder that belongs to a program, but never a whole root or what else is above one."""
    if "node_modules" in file.parts:
        return Path(*file.parts[: file.parts.index("node_modules") + 1])
    folder = file.parent
    wider = [folder.parent, folder] if folder.name in BINARIES else [folder]
    return next((place for place in wider if not _is_common(place, roots)), file)


def _is_common(folder: Path, roots: Sequence[Path]) -> bool:
    return any(root.is_relative_to(folder) or folder == root / name for root in roots for name in COMMON)


def _hops(file: Path) -> Iterator[Path]:
    """The file, and every other name that links lead to."""
    for _ in range(HOPS):
        yield file
        if not file.is_symlink():
            break
        file = Path(os.path.normpath(Path(os.path.realpath(file.parent), file.readlink())))
    yield file.resolve()
