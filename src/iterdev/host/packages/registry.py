"""Checks a declared package, whatever its ecosystem."""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import anyio
from msgspec.structs import asdict

from iterdev.core.collaboration.external_packages import PackageCheck, PackageStatus
from iterdev.core.results import Dependency
from iterdev.host.packages import cargo, git_tags, go, maven, npm, pip
from iterdev.host.packages.shell import Found, NoTool, Shell


class Ecosystem(Protocol):
    async def find_installed(self, name: str, version_range: str, shell: Shell, /) -> Found: ...

    async def newest(self, name: str, version_range: str, shell: Shell, /) -> tuple[str, bool] | None:
        """The newest release and whether the range allows it; None if it is not known."""


ECOSYSTEMS: Mapping[str, Ecosystem] = {
    "pip": pip, "npm": npm, "cargo": cargo, "go": go, "maven": maven, "git": git_tags,
}  # fmt: skip
ALIASES = {"pypi": "pip", "crates.io": "cargo", "golang": "go", "mvn": "maven"}
FILES = {
    "pip": ("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg"),
    "npm": ("package.json",),
    "cargo": ("Cargo.toml",),
    "go": ("go.mod",),
    "maven": ("pom.xml",),
}
"""The files that say which ecosystem a project belongs to."""
NAME = re.compile(r"[A-Za-z0-9@][\w.@/:+~-]*(\[[\w.,-]*\])?", re.ASCII)
"""Behind the name of a Python package may be extras, such as `uvicorn[standard]`."""
UPDATE_SECONDS = 10.0
"""For the newest release, which is useful but not needed; without a network it is not found."""


async def check(dependency: Dependency, shell: Shell) -> PackageCheck:
    found = await _find(_source(dependency, shell.tree), dependency, shell)
    status, reason = PackageStatus.missing, found.reason
    if found.version is not None:
        status = PackageStatus.ok if found.fits else PackageStatus.mismatch
    if status is PackageStatus.mismatch:
        reason = reason or f"expected {dependency.version_range}, got {found.version}"
    return PackageCheck(**asdict(dependency), actual_version=found.version, status=status, reason=reason)


async def update(dependency: Dependency, actual: str | None, shell: Shell) -> str:
    """A newer release that the range does not allow; empty if there is none or it is not found in time."""
    ecosystem = ECOSYSTEMS.get(_source(dependency, shell.tree))
    if ecosystem and _is_name(dependency):
        with anyio.move_on_after(UPDATE_SECONDS), suppress(NoTool):
            found = await ecosystem.newest(dependency.name, dependency.version_range, shell)
            return found[0] if found and not found[1] and found[0] != actual else ""
    return ""


async def _find(source: str, dependency: Dependency, shell: Shell) -> Found:
    if source not in ECOSYSTEMS:
        known = ", ".join(ECOSYSTEMS)
        return Found(reason=f'the source "{dependency.source}" is not one of {known}, and the project does not show it')
    if not _is_name(dependency):
        return Found(reason="it is not the name of a package")
    try:
        return await ECOSYSTEMS[source].find_installed(dependency.name, dependency.version_range, shell)
    except NoTool as problem:
        return Found(reason=str(problem))


def _is_name(dependency: Dependency) -> bool:
    """Agents write the names: one must not be an option of a tool, or lead to another folder."""
    if dependency.source == "git":
        return not dependency.name.startswith("-")
    return NAME.fullmatch(dependency.name) is not None and ".." not in dependency.name


def _source(dependency: Dependency, tree: Path) -> str:
    """The ecosystem that was named, or the only one that the project's files indicate."""
    named = ALIASES.get(dependency.source, dependency.source)
    if named not in {"", "unknown"}:
        return named
    found = [source for source, names in FILES.items() if any((tree / name).exists() for name in names)]
    return found[0] if len(found) == 1 else ""
