"""One look at a declared package, whatever its ecosystem."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from iterdev.core.collaboration.external_packages import PackageCheck, PackageStatus
from iterdev.core.results import Dependency
from iterdev.host.packages import cargo, git_tags, go, maven, npm, pip
from iterdev.host.packages.shell import Found, NoTool, Shell

Look = Callable[[str, str, Shell], Awaitable[Found]]
Newest = Callable[[str, str, Shell], Awaitable[tuple[str, bool] | None]]

LOOKS: dict[str, Look] = {
    "pip": pip.look,
    "npm": npm.look,
    "cargo": cargo.look,
    "go": go.look,
    "maven": maven.look,
    "git": git_tags.look,
}
NEWEST: dict[str, Newest] = {
    "pip": pip.newest,
    "npm": npm.newest,
    "cargo": cargo.newest,
    "go": go.newest,
    "git": git_tags.newest,
}
SECOND_NAMES = {"pypi": "pip", "crates.io": "cargo", "golang": "go", "mvn": "maven"}
SIGNS = {
    "pip": ("pyproject.toml", "requirements.txt", "setup.py", "setup.cfg"),
    "npm": ("package.json",),
    "cargo": ("Cargo.toml",),
    "go": ("go.mod",),
    "maven": ("pom.xml",),
}
"""The files that say which ecosystem a project belongs to."""
NAME = re.compile(r"[A-Za-z0-9@][\w.@/:+~-]*", re.ASCII)
UPDATE_SECONDS = 10.0
"""News of releases are worth a moment, not a wait; without a network there are none."""


async def check(dependency: Dependency, shell: Shell) -> PackageCheck:
    found = await _look(_source(dependency, shell.tree), dependency, shell)
    status = PackageStatus.ok if found.fits else PackageStatus.mismatch
    if found.version is None:
        status = PackageStatus.missing
    reason = found.reason
    if status is PackageStatus.mismatch and not reason:
        reason = f"expected {dependency.version_range}, got {found.version}"
    return PackageCheck(
        name=dependency.name,
        version_range=dependency.version_range,
        source=dependency.source,
        actual_version=found.version,
        status=status,
        reason=reason,
    )


async def update(dependency: Dependency, actual: str | None, shell: Shell) -> str:
    """A newer release that the range does not allow, if there is one and somebody tells in time."""
    find = NEWEST.get(_source(dependency, shell.tree))
    if find is None or not _is_name(dependency):
        return ""
    with anyio.move_on_after(UPDATE_SECONDS):
        try:
            found = await find(dependency.name, dependency.version_range, shell)
        except NoTool:
            return ""
        return found[0] if found and not found[1] and found[0] != actual else ""
    return ""


async def _look(source: str, dependency: Dependency, shell: Shell) -> Found:
    if source not in LOOKS:
        known = ", ".join(LOOKS)
        return Found(reason=f'the source "{dependency.source}" is not one of {known}, and the project does not tell')
    if not _is_name(dependency):
        return Found(reason="it is not the name of a package")
    try:
        return await LOOKS[source](dependency.name, dependency.version_range, shell)
    except NoTool as problem:
        return Found(reason=str(problem))


def _is_name(dependency: Dependency) -> bool:
    """An agent wrote it: it must be no option of a tool and lead to no other folder."""
    if dependency.source == "git":
        return not dependency.name.startswith("-")
    return NAME.fullmatch(dependency.name) is not None and ".." not in dependency.name


def _source(dependency: Dependency, tree: Path) -> str:
    """The ecosystem that was named, or the only one that the project's files speak of."""
    named = SECOND_NAMES.get(dependency.source, dependency.source)
    if named not in {"", "unknown"}:
        return named
    found = [source for source, signs in SIGNS.items() if any((tree / sign).exists() for sign in signs)]
    return found[0] if len(found) == 1 else ""
