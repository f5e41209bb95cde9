"""Makes the environment of a workspace, without configuration, from what its project declares or what the user has."""

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.host.environments import build_tools, node
from iterdev.host.environments.cache import Cache, Entry
from iterdev.host.environments.node import NodeProject
from iterdev.host.environments.python import project
from iterdev.host.environments.python.project import PythonProject
from iterdev.host.environments.workplace import Part, RunCommand, Workplace
from iterdev.host.folder_stamp import FolderStamp, folder_stamp
from iterdev.host.git import worktrees
from iterdev.host.threads import in_thread
from iterdev.host.workspaces import untracked_files
from iterdev.host.workspaces.pool import Workspace

LIMIT = 600.0
RECORD = "environment.json"
"""In the private folder of a workspace."""


class Environment(Struct, frozen=True, kw_only=True):
    """What programs in a workspace need so that they use the workspace's code and the project's dependencies."""

    variables: Mapping[str, str] = {}
    """To be laid over the variables of every program in the workspace."""
    described: tuple[str, ...] = ()
    """For each ecosystem, what its environment was made from, and how long that took."""
    problems: tuple[str, ...] = ()
    """What could not be made, why, and what to do about it."""
    folders: tuple[str, ...] = ()
    """Folders outside of the workspace that a sandbox has to show."""
    new: tuple[str, ...] = ()
    """Those of `described` that were installed just now."""
    pending: bool = False
    """Whether it has to be made first, which was not asked for."""


async def prepare(  # noqa: PLR0913 - what the host offers, and what the caller allows
    workspace: Workspace,
    *,
    cache: Path,
    checkout: Path | None,
    trusted: bool,
    hard_links: bool = True,
    run: RunCommand,
    variables: Mapping[str, str],
    limit: float = LIMIT,
    may_install: bool = True,
) -> Environment:
    """Makes the environment of a workspace, or makes sure that it is still the right one.

    `variables` are those of programs in the workspace, without the ones of an earlier environment. Nothing that this
    leaves in the tree is a change in the eyes of git. `trusted` says that the project's files are those of the
    session's base, so that other workspaces may share the result; else it stays in this workspace. Without
    `may_install`, an environment that is not in the cache stays pending, and nothing is changed. Without `hard_links`,
    the workspace shares no file with the cache that a program in it could change.
    """
    tree = workspace.tree
    found = await in_thread(_projects, tree)
    wanted, recorded = _key(found, variables), _read(workspace)
    if recorded.key == wanted and not recorded.made:
        # Nothing was needed, so nothing can have been changed.
        return recorded.environment
    parts: list[Part] = []
    if found.any:
        work = Workplace(
            tree=tree,
            home=workspace.environments,
            cache=Cache(cache),
            checkout=checkout,
            trusted=trusted,
            hard_links=hard_links,
            run=run,
            variables=variables,
            limit=limit,
        )
        if not may_install and not await _is_at_hand(work, found):
            return Environment(pending=True)
        with ExitStack() as stack:
            for guard in (untracked_files.restoring_tracked_files, untracked_files.ignoring_new_files):
                stack.enter_context(guard(tree))
            parts = await _made(work, found)
    return _write(workspace, _Record(wanted, any(part.made for part in parts), _combined(parts)))


def made_by_setup(workspace: Workspace, variables: Mapping[str, str]) -> Environment:
    """What the project's own setup command left: a virtual environment in the tree is used."""
    from iterdev.host.environments.python import installer  # noqa: PLC0415

    for name in (".venv", "venv"):
        home = workspace.tree / name
        if (home / "bin" / "python").exists():
            described = (f'Python: "{name}" as `setup` made it',)
            made = Environment(variables=installer.variables(home, variables), described=described)
            return _write(workspace, _Record("setup", True, made))
    return _write(workspace, _Record("setup"))


def current(workspace: Workspace) -> Environment:
    """The environment that was last made for a workspace."""
    return _read(workspace).environment


class _Record(Struct, frozen=True):
    key: str = ""
    made: bool = False
    environment: Environment = Environment()


def _read(workspace: Workspace) -> _Record:
    with suppress(OSError, ValueError, RecursionError):
        return msgspec.json.decode((workspace.private / RECORD).read_bytes(), type=_Record)
    return _Record()


def _write(workspace: Workspace, record: _Record) -> Environment:
    workspace.private.mkdir(parents=True, exist_ok=True)
    (workspace.private / RECORD).write_bytes(msgspec.json.encode(record))
    return record.environment


class _Projects(Struct, frozen=True):
    """What is at the top of a tree."""

    python: PythonProject | None
    node: NodeProject | None
    built: bool
    build_tools: str
    """The digest of what decides about them."""

    @property
    def any(self) -> bool:
        return self.python is not None or self.node is not None or self.built


_seen: dict[Path, tuple[FolderStamp | str, _Projects]] = {}
"""By tree: what was at its top when its files had that stamp, or were those of that commit if there are too many."""


def _projects(tree: Path) -> _Projects:
    now = folder_stamp(tree) or worktrees.known_commit(tree)
    match _seen.get(tree), now:
        case (FolderStamp() as before, found), FolderStamp() if before.still_holds(now, tree.parent):
            return found
        case (str() as before, found), str() if now and before == now:
            return found
        case _:
            found = _Projects(project.read(tree), node.read(tree), build_tools.applies(tree), build_tools.digest(tree))
            if now:
                _seen[tree] = now, found
            return found


async def _made(work: Workplace, found: _Projects) -> list[Part]:
    try:
        return [part async for part in _parts(work, found)]
    except OSError as error:
        problem = f'the environment could not be made in "{work.home}": {error}'
        return [Part(problems=(f"{problem}; check the disk with `iterdev doctor`",))]


async def _parts(work: Workplace, found: _Projects) -> AsyncIterator[Part]:
    if found.python:
        # What reads the metadata of packages takes longer to load than all the rest.
        from iterdev.host.environments.python import virtual_environment  # noqa: PLC0415

        yield await virtual_environment.prepare(work, found.python)
    if found.node:
        yield await node.prepare(work, found.node)
    async for part in build_tools.prepare(work):
        yield part


async def _is_at_hand(work: Workplace, found: _Projects) -> bool:
    """Whether nothing has to be installed."""
    if found.python:
        from iterdev.host.environments.python import virtual_environment  # noqa: PLC0415

        if not await virtual_environment.is_at_hand(work, found.python):
            return False
    return (found.node is None or node.is_at_hand(work, found.node)) and build_tools.is_at_hand(work)


def _combined(parts: list[Part]) -> Environment:
    return Environment(
        variables={name: value for part in parts for name, value in part.variables.items()},
        described=tuple(text for part in parts for text in part.described),
        problems=tuple(text for part in parts for text in part.problems),
        folders=tuple(dict.fromkeys(text for part in parts for text in part.folders)),
        new=tuple(text for part in parts if part.new for text in part.described),
    )


def key(tree: Path, variables: Mapping[str, str]) -> str:
    """Equal for two states of a tree that need the same environment. Only files are read."""
    return _key(_projects(tree), variables)


def _key(found: _Projects, variables: Mapping[str, str]) -> str:
    digests = [found.build_tools]
    if found.python:
        digests += [found.python.digest, found.python.sources, project.interpreter(variables)]
    if found.node:
        digests.append(found.node.digest)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


class Plan(Struct, frozen=True, kw_only=True):
    """What the environment of a new workspace would be made from."""

    described: str
    cached: bool
    installed: str = ""
    """What was installed when it was made, if it is in the cache."""


def plans(tree: Path, *, cache: Path, checkout: Path | None, variables: Mapping[str, str]) -> Iterator[Plan]:
    """One for each ecosystem; nothing is run or made."""
    kept, found = Cache(cache), _projects(tree)
    if found.python and found.python.declares:
        from iterdev.host.environments.python import virtual_environment  # noqa: PLC0415

        text, key = virtual_environment.planned(tree, checkout, variables, found.python)
        yield _plan(f"Python, {text}", kept.find(key))
    if found.node and found.node.depends:
        yield _plan(f"Node, {node.planned(found.node)}", kept.find(found.node.key))
    for text in build_tools.planned(tree):
        yield _plan(text, None)


def _plan(described: str, entry: Entry | None) -> Plan:
    return Plan(described=described, cached=entry is not None, installed=entry.made.installed if entry else "")
