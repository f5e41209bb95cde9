"""The virtual environment of a workspace, in which the project's own packages are imported from the workspace.

It is a copy of a cached one, or of the user's own if that has everything the project declares; otherwise it is made
from what the project declares.
"""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

import anyio
from msgspec import Struct

from iterdev.host import untrusted_files
from iterdev.host.environments import downloads, folder_copies
from iterdev.host.environments.cache import Entry, Made
from iterdev.host.environments.folder_copies import Moves
from iterdev.host.environments.python import hook, installed, interpreters
from iterdev.host.environments.python.installed import PythonEnvironment
from iterdev.host.environments.python.installer import (
    ISOLATED,
    PROJECT_PATH,
    Installer,
    Shortfall,
    is_editable,
    path_entries,
    site_packages,
    told,
    variables,
)
from iterdev.host.environments.python.project import PythonProject, interpreter
from iterdev.host.environments.python.versions import normalized
from iterdev.host.environments.workplace import CommandFailed, Part, Workplace, seconds_since
from iterdev.host.threads import in_thread

FORMAT = "2"
"""Of cached environments; raised when older ones are not to be used any more."""
LARGEST_COPY = 2 << 30
"""Bytes of a user's environment; a larger one is read where it is."""
LARGEST_GENERATED = 1 << 20
HOOK = "_iterdev_loaded_modules"
MARKER = ".iterdev-key"


class Source(Struct, frozen=True, kw_only=True):
    """What an environment is made from."""

    key: str
    described: str
    user: PythonEnvironment | None = None


async def prepare(work: Workplace, project: PythonProject) -> Part:
    home = work.home / "python"
    source = await _choose(work, project)
    if source is None:
        text = "Python: the project declares nothing that is not installed; `python3` is used as it is"
        return Part(made=False, described=(text,))
    provided = await _provide(work, project, source, home)
    if not provided.described:
        return Part(problems=provided.problems)
    _replace_users(work, home)
    version = site_packages(home).parent.name.removeprefix("python")
    below = [str(source.user.prefix)] if source.user and source.user.kind == "installation" else []
    return Part(
        variables=variables(home, work.variables),
        described=(f"Python {version}: {provided.described}",),
        new=provided.new,
        problems=provided.problems,
        folders=(*below, *_installation(home)),
    )


def _installation(home: Path) -> tuple[str, ...]:
    """The Python that the environment is made of; a program in the workspace can have replaced the link to it."""
    python = (home / "bin" / "python").resolve()
    prefix = python.parents[1] if len(python.parents) > 1 else python
    return (str(prefix),) if any(prefix.glob("lib*/python3*/os.py")) else ()


async def is_at_hand(work: Workplace, project: PythonProject) -> bool:
    """Whether the environment is in the cache, or none is needed."""
    source = await _choose(work, project)
    return source is None or work.cache.find(source.key) is not None


def planned(tree: Path, checkout: Path | None, outer: Mapping[str, str], project: PythonProject) -> tuple[str, str]:
    """What the environment would be made from, and the key of its cache entry; nothing is run."""
    for user in interpreters.users_environments(checkout, outer):
        if _fits(project, tree, user):
            return _users(user), _key(project, user.fingerprint())
    return _declared(project), _key(project, interpreter(outer))


async def _choose(work: Workplace, project: PythonProject) -> Source | None:
    """None if the Python on the PATH will do as it is."""
    for user in interpreters.users_environments(work.checkout, work.variables):
        key = _key(project, user.fingerprint())
        known = work.cache.find(key) is not None
        if known or await in_thread(_fits, project, work.tree, user):
            return Source(key=key, described=_users(user), user=user)
    if not project.declares:
        return None
    system = await interpreters.system(work)
    fits = await in_thread(_fits, project, work.tree, system) if system else False
    if system and fits:
        key = _key(project, system.fingerprint())
        return Source(key=key, described=_users(system), user=system) if project.installable else None
    return Source(key=_key(project, interpreter(work.variables)), described=_declared(project))


def _fits(project: PythonProject, tree: Path, user: PythonEnvironment) -> bool:
    return installed.satisfies_python(user.version, project.requires_python) and not installed.missing(
        project, tree, user
    )


def _key(project: PythonProject, base: str) -> str:
    text = f"{FORMAT}\n{project.digest}\n{base}"
    return f"python-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _users(user: PythonEnvironment) -> str:
    return f'a copy of your environment "{user.prefix}"' if user.kind == "virtual" else f'on top of "{user.prefix}"'


def _declared(project: PythonProject) -> str:
    names = list(dict.fromkeys(group.name for group in project.groups))
    told_first = [*(["the project's dependencies"] if project.installable else []), *names][:4]
    return f"made from {', '.join(told_first)}" if told_first else "made for the tests"


class Provided(Struct, frozen=True, kw_only=True):
    described: str = ""
    """Empty if there is no environment."""
    new: bool = False
    problems: tuple[str, ...] = ()


async def _provide(work: Workplace, project: PythonProject, source: Source, home: Path) -> Provided:
    """Puts the environment into the workspace."""
    started = anyio.current_time()
    async with work.cache.locked(source.key):
        entry = work.cache.find(source.key)
        if entry and await _lay(work, project, entry, home):
            described = f"{entry.made.source}, from the cache in {seconds_since(started)}"
            return Provided(described=described, problems=entry.made.problems)
        if entry is None and _marked(home) == _stamp(source.key, project):
            return Provided(described=f"{source.described}, made before in this workspace")
        await in_thread(untrusted_files.remove, home, root=home.parent)
        before = await in_thread(work.untracked)
        try:
            shortfalls = await _make(work, project, source, home)
            shortfalls += await Installer.of(work, home).link_own_packages()
        except CommandFailed as failed:
            await in_thread(untrusted_files.remove, home, root=home.parent)
            return Provided(problems=(told(failed),))
        _add_hook(home)
        taken = _taken(work, project, source, home, started)
        problems = tuple(shortfall.text for shortfall in shortfalls)
        if work.trusted and not any(shortfall.offline for shortfall in shortfalls):
            generated = await in_thread(work.untracked) - before
            made = Made(
                ecosystem="python",
                source=source.described,
                places=_places(work, home),
                builds_in_tree=any(name.endswith((".so", ".pyd")) for name in generated),
                problems=problems,
                installed=taken,
            )
            kept = {name: work.tree / name for name in generated if _is_shared(work.tree, name)}
            entry = await in_thread(work.cache.publish, source.key, made, {"python": home}, kept)
            await in_thread(
                work.cache.lay, entry, _places(work, home), home.parent, work.tree, hard_links=work.hard_links
            )
        _mark(home, _stamp(source.key, project))
    return Provided(described=f"{source.described}, {taken}", new=True, problems=problems)


def _taken(work: Workplace, project: PythonProject, source: Source, home: Path, started: float) -> str:
    """How long it took, and unless the packages are the user's, which were installed, and which of them downloaded."""
    time = f"in {seconds_since(started)}"
    if source.user:
        return time
    names = (path.name.removesuffix(".dist-info") for path in site_packages(home).glob("*.dist-info"))
    packages = (name.replace("_", "-").rpartition("-") for name in names)
    unasked = {"pip", "setuptools", normalized(project.name)}
    others = sorted(f"{name}@{version}" for name, _, version in packages if normalized(name) not in unasked)
    installer = "uv" if work.program("uv") else "pip"
    found = downloads.read("".join(work.printed), installer)
    return f"by {installer} {time}: {downloads.told(others, found)}"


async def _lay(work: Workplace, project: PythonProject, entry: Entry, home: Path) -> bool:
    """Puts a copy of a cached environment into the workspace, unless it is there already."""
    if not (entry.content / "python" / "bin" / "python").exists():
        # The interpreter was uninstalled.
        return False
    compiled = entry.made.builds_in_tree or project.compiles
    is_there = _marked(home) == _stamp(entry.key, project)
    # Where the project was installed once more, some of the files are not those of the entry.
    if is_there and (compiled or await in_thread(work.cache.is_laid, entry, home.parent)):
        return True
    await in_thread(untrusted_files.remove, home, root=home.parent)
    if not await in_thread(
        work.cache.lay, entry, _places(work, home), home.parent, work.tree, hard_links=work.hard_links
    ):
        return False
    if compiled:
        await Installer.of(work, home).install_project(project, dependencies=False)
    _mark(home, _stamp(entry.key, project))
    return True


def _places(work: Workplace, home: Path) -> dict[str, str]:
    return {"environment": str(home), "tree": str(work.tree)}


def _stamp(key: str, project: PythonProject) -> str:
    return f"{key}\n{project.sources}\n"


def _marked(home: Path) -> str:
    return untrusted_files.read_or_empty(home / MARKER, root=home.parent).decode("utf-8", "replace")


def _mark(home: Path, stamp: str) -> None:
    untrusted_files.write_bytes(home / MARKER, stamp.encode(), root=home.parent)


async def _make(work: Workplace, project: PythonProject, source: Source, home: Path) -> tuple[Shortfall, ...]:
    """Makes the environment in its place, and returns what could not be installed."""
    home.parent.mkdir(parents=True, exist_ok=True)
    if source.user:
        return await _make_from_users(work, project, source.user, home)
    try:
        return await _make_from_declared(work, project, home)
    except CommandFailed as failed:
        users = interpreters.users_environments(work.checkout, work.variables)
        fallback = next(users, None) or await interpreters.system(work)
        await in_thread(untrusted_files.remove, home, root=home.parent)
        lacking = await in_thread(installed.missing, project, work.tree, fallback) if fallback else ["all"]
        if fallback is None or set(lacking) & set(project.runtime):
            raise
        without = f", which lacks {', '.join(lacking[:4])}" if lacking else ""
        used = Shortfall(f'{told(failed)}; until then "{fallback.prefix}" is used{without}', offline=True)
        return (used, *await _make_from_users(work, project, fallback, home))


async def _make_from_declared(work: Workplace, project: PythonProject, home: Path) -> tuple[Shortfall, ...]:
    installer = Installer.of(work, home)
    try:
        await installer.create(project)
        return await installer.install_all(project)
    except CommandFailed as failed:
        if installer.uv is None or failed.offline:
            raise
    # Settings of pip that uv does not read, such as an index, may make the difference.
    await in_thread(untrusted_files.remove, home, root=home.parent)
    installer = Installer(work=work, home=home, uv=None)
    await installer.create(project)
    return await installer.install_all(project)


async def _make_from_users(
    work: Workplace, project: PythonProject, user: PythonEnvironment, home: Path
) -> tuple[Shortfall, ...]:
    moves = _moves(work, project, user, home)
    listed = await in_thread(folder_copies.listing, user.prefix, moves) if user.kind == "virtual" else None
    if listed and sum(file.size for file in listed.files) <= LARGEST_COPY:
        await in_thread(folder_copies.lay, user.prefix, listed, home, moves, root=work.home, hard_links=False)
    else:
        await _make_on_top(work, user, home)
    if not project.installable or (is_editable(work.tree, project, home) and not project.compiles):
        return ()
    return await Installer.of(work, home).install_project(project, dependencies=False)


def _moves(work: Workplace, project: PythonProject, user: PythonEnvironment, home: Path) -> Moves:
    """From the user's environment to the copy, and from where the project was installed to the workspace."""
    places = {str(user.prefix): str(home)}
    if work.checkout:
        places |= {str(work.checkout): str(work.tree), str(work.checkout.resolve()): str(work.tree)}
    source = installed.editable_source(user, project.name)
    if source and not any(source.is_relative_to(place) for place in places):
        # Installed from another clone of the same project.
        top = source.parent if source.name in {"src", "lib", "python"} else source
        places[str(top)] = str(work.tree)
    return Moves(places)


async def _make_on_top(work: Workplace, user: PythonEnvironment, home: Path) -> None:
    """Makes an environment that imports the packages of the user's after its own."""
    await work.call(str(user.python), "-m", "venv", "--without-pip", str(home))
    packages = site_packages(home)
    # The project may be among the user's packages too, from the checkout.
    untrusted_files.write_bytes(packages / PROJECT_PATH, path_entries(work.tree), root=work.home)
    base = f"import os, site; os.environ.get({ISOLATED!r}) or site.addsitedir({str(user.packages)!r})\n"
    untrusted_files.write_bytes(packages / "_iterdev_2_base.pth", base.encode(), root=work.home)


def _add_hook(home: Path) -> None:
    packages, root = site_packages(home), home.parent
    untrusted_files.write_bytes(packages / f"{HOOK}.py", Path(hook.__file__).read_bytes(), root=root)
    line = f'import os; os.environ.get("{hook.FILE}") and __import__("{HOOK}")\n'
    untrusted_files.write_bytes(packages / f"{HOOK}.pth", line.encode(), root=root)


def _replace_users(work: Workplace, home: Path) -> None:
    """Puts this environment in the place of a `.venv` that was brought from the checkout, whose code it imports."""
    for name in (".venv", "venv"):
        place = work.tree / name
        if not (place / "pyvenv.cfg").exists() or place.resolve() == home.resolve():
            continue
        if place.is_symlink():
            place.unlink()
        elif f"{name}/pyvenv.cfg" in work.untracked():
            shutil.rmtree(place)
        else:
            continue
        place.symlink_to(home)


def _is_shared(tree: Path, name: str) -> bool:
    """Whether a file that the build left in the tree, such as one with the version, belongs to every workspace."""
    path = tree / name
    parts = path.relative_to(tree).parts
    for_build = any(part in {"build", "__pycache__"} or part.endswith((".egg-info", ".dist-info")) for part in parts)
    if for_build or name.endswith((".so", ".pyd", ".pyc", ".o")) or path.is_symlink() or not path.is_file():
        return False
    return path.stat().st_size <= LARGEST_GENERATED
