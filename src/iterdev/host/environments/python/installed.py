"""What is installed in a Python environment of the user, and whether it is what a project declares."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Struct
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from iterdev.host.environments.python.project import PythonProject
from iterdev.host.environments.python.requirement_groups import requirements


class PythonEnvironment(Struct, frozen=True, kw_only=True):
    """An environment that exists: a virtual one, or an installation such as conda's or the system's."""

    prefix: Path
    version: str
    packages: Path
    """Its site-packages."""
    kind: Literal["virtual", "installation"]

    @property
    def python(self) -> Path:
        named = self.prefix / "bin" / "python3"
        return named if named.exists() else self.prefix / "bin" / "python"

    def fingerprint(self) -> str:
        """Changes when a package is installed or removed."""
        digest = hashlib.sha256(f"{self.prefix}\n{self.version}\n{self.packages.stat().st_mtime_ns}".encode())
        for name in sorted(os.listdir(self.packages)):  # noqa: PTH208 - names alone
            digest.update(os.fsencode(name) + b"\n")
        return digest.hexdigest()[:16]


def virtual_environment(prefix: Path) -> PythonEnvironment | None:
    """The virtual environment in a folder, if there is a usable one."""
    settings = dict(re.findall(r"^(\w[\w-]*)[ \t]*=[ \t]*(\S.*|)$", _text(prefix / "pyvenv.cfg"), re.MULTILINE))
    if not settings or not (prefix / "bin" / "python").exists():
        return None
    return _environment(prefix, settings.get("version") or settings.get("version_info", ""), "virtual")


def installation(prefix: Path, version: str = "") -> PythonEnvironment | None:
    """A Python with packages of its own, such as the one of an active conda environment."""
    return _environment(prefix, version, "installation")


def _environment(prefix: Path, version: str, kind: Literal["virtual", "installation"]) -> PythonEnvironment | None:
    for packages in sorted(prefix.glob("lib/python3*/site-packages"), reverse=True):
        short = packages.parent.name.removeprefix("python")
        if packages.is_dir() and (not version or version.startswith(f"{short}.") or version == short):
            full = ".".join(version.split(".")[:3]) or short
            return PythonEnvironment(prefix=prefix, version=full, packages=packages, kind=kind)
    return None


def satisfies_python(version: str, requires: str) -> bool:
    try:
        return SpecifierSet(requires).contains(Version(version), prereleases=True)
    except ValueError:
        # Not only what is no version: Python does not read numbers of more than 4,300 digits.
        return True


def missing(project: PythonProject, tree: Path, environment: PythonEnvironment) -> list[str]:
    """The requirements of the project, its tests' among them, that the environment does not fulfil."""
    installed, seen = Installed(environment), set[tuple[str, str]]()
    wanted = (*project.runtime, *requirements(project.groups, tree), *project.own_packages)
    return list(dict.fromkeys(text for text in wanted for text in installed.unmet(text, seen)))


class Installed:
    """The distributions of an environment."""

    def __init__(self, environment: PythonEnvironment) -> None:
        found = distributions(path=[str(environment.packages)])
        self._found: dict[str, Distribution] = {}
        for one in found:
            with suppress(KeyError, TypeError, OSError):
                self._found.setdefault(canonicalize_name(one.metadata["Name"]), one)
        short = ".".join(environment.version.split(".")[:2])
        self._variables: dict[str, str] = {
            **_plain(default_environment()),
            "python_version": short,
            "python_full_version": environment.version,
        }

    def get(self, name: str) -> Distribution | None:
        return self._found.get(canonicalize_name(name))

    def unmet(self, text: str, seen: set[tuple[str, str]], extra: str = "") -> Iterator[str]:
        """The requirement itself, or what it requires in turn, as far as it is not installed in a fitting version.

        `seen` are distributions with an extra whose own requirements have been looked at: many lead to the same one.
        """
        try:
            requirement = Requirement(text)
            if requirement.marker and not requirement.marker.evaluate({**self._variables, "extra": extra}):
                return
        except ValueError:
            # A path, a URL or an option: nothing that can be compared.
            return
        distribution = self.get(requirement.name)
        if distribution is None or not _fits(distribution, requirement):
            yield text
            return
        new = {(distribution.name, wanted) for wanted in requirement.extras or ("",)} - seen
        seen |= new
        for further in (distribution.requires or ()) if new else ():
            for _, wanted in sorted(new):
                yield from self.unmet(further, seen, wanted)


def _plain(variables: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in variables.items()}


def _fits(distribution: Distribution, requirement: Requirement) -> bool:
    if requirement.url:
        return True
    try:
        return requirement.specifier.contains(Version(distribution.version), prereleases=True)
    except (ValueError, TypeError):
        return False


def editable_source(environment: PythonEnvironment, name: str) -> Path | None:
    """The folder from which a package is imported that was installed in editable mode."""
    distribution = Installed(environment).get(name)
    with suppress(OSError, ValueError, RecursionError):
        text = (distribution.read_text("direct_url.json") or "") if distribution else ""
        direct = msgspec.json.decode(text.encode(), type=_DirectUrl)
        return Path(unquote(urlsplit(direct.url).path)) if direct.dir_info and direct.dir_info.editable else None
    for link in environment.packages.glob("*.egg-link"):
        if canonicalize_name(link.stem) == canonicalize_name(name):
            return Path(_text(link).partition("\n")[0].strip())
    return None


def copied_folders(environment: PythonEnvironment, tree: Path) -> Iterator[Path]:
    """The folders of a tree from which packages were installed as copies, which do not follow what changes there.

    Compiled ones are left out: a change of one is not under test, which its modules will show.
    """
    for distribution in distributions(path=[str(environment.packages)]):
        with suppress(OSError, ValueError, RecursionError):
            direct = msgspec.json.decode((distribution.read_text("direct_url.json") or "").encode(), type=_DirectUrl)
            folder = Path(unquote(urlsplit(direct.url).path))
            is_copy = direct.dir_info is not None and not direct.dir_info.editable
            # An editable installation would compile it in the workspace, and only in the one that it is made in.
            compiled = any(file.suffix in {".so", ".pyd"} for file in distribution.files or ())
            if is_copy and not compiled and folder.is_relative_to(tree) and folder.is_dir():
                yield folder


class _DirInfo(Struct):
    editable: bool = False


class _DirectUrl(Struct):
    url: str
    dir_info: _DirInfo | None = None
    """Only of what was installed from a folder."""


def files_of(environment: PythonEnvironment, name: str) -> Iterator[Path]:
    """The files of a package in site-packages."""
    distribution = Installed(environment).get(name)
    for file in (distribution.files or ()) if distribution else ():
        path = Path(os.path.normpath(environment.packages / file))
        if path.is_relative_to(environment.packages):
            yield path


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
