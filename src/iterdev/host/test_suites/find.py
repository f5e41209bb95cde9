"""Finds the test suites of a repository, also those of projects below its top."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from iterdev.host.test_suites.projects import built, makefiles, node, python, scripted
from iterdev.host.test_suites.projects.files import ProjectFiles, is_inside, look
from iterdev.host.test_suites.suite import Kind, Suite, Works

SUITES = 30
"""More are not run; those nearest to the top come first."""

_LANGUAGES: dict[str, frozenset[Kind]] = {
    ".py": frozenset({"pytest", "unittest"}),
    ".go": frozenset({"go"}),
    ".rs": frozenset({"cargo", "nextest"}),
    ".java": frozenset({"maven", "gradle"}),
    ".kt": frozenset({"maven", "gradle"}),
    ".rb": frozenset({"rspec", "minitest"}),
    ".php": frozenset({"phpunit"}),
    ".pl": frozenset({"prove"}),
    ".pm": frozenset({"prove"}),
    ".t": frozenset({"prove"}),
    ".swift": frozenset({"swift"}),
    ".cs": frozenset({"dotnet"}),
    ".fs": frozenset({"dotnet"}),
    **dict.fromkeys(
        (".c", ".h", ".cc", ".cpp", ".hpp", ".cxx"), frozenset[Kind]({"ctest", "meson", "autotools", "make"})
    ),
    **dict.fromkeys(
        (".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".mts", ".cts", ".vue", ".svelte"),
        frozenset[Kind]({"mocha", "jest", "vitest", "ava", "uvu", "node", "jasmine", "bun", "deno", "tap", "npm"}),
    ),
}


def find(root: Path, works: Works) -> tuple[Suite, ...]:
    """The suites that the files of a repository indicate; a test belongs to one of them only."""
    files = look(root)
    found = dict.fromkeys(_found(files, works))
    suites = sorted(found, key=lambda suite: suite.folder.count("/") + bool(suite.folder))
    return tuple(suites[:SUITES]) or tuple(makefiles.find(files))


def _found(files: ProjectFiles, works: Works) -> Iterable[Suite]:
    yield from python.find(files, works)
    yield from node.find(files)
    yield from built.find(files, works)
    yield from scripted.find(files, works)


def in_order(suites: Sequence[Suite], changed: Iterable[str]) -> tuple[Suite, ...]:
    """Those that the changed files concern first, then the others, each in the given order."""
    first = concerned(suites, changed)
    return (*(s for s in suites if s in first), *(s for s in suites if s not in first))


def concerned(suites: Sequence[Suite], changed: Iterable[str]) -> set[Suite]:
    """The suites that test the changed files."""
    # The files of a session that changed may be many, and have few folders and suffixes.
    folders = {suite.folder for suite in suites}
    places = {
        # A submodule is itself a folder.
        (name if name in folders else os.path.dirname(name), os.path.splitext(name)[1])  # noqa: PTH120, PTH122
        for name in changed
    }
    return {suite for folder, suffix in places for suite in _concerned(suites, folder, suffix)}


def _concerned(suites: Sequence[Suite], folder: str, suffix: str) -> Iterable[Suite]:
    """The suites of the folder nearest to files with a suffix in a folder, of their language if there are any."""
    around = [suite for suite in suites if is_inside(folder, suite.folder)]
    kinds = _LANGUAGES.get(suffix, frozenset[Kind]())
    same = [suite for suite in around if suite.kind in kinds] or around
    deepest = max((len(suite.folder) for suite in same), default=0)
    return (suite for suite in same if len(suite.folder) == deepest)
