"""The files of a project that say something about its tests, found within limits."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from iterdev.host import toml_text, untrusted_files

DEPTH = 10
"""Folders inside of each other."""
ENTRIES = 100_000
"""Files and folders that are looked at; the folders nearest to the top come first."""
TEXT_LIMIT = 1_000_000
"""Bytes of a file that are read."""

FOREIGN = frozenset(
    {
        "node_modules",
        "bower_components",
        "vendor",
        "third_party",
        "thirdparty",
        "3rdparty",
        "external",
        "extern",
        "subprojects",
        "venv",
        "env",
        "site-packages",
        "build",
        "dist",
        "target",
        "fixtures",
        "fixture",
        "__fixtures__",
        "testdata",
        "test-data",
        "test_data",
        "__pycache__",
        "__snapshots__",
        "blib",
    }
)
"""Folders whose content is made, fetched, or data of tests."""


class ProjectFiles(Struct, frozen=True):
    root: Path
    folders: Mapping[str, frozenset[str]]
    """The names of the files in each folder; folders are relative to root, `""` is root itself."""

    def text(self, folder: str, name: str) -> str:
        """The beginning of a file; empty if it is not there or not a plain file."""
        return read_text(self.root / folder / name) if name in self.folders.get(folder, ()) else ""

    def toml(self, folder: str, name: str) -> Mapping[str, Any]:
        return parsed_toml(self.text(folder, name))

    def with_file(self, *names: str) -> list[str]:
        """The folders that have one of the files, from the top downwards."""
        return [folder for folder, files in self.folders.items() if not files.isdisjoint(names)]

    def below(self, folder: str) -> Iterator[str]:
        """The folder and all folders inside of it."""
        return (other for other in self.folders if is_inside(other, folder))


def look(root: Path) -> ProjectFiles:
    folders: dict[str, frozenset[str]] = {}
    entries, level = 0, [""]
    for _ in range(DEPTH):
        deeper: list[str] = []
        for folder in level:
            files, inner = _listed(root / folder)
            entries += len(files) + len(inner)
            if entries > ENTRIES:
                return ProjectFiles(root, folders)
            folders[folder] = frozenset(files)
            deeper += (join(folder, name) for name in sorted(inner) if not _is_foreign(name))
        level = deeper
    return ProjectFiles(root, folders)


def _listed(folder: Path) -> tuple[list[str], list[str]]:
    files, folders = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file():
                    files.append(entry.name)
    except OSError:
        return [], []
    return files, folders


def _is_foreign(name: str) -> bool:
    return name in FOREIGN or name.startswith((".", "cmake-build-")) or name.endswith(".egg-info")


def is_inside(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def parent(folder: str) -> str:
    outer = str(PurePosixPath(folder).parent)
    return "" if outer == "." else outer


def join(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def parsed_toml(text: str) -> Mapping[str, Any]:
    try:
        return toml_text.parse(text)
    except ValueError:
        return {}


def table(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """A table inside of parsed TOML, or an empty one if there is something else in its place."""
    for key in keys:
        inner = value.get(key)
        if not isinstance(inner, Mapping):
            return {}
        value = inner
    return value


def read_text(path: Path, limit: int = TEXT_LIMIT) -> str:
    """The beginning of a file; empty if there is none that may be read."""
    try:
        return untrusted_files.read_beginning(path, limit).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
