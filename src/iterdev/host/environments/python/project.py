"""What a Python project declares: its name, its dependencies and those of its tests, and how it is built."""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.host import ini_text
from iterdev.host.environments.python.declaration_files import (
    INCLUDED_OR_CONSTRAINTS,
    as_strings,
    as_tables,
    as_text,
    lines_of,
    lines_with_options,
    read_bytes,
    read_text,
    read_toml,
    requirement_lines,
    setup_arguments,
    string_values,
    subtable,
)
from iterdev.host.environments.python.requirement_groups import Declarations, Group, groups_for_tests, requirements
from iterdev.host.environments.python.test_needs import Tests
from iterdev.host.environments.python.versions import name_of, normalized, poetry_requirements, poetry_versions

NOT_BUILT_FROM = frozenset(
    {
        *("autopep8", "bandit", "basedpyright", "black", "bumpver", "bumpversion", "check-manifest"),
        *("check-wheel-contents", "cibuildwheel", "codespell", "commitizen", "coverage", "deptry", "docformatter"),
        *("flake8", "interrogate", "isort", "mutmut", "mypy", "pydocstyle", "pylint", "pyright", "pytest", "pytype"),
        *("refurb", "repo-review", "ruff", "semantic_release", "towncrier", "ty", "typos", "vulture", "yapf"),
    }
)
"""Tables of `[tool]` that have no influence on an environment."""
COMPILING_BACKENDS = ("maturin", "mesonpy", "scikit_build_core", "setuptools_rust", "sipbuild", "enscons")
COMPILING_SETUP = re.compile(r"ext_modules|Extension\(|cythonize|cffi_modules|rust_extensions|mypycify")
COMPILING_REQUIREMENT = re.compile(r"cython|pybind11|nanobind|hatch-mypyc", re.IGNORECASE)
COMPILED = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".pyx", ".pxd", ".rs", ".f90", ".m4")
NO_SOURCES = frozenset({"build", "node_modules", "target"})
DECLARING = frozenset({
    *("pyproject.toml", "setup.cfg", "tox.ini", "tox.toml", "hatch.toml", "pipfile"),
    *("requirements", "reqs", "requirements-dev", "etc", "tests", "test", "testing"),
})  # fmt: skip
"""In lower case: the files, apart from modules and lists of requirements, and the folders that are looked into."""
DECLARE_PACKAGES = ("pyproject.toml", "setup.py", "setup.cfg")
"""Each of them makes a folder one that can be installed."""
LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock")


class PythonProject(Struct, frozen=True, kw_only=True):
    name: str = ""
    version: str = ""
    requires_python: str = ""
    python: str = ""
    """The interpreter that `.python-version` asks for."""
    installable: bool = False
    compiles: bool = False
    """Whether installing it compiles something."""
    runtime: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    """The requirements of tests and development."""
    own_packages: tuple[str, ...] = ()
    """The names of other packages of the repository that requirements files name by their folders."""
    synced_by_uv: bool = False
    """Whether it depends on packages of its own repository, which only `uv sync` finds."""
    has_tests: bool = False
    digest: str = ""
    """Of everything that decides what the environment contains."""
    sources: str = ""
    """The digest of what is compiled when the project is installed."""

    @property
    def declares(self) -> bool:
        return self.installable or bool(self.runtime or self.groups)


def read(tree: Path) -> PythonProject | None:
    """None if there is no Python project at the top of the tree."""
    if not _may_be_there(tree):
        return None
    files, tests = _declarations(tree), Tests(tree)
    installable, runtime = _is_installable(files), _runtime(files)
    groups = groups_for_tests(files, runtime, installable=installable)
    if not (installable or runtime or groups or tests.files or files.pyproject):
        return None
    named = [*runtime, *requirements(groups, tree)]
    undeclared = tuple(name for name in tests.needs(_pytest_settings(files)) if not _is_named(name, named))
    if undeclared:
        groups = (*groups, Group(name="what the tests import", requirements=undeclared))
    uv = subtable(files.tools, "uv")
    project = PythonProject(
        name=files.name,
        version=as_text(files.metadata.get("version")) or as_text(files.poetry.get("version")),
        requires_python=_requires_python(files),
        python=read_text(tree / ".python-version").strip().partition("\n")[0],
        installable=installable,
        compiles=_compiles(files),
        runtime=runtime,
        groups=groups,
        own_packages=tuple(filter(None, (_declarations(folder).name for folder in _listed_packages(tree, groups)))),
        synced_by_uv=(tree / "uv.lock").is_file() and bool({"sources", "workspace"} & set(uv)),
        has_tests=bool(tests.files),
    )
    sources = _digest_of_sources(tree) if project.compiles else ""
    return msgspec.structs.replace(project, digest=_digest(files, project, named), sources=sources)


def _may_be_there(tree: Path) -> bool:
    """Whether something at the top has a name that can make it a Python project; mostly nothing need be opened."""
    with suppress(OSError):
        names = map(str.lower, os.listdir(tree))  # noqa: PTH208 - asked often
        return any(n in DECLARING or n.endswith(".py") or ("req" in n and n.endswith(".txt")) for n in names)
    return True


def source_roots(tree: Path) -> tuple[Path, ...]:
    """The folders from which the project's own packages are imported, the top of the tree last."""
    tools = subtable(read_toml(tree / "pyproject.toml"), "tool")
    setup_cfg = ini_text.parse(read_text(tree / "setup.cfg"))
    wheel = subtable(tools, "hatch", "build", "targets", "wheel")
    named = [
        *string_values(subtable(tools, "setuptools", "package-dir")),
        *as_strings(subtable(tools, "setuptools", "packages", "find").get("where")),
        *(as_text(package.get("from")) for package in as_tables(subtable(tools, "poetry").get("packages"))),
        *(str(Path(path).parent) for path in as_strings(wheel.get("packages"))),
        as_text(subtable(tools, "maturin").get("python-source")),
        as_text(subtable(tools, "pdm", "build").get("package-dir")),
        setup_cfg.get("options", "package_dir", fallback="").partition("=")[2].strip(),
    ]
    found = {(tree / name).resolve() for name in named if name and os.path.isdir(tree / name)}  # noqa: PTH112 - a name of any length
    found |= {tree / name for name in ("src", "lib", "python") if _has_modules(tree / name)}
    inside = sorted(path for path in found if path.is_relative_to(tree) and path != tree)
    return (*inside, tree)


def interpreter(outer: Mapping[str, str]) -> str:
    """What identifies the Python on the PATH without running it."""
    path = os.path.realpath(shutil.which("python3", path=outer.get("PATH")) or "")
    chosen = Path(outer.get("PYENV_ROOT", "/nonexistent"), "version")
    pyenv = chosen.read_text(encoding="utf-8", errors="replace") if "shims" in path and chosen.is_file() else ""
    return f"{path}\n{outer.get('PYENV_VERSION', pyenv)}"


def _has_modules(folder: Path) -> bool:
    return not (folder / "__init__.py").exists() and (any(folder.glob("*.py")) or any(folder.glob("*/*.py")))


def _declarations(tree: Path) -> Declarations:
    pyproject = read_toml(tree / "pyproject.toml")
    setup_cfg = ini_text.parse(read_text(tree / "setup.cfg"))
    setup = setup_arguments(read_text(tree / "setup.py"))
    flit = subtable(pyproject, "tool", "flit", "metadata")
    names = (
        subtable(pyproject, "project").get("name"),
        subtable(pyproject, "tool", "poetry").get("name"),
        flit.get("dist-name"),
        flit.get("module"),
        setup_cfg.get("metadata", "name", fallback=""),
        setup.get("name"),
    )
    name = next(filter(None, map(as_text, names)), "")
    return Declarations(tree=tree, name=name, pyproject=pyproject, setup_cfg=setup_cfg, setup=setup)


def _is_installable(files: Declarations) -> bool:
    if files.poetry.get("package-mode") is False or subtable(files.tools, "uv").get("package") is False:
        return False
    setup_py = read_text(files.tree / "setup.py")
    described = files.metadata or files.poetry or subtable(files.tools, "flit")
    if "build-system" in files.pyproject:
        return bool(described or setup_py) or files.setup_cfg.has_section("metadata")
    if setup_py:
        return "setup(" in setup_py
    if files.metadata:
        # Without a build system, uv and PDM take the project for an application; setuptools may refuse its layout.
        return bool(files.metadata.get("scripts")) or any(_packages(files.tree))
    return files.setup_cfg.has_section("metadata") and files.setup_cfg.has_section("options")


def _packages(tree: Path) -> Iterator[Path]:
    for folder in (tree, tree / "src"):
        yield from (path.parent for path in folder.glob("*/__init__.py") if path.parent.name not in {"tests", "test"})


def _requires_python(files: Declarations) -> str:
    named = (
        as_text(files.metadata.get("requires-python")),
        as_text(files.setup.get("python_requires")),
        files.setup_cfg.get("options", "python_requires", fallback=""),
        ",".join(poetry_versions(as_text(subtable(files.poetry, "dependencies").get("python")))),
    )
    return next(filter(None, named), "")


def _runtime(files: Declarations) -> tuple[str, ...]:
    listed = subtable(files.tools, "setuptools", "dynamic", "dependencies").get("file")
    return (
        *as_strings(files.metadata.get("dependencies")),
        *as_strings(files.setup.get("install_requires")),
        *lines_of(files.setup_cfg.get("options", "install_requires", fallback="")),
        *poetry_requirements(subtable(files.poetry, "dependencies")),
        *as_strings(subtable(files.tools, "flit", "metadata").get("requires")),
        *(line for name in as_strings(listed) for line in requirement_lines(files.tree / name)),
    )


def _pytest_settings(files: Declarations) -> str:
    options = subtable(files.tools, "pytest", "ini_options")
    texts = [f"{name} = {' '.join(as_strings(value)) or value}" for name, value in options.items()]
    texts += [read_text(files.tree / name) for name in ("pytest.ini", ".pytest.ini", "pytest.toml")]
    for file, section in (("setup.cfg", "tool:pytest"), ("tox.ini", "pytest")):
        config = ini_text.parse(read_text(files.tree / file))
        if config.has_section(section):
            texts += [f"{name} = {value}" for name, value in config.items(section)]
    return "\n".join(texts)


def _compiles(files: Declarations) -> bool:
    system = subtable(files.pyproject, "build-system")
    return (
        as_text(system.get("build-backend")).startswith(COMPILING_BACKENDS)
        or COMPILING_SETUP.search(read_text(files.tree / "setup.py")) is not None
        or "ext-modules" in subtable(files.tools, "setuptools")
        or COMPILING_REQUIREMENT.search(" ".join(as_strings(system.get("requires")))) is not None
    )


def _digest(files: Declarations, project: PythonProject, named: Iterable[str]) -> str:
    tools = {name: value for name, value in files.tools.items() if name not in NOT_BUILT_FROM}
    parts = (files.pyproject.get("build-system"), files.metadata, tools, [*named])
    digest = hashlib.sha256(msgspec.json.encode(project) + repr(parts).encode("utf-8", "replace"))
    for name in ("setup.py", "setup.cfg", "hatch.toml", *LOCKS):
        digest.update(read_bytes(files.tree / name) + b"\0")
    digest.update("\n".join(_listed(files.tree, project.groups)).encode("utf-8", "replace"))
    for folder in _local_packages(files, project.groups):
        digest.update(b"\0".join(read_bytes(folder / name) for name in DECLARE_PACKAGES))
    return digest.hexdigest()


def _listed(tree: Path, groups: Iterable[Group]) -> list[str]:
    """The lines of requirements files, with options and constraints."""
    files = [tree / name for group in groups for name in group.files]
    return [line for path in files for line in lines_with_options(path, INCLUDED_OR_CONSTRAINTS)]


def _local_packages(files: Declarations, groups: Iterable[Group]) -> Iterator[Path]:
    """Other folders of the repository that Poetry or uv may install from their path, or a requirements file names."""
    tables = (subtable(files.poetry, "dependencies"), subtable(files.tools, "uv", "sources"))
    for name in (as_text(subtable(table, name).get("path")) for table in tables for name in table):
        if name and os.path.isdir(files.tree / name):  # noqa: PTH112 - a name of any length
            yield files.tree / name
    yield from _listed_packages(files.tree, groups)


def _listed_packages(tree: Path, groups: Iterable[Group]) -> Iterator[Path]:
    for line in _listed(tree, groups):
        name = re.sub(r"^(?:-e|--editable)[ =]\s*", "", line).partition("[")[0].strip()
        if "/" in name and os.path.normpath(name) != "." and os.path.isdir(tree / name):  # noqa: PTH112
            yield tree / name


def _digest_of_sources(tree: Path) -> str:
    digest = hashlib.sha256()
    folders = [path for path in tree.glob("*/") if path.name not in NO_SOURCES and not path.name.startswith(".")]
    found = [path for folder in folders for suffix in COMPILED for path in folder.rglob(f"*{suffix}")]
    found += [path for suffix in COMPILED for path in tree.glob(f"*{suffix}")]
    for path in sorted(found):
        digest.update(str(path.relative_to(tree)).encode("utf-8", "replace") + b"\0" + read_bytes(path))
    return digest.hexdigest()


def _is_named(package: str, named: Iterable[str]) -> bool:
    return any(normalized(name_of(text)) == normalized(package) for text in named)
