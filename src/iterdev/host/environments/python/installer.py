"""Installs the project and its requirements into a virtual environment, with uv where it is, else with pip."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct

from iterdev.host import untrusted_files
from iterdev.host.environments.python import installed, interpreters
from iterdev.host.environments.python.project import PythonProject, source_roots
from iterdev.host.environments.python.requirement_groups import Group
from iterdev.host.environments.python.versions import pins
from iterdev.host.environments.workplace import CommandFailed, Workplace

ISOLATED = "ITERDEV_ISOLATED_BUILD"
"""Set while a package is built, which must not see packages outside of its own build environment."""
PROJECT_PATH = "_iterdev_1_project.pth"


class Shortfall(Struct, frozen=True):
    """What could not be installed."""

    text: str
    offline: bool = False
    """Because the network cannot be reached, so that the next try may succeed."""

    @classmethod
    def of(cls, failed: CommandFailed, what: str = "") -> Self:
        return cls(f"{what}{told(failed)}", failed.offline)


def told(failed: CommandFailed) -> str:
    offline = " (the network cannot be reached)" if failed.offline else ""
    return f"{failed}{offline}; set `setup` under [project] in iterdev.toml to make the environment yourself"


def variables(home: Path, outer: Mapping[str, str]) -> dict[str, str]:
    """With which programs, and what `uv run`, `poetry run`, `pdm run` and `pipenv run` start, use the environment."""
    return {
        "PATH": os.pathsep.join([str(home / "bin"), outer.get("PATH", os.defpath)]),
        "VIRTUAL_ENV": str(home),
        "UV_PROJECT_ENVIRONMENT": str(home),
        "UV_NO_SYNC": "1",
        "POETRY_VIRTUALENVS_CREATE": "false",
        "PDM_IGNORE_SAVED_PYTHON": "1",
        "PIPENV_VERBOSITY": "-1",
    }


def site_packages(home: Path) -> Path:
    return next(iter(sorted(home.glob("lib/python3*/site-packages"), reverse=True)))


def is_editable(tree: Path, project: PythonProject, home: Path) -> bool:
    """Whether the project is installed in the environment in editable mode, from the workspace."""
    environment = installed.virtual_environment(home)
    source = installed.editable_source(environment, project.name) if environment else None
    return source is not None and source.is_relative_to(tree)


class Installer(Struct, frozen=True, kw_only=True):
    work: Workplace
    home: Path
    uv: str | None

    @classmethod
    def of(cls, work: Workplace, home: Path) -> Self:
        return cls(work=work, home=home, uv=work.program("uv"))

    async def create(self, project: PythonProject) -> None:
        """Makes an empty environment with an interpreter that the project accepts."""
        python = await interpreters.fitting(self.work, project)
        if self.uv:
            wanted = python.path if python else project.requires_python
            await self.work.call(self.uv, "venv", "--quiet", "--no-project", "--python", wanted, str(self.home))
        elif python:
            await self.work.call(python.path, "-m", "venv", str(self.home))
        else:
            raise CommandFailed("python3 --version", f'no Python on the PATH satisfies "{project.requires_python}"')

    async def install_all(self, project: PythonProject) -> tuple[Shortfall, ...]:
        """Everything at once; if that fails, piece by piece, so that one package does not prevent the others."""
        if self.uv and project.synced_by_uv and await self._synced(project):
            return ()
        own = ("-e", ".") if project.installable else project.runtime
        everything = (*own, *(word for group in project.groups for word in _words(group)))
        for words in self._with_and_without_pins(everything):
            if await self._succeeds(words):
                return ()
        return await self._install_in_pieces(project)

    async def install_project(self, project: PythonProject, *, dependencies: bool) -> tuple[Shortfall, ...]:
        """In editable mode; where its build fails, as a path to its sources."""
        words = ("-e", ".") if dependencies else ("--no-deps", "-e", ".")
        try:
            await self._install(words)
        except CommandFailed as failed:
            first = failed
        else:
            return ()
        # Without the network, what builds the project may be in the environment.
        if await self._succeeds(("--no-build-isolation", *words), offline=False):
            return ()
        if dependencies and project.runtime:
            await self._install(project.runtime)
        self._add_sources(project)
        return (Shortfall.of(first, "the project is imported from its sources without being installed, because "),)

    async def link_own_packages(self) -> tuple[Shortfall, ...]:
        """Installs in editable mode what was installed as a copy of another folder of the repository."""
        environment = installed.virtual_environment(self.home)
        folders = sorted(installed.copied_folders(environment, self.work.tree)) if environment else []
        words = ("--no-deps", *(word for folder in folders for word in ("-e", str(folder))))
        try:
            await self._install(words if folders else ())
        except CommandFailed as failed:
            if not await self._succeeds(("--no-build-isolation", *words), offline=False):
                named = ", ".join(f'"{folder.relative_to(self.work.tree)}"' for folder in folders)
                return (Shortfall.of(failed, f"changes in {named} do not reach the environment, because "),)
        return ()

    async def _install_in_pieces(self, project: PythonProject) -> tuple[Shortfall, ...]:
        found: list[Shortfall] = []
        if project.installable:
            found += await self.install_project(project, dependencies=True)
        elif project.runtime:
            await self._install(project.runtime)
        for group in project.groups:
            found += await self._install_group(group)
        if project.installable and not found and not is_editable(self.work.tree, project, self.home):
            # A test runner that depends on the project has brought a copy of it.
            found += await self.install_project(project, dependencies=False)
        return tuple(found)

    async def _install_group(self, group: Group) -> list[Shortfall]:
        try:
            await self._install(_words(group))
        except CommandFailed as failed:
            if len(group.requirements) < 2 or failed.offline:
                return [Shortfall.of(failed, f"{group.name}: ")]
            singles = [Group(name=group.name, requirements=(word,)) for word in group.requirements]
            files = [Group(name=group.name, files=group.files)] if group.files else []
            return [shortfall for single in (*singles, *files) for shortfall in await self._install_group(single)]
        return []

    async def _synced(self, project: PythonProject) -> bool:
        options = [word for group in project.groups for word in _sync_options(group)]
        others = [word for group in project.groups if not _sync_options(group) for word in _words(group)]
        program = str(self.uv)
        environment = {**variables(self.home, self.work.variables), "UV_NO_SYNC": "0"}
        try:
            command = (program, "sync", "--frozen", "--all-packages", *options)
            await self.work.call(*command, variables=environment)
        except CommandFailed as failed:
            if failed.offline:
                raise
            return False
        return not others or await self._succeeds(others)

    def _with_and_without_pins(self, words: Sequence[str]) -> Iterator[Sequence[str]]:
        if words and (pinned := tuple(pins(self.work.tree))):
            file = self.home / "constraints.txt"
            untrusted_files.write_bytes(file, "\n".join(pinned).encode(), root=self.work.home)
            yield (*words, "-c", str(file))
        yield words

    async def _succeeds(self, words: Sequence[str], *, offline: bool = True) -> bool:
        """A failure for want of the network is raised unless it is to be expected."""
        try:
            await self._install(words)
        except CommandFailed as failed:
            if failed.offline and offline:
                raise
            return False
        return True

    async def _install(self, words: Iterable[str]) -> None:
        wanted = tuple(words)
        if not wanted:
            return
        # Files that agents may edit in place must not be those of uv's own cache.
        more = {} if self.work.trusted else {"UV_LINK_MODE": "copy"}
        if "--no-build-isolation" not in wanted:
            more[ISOLATED] = "1"
        environment = {**variables(self.home, self.work.variables), **more}
        await self.work.call(*self._command(), *wanted, variables=environment)

    def _command(self) -> tuple[str, ...]:
        python = str(self.home / "bin" / "python")
        if self.uv:
            return (self.uv, "pip", "install", "--python", python)
        options = ("install", "--progress-bar", "off", "--disable-pip-version-check", "--no-input", "--retries", "1")
        if any(site_packages(self.home).glob("pip-*")):
            return (python, "-m", "pip", *options)
        return (self.work.program("python3") or "python3", "-m", "pip", "--python", python, *options)

    def _add_sources(self, project: PythonProject) -> None:
        """A path to the sources, and metadata for programs that ask for the project's version."""
        packages = site_packages(self.home)
        environment = installed.virtual_environment(self.home)
        for file in installed.files_of(environment, project.name) if environment else ():
            untrusted_files.unlink(file, root=self.work.home)
        untrusted_files.write_bytes(packages / PROJECT_PATH, path_entries(self.work.tree), root=self.work.home)
        if project.name:
            name, version = re.sub(r"[-_.]+", "_", project.name), project.version or "0"
            folder = packages / f"{name}-{version}.dist-info"
            untrusted_files.remove(folder, root=self.work.home)
            text = f"Metadata-Version: 2.1\nName: {project.name}\nVersion: {version}\n"
            untrusted_files.write_bytes(folder / "METADATA", text.encode(), root=self.work.home)


def path_entries(tree: Path) -> bytes:
    """The lines of a .pth file by which the project's sources are found."""
    return b"".join(os.fsencode(root) + b"\n" for root in source_roots(tree))


def _sync_options(group: Group) -> tuple[str, ...]:
    """The options of `uv sync` that stand for the group."""
    kind, _, name = group.name.rpartition(" ")
    return {"extra": ("--extra", name), "dependency group": ("--group", name)}.get(kind, ())


def _words(group: Group) -> tuple[str, ...]:
    return (*group.requirements, *(word for name in group.files for word in ("-r", name)))
