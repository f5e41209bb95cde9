"""The `node_modules` of a workspace, made by the package manager that the project's lock file names.

They are kept by the content of the lock files and package.json files, and copied into the tree of each workspace, where
the links between the packages of the repository stay inside of the tree.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

import anyio
import msgspec
from msgspec import Struct

from iterdev.host import untrusted_files
from iterdev.host.environments import downloads, folder_copies
from iterdev.host.environments.cache import Entry, Made
from iterdev.host.environments.folder_copies import Moves
from iterdev.host.environments.workplace import CommandFailed, Part, Workplace, seconds_since
from iterdev.host.threads import in_thread

Manager = Literal["npm", "pnpm", "yarn", "bun"]
FORMAT = "1"
LOCKS: Mapping[str, Manager] = {
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
}
SETTINGS = (
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    "pnpm-workspace.yaml",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".nvmrc",
    ".node-version",
)
DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
HOOKS = {"HUSKY": "0", "HUSKY_SKIP_INSTALL": "1", "SIMPLE_GIT_HOOKS": "0", "LEFTHOOK": "0"}
"""Install scripts that would change the settings of the user's repository are told not to."""
APART = {"npm_config_package_import_method": "clone-or-copy"}
"""pnpm's own store is not to be reached by hard links, which an agent could write through."""
QUIET = {"npm_config_audit": "false", "npm_config_fund": "false", "npm_config_update_notifier": "false", "CI": "true"}
WITH_MODULES = {"YARN_NODE_LINKER": "node-modules"}
"""Without node_modules, Yarn 2 and newer let only their own commands find the programs and packages of a project."""
MODULES, MARKER = "node_modules", "node.key"
DEEPEST = 4
"""Levels at which packages of a repository are looked for."""


class NodeProject(Struct, frozen=True, kw_only=True):
    manager: Manager
    lock: str = ""
    version: str = ""
    """Of the package manager, as far as it is known."""
    depends: bool = True
    """Whether there is anything to install."""
    prepares: str = ""
    """The script by which the project builds itself after its dependencies are installed."""
    digest: str = ""
    variables: Mapping[str, str] = {}
    """For every program in the workspace."""

    @property
    def key(self) -> str:
        return f"node-{hashlib.sha256(f'{FORMAT} {self.digest}'.encode()).hexdigest()[:24]}"

    @property
    def command(self) -> tuple[str, ...]:
        match self.manager:
            case "npm":
                return ("npm", "ci") if self.lock else ("npm", "install", "--no-package-lock")
            case "pnpm":
                frozen = "--frozen-lockfile" if self.lock else "--no-lockfile"
                return ("pnpm", "install", frozen)
            case "yarn" if self.version.startswith("1"):
                return ("yarn", "install", "--non-interactive", "--frozen-lockfile" if self.lock else "--no-lockfile")
            case "yarn":
                return ("yarn", "install", *(("--immutable",) if self.lock else ()))
            case "bun":
                return ("bun", "install", *(("--frozen-lockfile",) if self.lock else ("--no-save",)))


def read(tree: Path) -> NodeProject | None:
    """None if there is no Node project at the top of the tree."""
    package = _package(tree / "package.json")
    if package is None:
        return None
    lock = next((name for name in LOCKS if (tree / name).is_file()), "")
    manager: Manager = LOCKS.get(lock, "npm")
    named = re.match(r"(npm|pnpm|yarn|bun)(?:@(\d[\w.]*))?", str(package.get("packageManager", "")))
    if named and (not lock or named[1] != "npm"):
        manager = msgspec.convert(named[1], type=Manager)
    version = named[2] if named and named[1] == manager and named[2] else _locked_version(tree, manager)
    scripts = package.get("scripts")
    prepare = str(scripts.get("prepare", "")) if isinstance(scripts, Mapping) else ""
    packages = _package_files(tree)
    return NodeProject(
        manager=manager,
        lock=lock,
        version=version,
        depends=any(any(inner.get(name) for name in DEPENDENCIES) for inner in map(_package, packages) if inner),
        prepares="" if re.search(r"husky|lefthook|simple-git-hooks|is-ci|patch-package", prepare) else prepare,
        digest=_digest(tree, packages, manager),
        variables=WITH_MODULES if _is_without_modules(tree, manager, version) else {},
    )


def _is_without_modules(tree: Path, manager: Manager, version: str) -> bool:
    linker = re.search(rb"^nodeLinker:\s*[\"']?([\w-]+)", _bytes(tree / ".yarnrc.yml"), re.MULTILINE)
    return manager == "yarn" and not version.startswith("1") and (not linker or linker[1] == b"pnp")


def _locked_version(tree: Path, manager: Manager) -> str:
    """The version of a package manager that wrote the lock file, as far as it matters."""
    if manager == "yarn":
        modern = (tree / ".yarnrc.yml").exists() or b"\n__metadata:" in _bytes(tree / "yarn.lock")
        return "4" if modern else "1"
    if manager == "pnpm" and (match := re.match(rb"lockfileVersion: '?(\d+)", _bytes(tree / "pnpm-lock.yaml"))):
        return {b"5": "7", b"6": "8"}.get(match[1], "9")
    return ""


def planned(project: NodeProject) -> str:
    return f"made by `{' '.join(project.command)}`" if project.depends else "the project declares nothing to install"


def is_at_hand(work: Workplace, project: NodeProject) -> bool:
    """Whether the packages are in the cache or in the tree, or none are needed."""
    return not project.depends or work.cache.find(project.key) is not None or (work.tree / MODULES).exists()


async def prepare(work: Workplace, project: NodeProject) -> Part:
    """Installs what the project depends on, unless the tree brings it along."""
    if not project.depends:
        return Part(made=False)
    return msgspec.structs.replace(await _install(work, project), variables=project.variables)


async def _install(work: Workplace, project: NodeProject) -> Part:
    started = anyio.current_time()
    _remove_leading_outside(work.tree)
    if _tracks_modules(work):
        return Part(described=("Node: the repository contains its node_modules",))
    async with work.cache.locked(project.key):
        entry = work.cache.find(project.key)
        if entry and await _laid(work, entry):
            _mark(work, project.key)
            described = f"{entry.made.source}, from the cache in {seconds_since(started)}"
            return _part(described, entry.made.problems + await _prepared(work, project))
        if (work.tree / MODULES).exists() and (made_here := _marked(work)) in {"", project.key}:
            # Without a mark they were brought by `link` or `copy`.
            as_they_are = f"made by `{' '.join(project.command)}`, before in this workspace"
            return _part(as_they_are if made_here else "node_modules of the workspace as they are", ())
        before, earlier = len(work.printed), _set_aside(work)
        source, problems, passing = await _make(work, project)
        await in_thread(_delete if source else _put_back, work, earlier)
        if source is None:
            return Part(problems=problems)
        _mark(work, "" if passing else project.key)
        taken = _taken(work, project.manager, before, started)
        folders = {str(path.relative_to(work.tree)): path for path in module_folders(work.tree)}
        if work.trusted and not passing and folders:
            places = {"tree": str(work.tree)}
            made = Made(ecosystem="node", source=source, places=places, problems=problems, installed=taken)
            entry = await in_thread(work.cache.publish, project.key, made, folders, {})
            await in_thread(
                work.cache.lay, entry, {"tree": str(work.tree)}, work.tree, work.tree, hard_links=work.hard_links
            )
    return _part(f"{source} {taken}", problems, new=True)


def _marked(work: Workplace) -> str:
    """The key of the project for which packages were installed in this workspace."""
    return untrusted_files.read_or_empty(work.home / MARKER, root=work.home).decode("utf-8", "replace")


def _mark(work: Workplace, key: str) -> None:
    untrusted_files.write_bytes(work.home / MARKER, key.encode(), root=work.made_home())


def _set_aside(work: Workplace) -> dict[Path, Path]:
    """Moves the packages of an earlier state away: their files may be those of the cache.

    An agent may be at work meanwhile, so that nothing here goes by a link that leads out of the workspace.
    """
    earlier, home = {}, work.made_home()
    for number, folder in enumerate(module_folders(work.tree)):
        aside = home / f"earlier-modules-{number}"
        untrusted_files.remove(aside, root=home)
        with suppress(FileNotFoundError, NotADirectoryError):
            untrusted_files.move(folder, aside, root=work.tree, target_root=home)
            earlier[folder] = aside
    return earlier


def _put_back(work: Workplace, earlier: Mapping[Path, Path]) -> None:
    for folder, aside in earlier.items():
        untrusted_files.remove(folder, root=work.tree)
        untrusted_files.move(aside, folder, root=work.home, target_root=work.tree)


def _delete(work: Workplace, earlier: Mapping[Path, Path]) -> None:
    for aside in earlier.values():
        untrusted_files.remove(aside, root=work.home)


def _remove_modules(work: Workplace) -> None:
    for folder in module_folders(work.tree):
        untrusted_files.remove(folder, root=work.tree)


def _part(described: str, problems: tuple[str, ...], *, new: bool = False) -> Part:
    return Part(described=(f"Node: {described}",), problems=problems, new=new)


def _taken(work: Workplace, manager: Manager, before: int, started: float) -> str:
    """How long it took, which packages are there, and which of them were downloaded."""
    found = downloads.read("".join(work.printed[before:]), manager)
    return f"in {seconds_since(started)}: {downloads.told(_installed(work.tree), found)}"


def _installed(tree: Path) -> list[str]:
    """As name@version; what is nested deeper is left out."""
    folders = (place for modules in module_folders(tree) for name in ("[!.@]*", "@*/*") for place in modules.glob(name))
    packages = [package for folder in folders if (package := _package(folder / "package.json"))]
    own = own_packages(tree)
    named = {f"{one.get('name')}@{one.get('version')}" for one in packages if one.get("name") not in own}
    return sorted(named)


async def _laid(work: Workplace, entry: Entry) -> bool:
    if await in_thread(work.cache.is_laid, entry, work.tree):
        return True
    await in_thread(_remove_modules, work)
    return await in_thread(
        work.cache.lay, entry, {"tree": str(work.tree)}, work.tree, work.tree, hard_links=work.hard_links
    )


async def _prepared(work: Workplace, project: NodeProject) -> tuple[str, ...]:
    """Runs the project's own build, which the package manager does after it has installed everything."""
    if not project.prepares:
        return ()
    try:
        await work.call(project.manager, "run", "prepare", variables=_variables(project))
    except CommandFailed as failed:
        return (str(failed),)
    return ()


async def _make(work: Workplace, project: NodeProject) -> tuple[str | None, tuple[str, ...], bool]:
    """What node_modules were made from, what is wrong with them, and whether that may be better next time."""
    failures: list[CommandFailed] = []
    for command in _commands(work, project):
        # npm says what it downloads at this level alone.
        words = (*command, "--loglevel=http") if command[0] == "npm" else command
        try:
            await work.call(*words, variables=_variables(project))
        except CommandFailed as failed:
            failures.append(failed)
        else:
            return f"made by `{' '.join(project.command)}`", (), False
    problem = f"{failures[0]}; set `setup` under [project] in iterdev.toml to install the packages yourself"
    if not await in_thread(_copy_users, work):
        return None, (problem,), True
    return "a copy of your node_modules", (problem,), True


def _variables(project: NodeProject) -> Mapping[str, str]:
    return {**HOOKS, **APART, **QUIET, **project.variables}


def _commands(work: Workplace, project: NodeProject) -> Iterator[tuple[str, ...]]:
    """The package manager that is installed, else the one that npm fetches."""
    name, *words = project.command
    if name == "npm" or work.program(name):
        yield project.command
    if name != "npm":
        modern = name == "yarn" and not project.version.startswith("1")
        package = "@yarnpkg/cli-dist" if modern else name
        version = f"@{project.version}" if project.version else ""
        fetched = ("npx", "--yes", "--package", f"{package}{version}", name)
        yield (*fetched, *words)
        if modern and project.lock:
            # Each version of Yarn writes the lock file in a form of its own, and calls another form a change.
            yield (*fetched, "install", "--no-immutable")


def _copy_users(work: Workplace) -> bool:
    """Copies the user's packages; links into the checkout then lead into the workspace."""
    checkout = work.checkout
    if checkout is None or not (checkout / MODULES).is_dir():
        return False
    moves = Moves({str(checkout): str(work.tree), str(checkout.resolve()): str(work.tree)})
    _remove_modules(work)
    for folder in module_folders(checkout):
        target = work.tree / folder.relative_to(checkout)
        if target.parent.is_dir():
            listed = folder_copies.listing(folder, moves)
            folder_copies.lay(folder, listed, target, moves, root=work.tree, hard_links=False)
    return True


def _tracks_modules(work: Workplace) -> bool:
    from iterdev.host.git.command import git  # noqa: PLC0415

    return bool(git("ls-files", "--", f"{MODULES}/", cwd=work.tree).stdout)


def _remove_leading_outside(tree: Path) -> None:
    """Removes a link to the node_modules of the checkout if the packages of the repository would come from there."""
    link = tree / MODULES
    if link.is_symlink() and any(os.path.lexists(link / name) for name in own_packages(tree)):
        untrusted_files.unlink(link, root=tree)


def own_packages(tree: Path) -> dict[str, Path]:
    """The packages of a repository with several, by their names."""
    found = {}
    for file in _package_files(tree):
        package = _package(file) or {}
        if file.parent != tree and isinstance(name := package.get("name"), str) and name:
            found[name] = file.parent
    return found


def module_folders(tree: Path) -> list[Path]:
    """Every node_modules of the repository that is not inside of another one."""
    return [folder for folder in places_of_modules(tree) if folder.is_dir() and not folder.is_symlink()]


def places_of_modules(tree: Path) -> list[Path]:
    """Where node_modules are, or links to them."""
    return [file.parent / MODULES for file in _package_files(tree)]


def _package_files(tree: Path) -> list[Path]:
    """Every package.json of the repository itself."""
    return sorted(map(Path, _search(str(tree), DEEPEST)))


def _search(folder: str, depth: int) -> Iterator[str]:
    # A listing says which entries are folders, so that nothing has to be asked about each of many thousand files.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == "package.json":
                if entry.is_file():
                    yield entry.path
            elif depth and entry.is_dir(follow_symlinks=False) and entry.name != MODULES and entry.name[0] != ".":
                yield from _search(entry.path, depth - 1)


def _digest(tree: Path, packages: list[Path], manager: str) -> str:
    digest = hashlib.sha256(f"{manager}\n{os.path.realpath(shutil.which('node') or '')}\n".encode())
    for path in packages:
        package = _package(path) or {}
        # Scripts and versions of the packages change often, and have no influence on what is installed.
        parts = {
            name: package.get(name)
            for name in (*DEPENDENCIES, "name", "workspaces", "overrides", "resolutions", "pnpm", "bin", "engines")
        }
        digest.update(str(path.relative_to(tree)).encode() + msgspec.json.encode(parts))
    for name in (*LOCKS, *SETTINGS):
        path = tree / name
        digest.update(name.encode() + (_bytes(path)))
    for patch in sorted((tree / "patches").glob("*.patch")):
        digest.update(_bytes(patch))
    return digest.hexdigest()


def _bytes(path: Path) -> bytes:
    return untrusted_files.read_or_empty(path)


def _package(path: Path) -> dict[str, object] | None:
    try:
        found = msgspec.json.decode(untrusted_files.read_bytes(path))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
