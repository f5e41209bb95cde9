"""Finds the test suites of Python projects: pytest, unittest, Django, and what tox, nox and the like would run."""

import os
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from iterdev.host.test_suites.invocations import program_name, runner
from iterdev.host.test_suites.projects.files import ProjectFiles, is_inside, join, parent, table
from iterdev.host.test_suites.projects.python_commands import DeclaredCommand, declared
from iterdev.host.test_suites.suite import Suite, Works

PYTHON = "python3"
"""The interpreter of the project's environment, which is the first on the path; every environment has this name."""
DEPTH = 4
"""How deep below the top projects of their own are looked for."""
FILES = 300
"""Test files of a project that are read."""
GROUPS = 8
"""Folders of one project in which unittest is started."""

_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini", "manage.py")
_ASIDE = frozenset(
    {"examples", "example", "docs", "doc", "test", "tests", "benchmarks", "templates", "template", "scripts"}
)
_PYTEST_FILES = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
_PYTEST_SECTIONS = (("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]"))
_PYTEST_STYLE = re.compile(
    r"^(?:import pytest|from pytest|(?:async )?def test(?!_suite\b|_all\b)|class Test\w*(?:\(\))?:)", re.MULTILINE
)
_PYTEST_NAMES = re.compile(r"(?:.*/)?(?:test_[^/]*|[^/]*_test)\.py")
_UNITTEST_STYLE = re.compile(r"\b(?:unittest|\w*TestCase)\b")
_SCRIPTS = ("runtests.py", "run_tests.py", "tests/runtests.py", "test/runtests.py", "tests/run_tests.py")
_PROGRAM_MODULES: Mapping[str, tuple[str, ...]] = {
    "pytest": ("pytest",),
    "py.test": ("pytest",),
    "zope-testrunner": ("zope.testrunner",),
    "trial": ("twisted.trial",),
    "django-admin": ("django",),
    "django-admin.py": ("django",),
    "nose2": ("nose2",),
}
_UNWANTED = re.compile(
    r"--no-cov|--cov(?:-.*|=.*)|--junit-?xml=.*|--durations.*|--tb=.*|--color=.*|--html=.*|--maxfail=.*|--exitfirst"
    r"|--verbose|--quiet|-[vqxsl]+|--numprocesses=.*|--dist=.*|-n\d+|-nauto|-r[a-zA-Z]+|--benchmark-.*|--showlocals"
)
_UNWANTED_VALUE = frozenset(
    {
        *("--cov", "--cov-config", "--cov-context", "--cov-fail-under", "--cov-report"),
        *("-n", "--numprocesses", "--dist", "--maxfail", "--tb", "--color", "--durations", "--durations-min", "--html"),
        *("--junitxml", "--junit-xml"),
    }
)
"""Options whose value may be the next word."""
_SETTINGS = ("test_settings.py", "settings.py")


class _Project(Struct, frozen=True):
    folder: str
    inner: tuple[str, ...]
    """Projects of their own below it."""
    tests: Mapping[str, str]
    """The test files with their texts; the names are relative to the top of the tree."""


def find(files: ProjectFiles, works: Works) -> Iterator[Suite]:
    projects = [project for project in _projects(files) if project.tests or _configures_pytest(files, project)]
    if not projects:
        return
    has = _Modules(works)
    covered: list[str] = []
    for project in projects:
        if not any(is_inside(path, project.folder) for path in covered):
            yield from _suites(files, project, has)
            covered += (join(project.folder, path) for path in _test_paths(files, project.folder))


class _Modules:
    """Which modules the project's interpreter has; each is asked for once."""

    def __init__(self, works: Works) -> None:
        self._works = works
        self._known: dict[str, bool] = {}

    def __contains__(self, module: object) -> bool:
        name = str(module)
        if name not in self._known:
            code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
            self._known[name] = self._works((PYTHON, "-c", code))
        return self._known[name]


def _projects(files: ProjectFiles) -> Iterator[_Project]:
    folders = [""]
    for folder in files.with_file(*_PROJECT_FILES):
        parts = folder.split("/")
        if folder and len(parts) <= DEPTH and not _ASIDE.intersection(parts) and _is_project(files, folder):
            folders.append(folder)
    for folder in folders:
        inner = tuple(other for other in folders if other != folder and is_inside(other, folder))
        yield _Project(folder, inner, _tests(files, folder, inner))


def _is_project(files: ProjectFiles, folder: str) -> bool:
    """Some files with these names only hold settings of tools for a folder."""
    names = files.folders[folder]
    if not names.isdisjoint({"setup.py", "tox.ini", "pytest.ini", "manage.py"}):
        return True
    settings = files.toml(folder, "pyproject.toml")
    tool = table(settings, "tool")
    has_settings = "project" in settings or "build-system" in settings or "poetry" in tool or "pytest" in tool
    return has_settings or "[metadata]" in files.text(folder, "setup.cfg")


def _tests(files: ProjectFiles, folder: str, inner: Sequence[str]) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for where in files.below(folder):
        if any(is_inside(where, other) for other in inner):
            continue
        for name in sorted(files.folders[where]):
            if name.endswith(".py") and (name.startswith("test") or name.endswith("_test.py")):
                text = files.text(where, name)
                if len(texts) < FILES and (_PYTEST_STYLE.search(text) or _UNITTEST_STYLE.search(text)):
                    texts[join(where, name)] = text
    return texts


def _suites(files: ProjectFiles, project: _Project, has: _Modules) -> Iterator[Suite]:
    explicit = list(_explicit(files, project, has))
    styled = any(_PYTEST_NAMES.fullmatch(path) and _PYTEST_STYLE.search(text) for path, text in project.tests.items())
    by_pytest = [suite for suite in explicit if suite.kind == "pytest"]
    if by_pytest or (not explicit and (styled or _configures_pytest(files, project))):
        only_unittest = bool(project.tests) and not styled and "pytest" not in has
        if not only_unittest:
            yield from by_pytest or (_pytest(files, project),)
            return
    elif explicit:
        yield from explicit
        return
    yield from _unittest(files, project)


def _explicit(files: ProjectFiles, project: _Project, has: _Modules) -> Iterator[Suite]:
    """The runners among the declared commands; the first environment that has any decides."""
    seen: dict[Suite, str] = {}
    for command in declared(files, project.folder):
        suite = _declared_suite(files, project, command, has)
        if suite and suite not in seen:
            if any(other.kind != suite.kind or where != command.environment for other, where in seen.items()):
                return
            seen[suite] = command.environment
            yield suite
            if len(seen) >= GROUPS:
                return


def _declared_suite(files: ProjectFiles, project: _Project, command: DeclaredCommand, has: _Modules) -> Suite | None:
    words = _python_words(list(command.words))
    found = runner(words)
    if found is None or found.kind not in {"pytest", "unittest"}:
        return None
    arguments = words[found.arguments :]
    folder = join(project.folder, command.folder)
    if folder not in files.folders:
        return None
    if found.kind == "pytest":
        kept = [word for word in _wanted(arguments) if not _is_missing_path(files, folder, word)]
        if any(map(_is_document, kept)) and all(_is_document(word) or word.startswith("-") for word in kept):
            return None
        program = [PYTHON, "-m", "pytest", *map(shlex.quote, kept), *_ignored(files, project, kept)]
        return Suite(command=" ".join((*command.variables, *program)), kind="pytest", folder=folder)
    module = arguments[1] if arguments[0] == "-m" else ""
    if (module and module != "unittest" and module not in has) or (
        not module and _is_missing_path(files, folder, arguments[0])
    ):
        return None
    text = " ".join((*command.variables, PYTHON, *map(shlex.quote, arguments)))
    return Suite(command=text, kind="unittest", folder=folder)


def _python_words(words: list[str]) -> list[str]:
    """The command without the tools that tests are run through, and with the project's interpreter."""
    if words and program_name(words[0]) in _PROGRAM_MODULES:
        return [PYTHON, "-m", *_PROGRAM_MODULES[program_name(words[0])], *words[1:]]
    if words and re.fullmatch(r"python[\d.]*", program_name(words[0])):
        return [PYTHON, *words[1:]]
    return words


def _wanted(arguments: Sequence[str]) -> Iterator[str]:
    before = ""
    for word in arguments:
        is_value = before in _UNWANTED_VALUE and not word.startswith("-")
        if not is_value and word not in _UNWANTED_VALUE and not _UNWANTED.fullmatch(word):
            yield word
        before = "" if is_value else word


def _is_document(word: str) -> bool:
    """A text whose examples pytest runs; the tests of the project are elsewhere."""
    return word.endswith((".rst", ".md", ".txt")) and not word.startswith("-")


def _is_missing_path(files: ProjectFiles, folder: str, word: str) -> bool:
    looks_like_path = not word.startswith("-") and ("/" in word or word.endswith(".py"))
    return looks_like_path and not os.path.exists(files.root / folder / word.partition("::")[0])  # noqa: PTH110 - a name of any length


def _pytest(files: ProjectFiles, project: _Project) -> Suite:
    ignored = _ignored(files, project, ())
    return Suite(command=" ".join((PYTHON, "-m pytest", *ignored)), kind="pytest", folder=project.folder)


def _ignored(files: ProjectFiles, project: _Project, arguments: Sequence[str]) -> list[str]:
    """Options that keep pytest out of the projects below, which have suites of their own."""
    if _test_paths(files, project.folder) or any(not word.startswith("-") for word in arguments):
        return []
    inner = [os.path.relpath(folder, project.folder or ".") for folder in project.inner]
    return [f"--ignore={shlex.quote(folder)}" for folder in inner]


def _test_paths(files: ProjectFiles, folder: str) -> list[str]:
    value = table(files.toml(folder, "pyproject.toml"), "tool", "pytest", "ini_options").get("testpaths")
    if isinstance(value, list):
        return [str(path) for path in value]
    if isinstance(value, str):
        return value.split()
    for name in ("pytest.ini", "tox.ini", "setup.cfg"):
        if match := re.search(
            r"^testpaths\s*=[ \t]*((?:.*\n?)(?:[ \t]+\S.*\n?)*)", files.text(folder, name), re.MULTILINE
        ):
            return match[1].split()
    return []


def _configures_pytest(files: ProjectFiles, project: _Project) -> bool:
    folder = project.folder
    return (
        not _PYTEST_FILES.isdisjoint(files.folders.get(folder, ()))
        or any(section in files.text(folder, name).splitlines() for name, section in _PYTEST_SECTIONS)
        or "pytest" in table(files.toml(folder, "pyproject.toml"), "tool")
        or any(
            "conftest.py" in files.folders[where]
            for where in files.below(folder)
            if not any(is_inside(where, inner) for inner in project.inner)
        )
    )


def _unittest(files: ProjectFiles, project: _Project) -> Iterator[Suite]:
    folder = project.folder
    tests = {path: text for path, text in project.tests.items() if _UNITTEST_STYLE.search(text)}
    if "manage.py" in files.folders.get(folder, ()) and "django" in files.text(folder, "manage.py"):
        yield Suite(command=f"{PYTHON} manage.py test", kind="unittest", folder=folder)
        return
    if settings := _django_settings(files, folder, tests):
        command = f"DJANGO_SETTINGS_MODULE={settings} {PYTHON} -m django test"
        yield Suite(command=command, kind="unittest", folder=folder)
        return
    for script in _SCRIPTS:
        where, _, name = script.rpartition("/")
        if name in files.folders.get(join(folder, where), ()):
            yield Suite(command=f"{PYTHON} {script}", kind="unittest", folder=folder)
            return
    for start, top, pattern in _discoveries(files, folder, tests):
        options = ("-s", start, *(("-t", top) if top != start else ()), *(("-p", pattern) if pattern else ()))
        text = f"{PYTHON} -m unittest discover {shlex.join(options)}"
        yield Suite(command=text, kind="unittest", folder=folder)


def _django_settings(files: ProjectFiles, project: str, tests: Mapping[str, str]) -> str:
    """The module beside the tests with which those of a Django app run that is no project; empty if there is none."""
    for where in dict.fromkeys(parent(path) for path, text in tests.items() if "django.test" in text):
        for name in _SETTINGS:
            if "INSTALLED_APPS" in files.text(where, name):
                path = PurePosixPath(join(where, name)).relative_to(project or ".").with_suffix("")
                return ".".join(path.parts)
    return ""


def _discoveries(files: ProjectFiles, project: str, tests: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Where discovery starts, the folder that its modules are imported from, and the pattern if it is not the default.

    Discovery only enters packages, so every package has its own, and every folder that is none.
    """
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in tests:
        where, name = parent(path), PurePosixPath(path).name
        top = where
        while "__init__.py" in files.folders.get(top, ()) and top != project:
            top = parent(top)
        inside = where.removeprefix(top).lstrip("/").split("/")[0]
        groups[join(top, inside) if inside else top, "" if name.startswith("test") else "*_test.py"].append(where)
    found: list[tuple[str, str, str]] = []
    for (package, pattern), folders in groups.items():
        start = _common(folders)
        top = package if "__init__.py" not in files.folders.get(package, ()) else parent(package)
        if package == project:
            top = project
        found.append(
            (os.path.relpath(start or ".", project or "."), os.path.relpath(top or ".", project or "."), pattern)
        )
    return found[:GROUPS]


def _common(folders: Sequence[str]) -> str:
    common = folders[0].split("/")
    for folder in folders[1:]:
        parts = folder.split("/")
        length = next(
            (i for i, (a, b) in enumerate(zip(common, parts, strict=False)) if a != b), min(len(common), len(parts))
        )
        common = common[:length]
    return "/".join(common)
