"""The files in which a repository tells contributors and coding agents how to work on it."""

import re
from collections.abc import Collection, Iterable

FOR_AGENTS = (
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    "QWEN.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
)
"""A file of one of these names in a folder holds for that folder."""
MOST = 20
"""Files that are named in a prompt."""

_FOR_CONTRIBUTORS = re.compile(r"(?:docs/|\.github/)?contributing(?:\.(?:md|rst|txt|adoc))?", re.IGNORECASE)
_README = re.compile(r"readme(?:\.(?:md|rst|txt|adoc))?", re.IGNORECASE)
_CONTRIBUTING_HEADING = re.compile(r"(?im)^(?:#+|=+)?[ \t]*contributing\b.{0,40}$")


def readme(paths: Iterable[str]) -> str:
    """The readme among the files of a repository, or nothing."""
    return next((path for path in sorted(paths) if _README.fullmatch(path)), "")


def files(paths: Collection[str], readme_text: str = "") -> tuple[str, ...]:
    """Those of the repository's files that say how to work on it, the ones at the top first."""
    found = [path for path in paths if _is_for_agents(path) or _FOR_CONTRIBUTORS.fullmatch(path)]
    if _CONTRIBUTING_HEADING.search(readme_text):
        found.append(readme(paths))
    return tuple(sorted(found, key=lambda path: (path.count("/"), path))[:MOST])


def unread(found: Iterable[str], read_by_itself: Collection[str]) -> tuple[str, ...]:
    """Those that an agent has to be told of, because its program does not read them by itself."""
    return tuple(path for path in found if not any(_is_named(path, name) for name in read_by_itself))


def _is_for_agents(path: str) -> bool:
    return any(_is_named(path, name) for name in FOR_AGENTS)


def _is_named(path: str, name: str) -> bool:
    return path == name or path.endswith(f"/{name}")
