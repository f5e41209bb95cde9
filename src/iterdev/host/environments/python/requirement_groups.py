"""The requirements of a project's tests and development, from all the places where projects write them."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from configparser import ConfigParser
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.host import ini_text
from iterdev.host.environments.python.declaration_files import (
    as_strings,
    as_text,
    functions,
    lines_of,
    read_text,
    read_toml,
    requirement_lines,
    session_installs,
    subtable,
)
from iterdev.host.environments.python.versions import name_of, normalized, poetry_requirements

FOR_TESTS = re.compile(
    r"(?:(?:all|unit|ci|run|local)[-_.])?(?:tests?|testing|dev|develop|development|devel|pytest|unittests?)(?:[-_.]?(?:"
    r"deps?|dependencies|requirements?|requires|reqs?|extras?|all|base|core|unit|tools?|min|full|latest))?",
    re.IGNORECASE,
)
"""Names of extras, dependency groups, environments and requirements files that are for tests or development."""
TOOLS = re.compile(
    r"(?:sphinx\w*|furo|mkdocs|myst-parser|pre-commit|mypy|pyright|basedpyright|ty|pytype|ruff|black|isort|flake8"
    r"|pylint|pycodestyle"
    r"|pydocstyle|bandit|twine|build|tox|nox|towncrier|bump2?version|bumpver|check-wheel-contents|check-manifest"
    r"|codespell|diff-cover|release-creator|commitizen"
    r"|python-semantic-release|uv|hatch|poetry|pdm|pip-tools|pipdeptree|ipython|jupyter|notebook|pyroma|interrogate|vulture)"
    r"(?:[-_][\w.-]*)?(?=\s*(?:$|[<>=!~;\[(]))",
    re.IGNORECASE,
)
"""Packages that the tests of other projects do not import."""
NAME_LIMIT = 200
"""Characters at the beginning of a requirement in which its name is looked for."""
LIST_NAME = re.compile(r"^(?:requirements?|reqs?)[-_.]*|[-_.]*(?:requirements?|reqs?)$", re.IGNORECASE)
RUNNERS = re.compile(
    r"^(?:pytest|nose2?|ward|testtools|stestr|zope[.-]testrunner|green|trial|twisted)(?![\w-])", re.IGNORECASE
)


class Group(Struct, frozen=True, kw_only=True):
    """Requirements from one place."""

    name: str
    requirements: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Requirements files, relative to the top of the project."""


class Declarations(Struct, frozen=True, kw_only=True):
    """The files of a project that declare requirements, as far as they can be read."""

    tree: Path
    name: str
    pyproject: Mapping[str, object]
    setup_cfg: ConfigParser
    setup: Mapping[str, object]
    """The arguments of `setup()` in setup.py."""

    @property
    def tools(self) -> Mapping[str, object]:
        return subtable(self.pyproject, "tool")

    @property
    def metadata(self) -> Mapping[str, object]:
        return subtable(self.pyproject, "project")

    @property
    def poetry(self) -> Mapping[str, object]:
        return subtable(self.tools, "poetry")


def groups_for_tests(files: Declarations, runtime: Iterable[str], *, installable: bool) -> tuple[Group, ...]:
    """What has to be installed for the tests, beside the project itself."""
    return _without_tools(_until_runner(_tiers(files, installable=installable), files.tree), runtime, files.tree)


def _tiers(files: Declarations, *, installable: bool) -> list[list[Group]]:
    """In tiers: the later ones are needed only if the earlier ones name no test runner."""
    declared = [*_optional_groups(files), *_dependency_groups(files), *_tool_groups(files)]
    plain = list(_plain_requirements(files))
    first, last = (declared, plain) if installable else ([*declared, *plain], [])
    return [first, _requirements_files(files), list(_tox(files)), list(_nox(files)), last]


def _optional_groups(files: Declarations) -> Iterator[Group]:
    """Optional dependencies for tests, and those with which tox and nox run the tests."""
    extras = _extras(files)

    def members(name: str, seen: frozenset[str]) -> Iterator[str]:
        for text in extras.get(name, ()):
            own = re.match(r"([\w.-]+)\s*\[([^]]*)\]", text)
            if own and normalized(own[1]) == normalized(files.name):
                for further in own[2].replace(" ", "").split(","):
                    yield from members(further, seen | {further}) if further not in seen else ()
            else:
                yield text

    tested = set(_extras_of_test_runs(files))
    for name in extras:
        if FOR_TESTS.fullmatch(name) or name in tested:
            yield Group(name=f"extra {name}", requirements=tuple(members(name, frozenset({name}))))


def _extras_of_test_runs(files: Declarations) -> Iterator[str]:
    for line in lines_of(_tox_ini(files).get("testenv", "extras", fallback="")):
        yield from (name.strip() for name in line.split(","))
    yield from as_strings(subtable(files.tools, "tox", "env_run_base").get("extras"))
    for function in functions(read_text(files.tree / "noxfile.py")):
        if re.search(r"test|unit", function.name):
            for word in session_installs(function):
                if match := re.fullmatch(r"\.\[([^]]*)\]", word):
                    yield from (name.strip() for name in match[1].split(","))


def _extras(files: Declarations) -> dict[str, tuple[str, ...]]:
    flit = subtable(files.tools, "flit", "metadata", "requires-extra")
    tables: list[tuple[str, Iterable[str]]] = [
        *((name, as_strings(value)) for name, value in subtable(files.metadata, "optional-dependencies").items()),
        *((name, as_strings(value)) for name, value in subtable(files.setup, "extras_require").items()),
        *((name, as_strings(value)) for name, value in flit.items()),
    ]
    if files.setup_cfg.has_section("options.extras_require"):
        tables += [(name, lines_of(value)) for name, value in files.setup_cfg.items("options.extras_require")]
    tables += [(name, ()) for name in subtable(files.poetry, "extras")]
    return {name: tuple(values) for name, values in tables}


def _dependency_groups(files: Declarations) -> Iterator[Group]:
    table = subtable(files.pyproject, "dependency-groups")

    def members(name: str, seen: frozenset[str]) -> Iterator[str]:
        value = table.get(name)
        for item in value if isinstance(value, list) else ():
            if isinstance(item, str):
                yield item
            elif isinstance(item, Mapping) and (included := as_text(item.get("include-group"))) not in seen:
                yield from members(included, seen | {included})

    for name in table:
        if FOR_TESTS.fullmatch(name):
            yield Group(name=f"dependency group {name}", requirements=tuple(members(name, frozenset({name}))))


def _tool_groups(files: Declarations) -> Iterator[Group]:
    for name, values in _of_tools(files):
        # The tools' own placeholders for paths mean nothing elsewhere.
        if plain := tuple(value for value in values if "{" not in value and not value.startswith("-")):
            yield Group(name=name, requirements=plain)


def _of_tools(files: Declarations) -> Iterator[tuple[str, Iterable[str]]]:
    yield "tests_require", as_strings(files.setup.get("tests_require"))
    yield "tests_require", lines_of(files.setup_cfg.get("options", "tests_require", fallback=""))
    yield "Poetry's dev-dependencies", poetry_requirements(subtable(files.poetry, "dev-dependencies"))
    yield "uv's dev-dependencies", as_strings(subtable(files.tools, "uv").get("dev-dependencies"))
    for name in filter(FOR_TESTS.fullmatch, subtable(files.poetry, "group")):
        table = subtable(files.poetry, "group", name, "dependencies")
        yield f"Poetry's group {name}", poetry_requirements(table)
    pdm = subtable(files.tools, "pdm", "dev-dependencies")
    for name in filter(FOR_TESTS.fullmatch, pdm):
        yield f"PDM's group {name}", as_strings(pdm[name])
    hatch = {**subtable(files.tools, "hatch", "envs"), **subtable(read_toml(files.tree / "hatch.toml"), "envs")}
    for name in hatch:
        if name in {"default", "hatch-test"} or FOR_TESTS.fullmatch(name):
            table = subtable(hatch, name)
            listed = [*as_strings(table.get("dependencies")), *as_strings(table.get("extra-dependencies"))]
            yield f"Hatch's environment {name}", listed
    pipfile = read_toml(files.tree / "Pipfile")
    for section in ("packages", "dev-packages"):
        yield f"Pipfile's {section}", poetry_requirements(subtable(pipfile, section))


def _requirements_files(files: Declarations) -> list[Group]:
    """Those for tests, or else those for development."""
    groups = list(_requirements_files_by_name(files))
    for_tests = [group for group in groups if "test" in group.name.lower()]
    return for_tests if any(map(RUNNERS.match, requirements(for_tests, files.tree))) else groups


def _requirements_files_by_name(files: Declarations) -> Iterator[Group]:
    folders = (".", "requirements", "reqs", "tests", "test", "requirements-dev", "etc")
    for folder in folders:
        for path in sorted((files.tree / folder).glob("*.txt")):
            words = LIST_NAME.sub("", path.stem)
            is_list = "req" in path.stem.lower() or folder.startswith("req")
            below_tests = folder in {"tests", "test"} and not words
            if is_list and path.is_file() and (below_tests or FOR_TESTS.fullmatch(words)):
                name = str(path.relative_to(files.tree))
                yield Group(name=name, files=(name,))


def _plain_requirements(files: Declarations) -> Iterator[Group]:
    for name in ("requirements.txt", "requirements/base.txt", "requirements/requirements.txt"):
        if (files.tree / name).is_file():
            yield Group(name=name, files=(name,))


def _tox_ini(files: Declarations) -> ConfigParser:
    return ini_text.parse(
        read_text(files.tree / "tox.ini") or as_text(subtable(files.tools, "tox").get("legacy_tox_ini"))
    )


def _tox(files: Declarations) -> Iterator[Group]:
    config = _tox_ini(files)
    for section in config.sections():
        name = section.removeprefix("testenv").lstrip(":")
        for_tests = not name or FOR_TESTS.fullmatch(name) or re.match(r"py(?:py)?\d", name)
        if section.startswith("testenv") and for_tests:
            yield from _group(files.tree, "tox", lines_of(config.get(section, "deps", fallback="")))
    native = {**subtable(files.tools, "tox"), **read_toml(files.tree / "tox.toml")}
    named = filter(FOR_TESTS.fullmatch, subtable(native, "env"))
    for table in (subtable(native, "env_run_base"), *(subtable(native, "env", name) for name in named)):
        yield from _group(files.tree, "tox", as_strings(table.get("deps")))


def _group(tree: Path, name: str, written: Iterable[str]) -> Iterator[Group]:
    """From lines of tox or words of nox; the project itself, and what has to be computed, is left out."""
    named: list[str] = []
    listed: list[str] = []
    for line in written:
        text = line.replace("{toxinidir}/", "").replace("{tox_root}/", "").strip()
        condition, _, rest = text.partition(":")
        if re.fullmatch(r"[\w!,{}. -]+", condition) and rest and not rest.startswith(("/", ":")):
            text = rest.strip()
        if match := re.fullmatch(r"(?:-r|--requirement[ =])\s*(\S+)", text):
            listed += [match[1]] if os.path.isfile(tree / match[1]) else []  # noqa: PTH113 - a name of any length
        elif text and "{" not in text and not text.startswith(("-", ".", "/")):
            named.append(text)
    if named or listed:
        yield Group(name=name, requirements=tuple(named), files=tuple(dict.fromkeys(listed)))


def _nox(files: Declarations) -> Iterator[Group]:
    for function in functions(read_text(files.tree / "noxfile.py")):
        if re.search(r"test|unit|coverage", function.name):
            yield from _group(files.tree, "nox", session_installs(function))


def _until_runner(tiers: list[list[Group]], tree: Path) -> tuple[Group, ...]:
    """Further places of requirements are used only until a test runner is among them: they tend to contradict."""
    first, *others = tiers
    chosen = list(first)
    found = any(map(RUNNERS.match, requirements(first, tree)))
    for tier in others:
        if not found:
            chosen += tier
            found = any(map(RUNNERS.match, requirements(tier, tree)))
    return tuple(chosen)


def _without_tools(groups: tuple[Group, ...], runtime: Iterable[str], tree: Path) -> tuple[Group, ...]:
    """Leaves out what builds documentation, checks style or makes releases, unless it is needed for more than that."""
    for_tests = [group for group in groups if "test" in group.name.lower()]
    needed = {normalized(name_of(text)) for text in (*runtime, *requirements(for_tests, tree))}

    def kept(group: Group) -> Group:
        texts = dict.fromkeys(group.requirements)
        wanted = (text for text in texts if normalized(name_of(text)) in needed or not TOOLS.match(text[:NAME_LIMIT]))
        return msgspec.structs.replace(group, requirements=tuple(wanted))

    return tuple(left for left in map(kept, groups) if left.requirements or left.files)


def requirements(groups: Iterable[Group], tree: Path) -> Iterator[str]:
    for group in groups:
        yield from group.requirements
        for name in group.files:
            yield from requirement_lines(tree / name)
