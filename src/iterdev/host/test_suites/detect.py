"""Finds a project's test suite."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from iterdev.host.test_suites import reports
from iterdev.host.test_suites.reports import Tally

Kind = Literal["pytest", "unittest", "npm", "node", "vitest", "jest", "go", "cargo", "make", "custom"]


class Suite(Struct, frozen=True, kw_only=True):
    command: str
    """Text for `sh -c`, to be run at the top of the project."""
    kind: Kind


Works = Callable[[Sequence[str]], bool]
"""Whether a command, run at the top of the project, ends well."""

HAS_PYTEST = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pytest') is None)"


class _Runner(Struct, frozen=True, kw_only=True):
    call: re.Pattern[str]
    """Matches a command up to the place where flags may be added."""
    read: Callable[[str], Tally | None]
    flags: str = ""
    stream: Literal["", ">", "2>"] = ""
    """Where the report comes from when the runner cannot write it to a file."""


_VARIABLES = r"\s*(?:cross-env +)?(?:\w+=\S* +)*"
_PYTHON = rf"{_VARIABLES}(?:(?:uv|poetry|pdm|pipenv|hatch) +run +)?"
_SCRIPT = rf"{_VARIABLES}(?:(?:npx|node) +(?:-\S+ +)*)?(?:\S*/)?"

_RUNNERS: Mapping[Kind, _Runner] = {
    "pytest": _Runner(
        call=re.compile(rf"{_PYTHON}(?:\S*python[\d.]* +-m +pytest|(?:\S*/)?pytest)(?!\S)"),
        read=reports.junit,
        # A rate needs every test, so a limit of failures in the project's settings is lifted.
        flags="--junitxml={report} --maxfail=0 -o cache_dir={report}.cache",
    ),
    "unittest": _Runner(
        call=re.compile(rf"{_PYTHON}\S*python[\d.]* +-m +unittest(?!\S).*"),
        read=reports.unittest,
        flags="-v",
        stream="2>",
    ),
    "node": _Runner(
        call=re.compile(rf"{_VARIABLES}node +(?:-\S+ +)*--test(?!\S)(?!.*--test-reporter)"),
        read=reports.junit,
    ),
    "vitest": _Runner(
        call=re.compile(rf"{_SCRIPT}vitest(?:\.mjs)?(?!\S)"),
        read=reports.jest,
        flags="--run --reporter=default --reporter=json --outputFile.json={report}",
    ),
    "jest": _Runner(
        call=re.compile(rf"{_SCRIPT}jest(?:\.js)?(?!\S)"),
        read=reports.jest,
        flags="--json --outputFile={report}",
    ),
    "go": _Runner(call=re.compile(rf"{_VARIABLES}go +test(?!\S)"), read=reports.go, flags="-json", stream=">"),
    "cargo": _Runner(call=re.compile(rf"{_VARIABLES}cargo +(?:\+\S+ +)?test(?!\S)"), read=reports.cargo, stream=">"),
}
_NPM = re.compile(r"\s*npm +(?:run +)?(?:-s +|--silent +)?(?:test|t)(?: +-- .*)?\s*")
_MAKE = re.compile(r"\s*make(?!\S)")
_PLAIN = re.compile(r"""(?:[^;&|<>()#`\\\n'"]|'[^'\n]*'|"[^"`\\\n]*")*""")

_PYTEST_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
_PYTEST_SECTIONS = (("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]"))
_PYTEST_STYLE = re.compile(r"^(?:import pytest|from pytest|(?:async )?def test|class Test\w*(?:\(\))?:)", re.MULTILINE)
_TEST_FOLDERS = (".", "tests", "test")


def configured(text: str) -> Suite:
    """The suite that the user named; a runner that is called plainly is recognised."""
    kinds = [kind for kind, runner in _RUNNERS.items() if _end_of_call(runner, text)]
    if kinds:
        return Suite(command=text, kind=kinds[0])
    if _NPM.fullmatch(text):
        return Suite(command=text, kind="npm")
    return Suite(command=text, kind="make" if _MAKE.match(text) else "custom")


def _end_of_call(runner: _Runner, text: str) -> int:
    """Where flags for the runner belong: in the last of the commands joined by &&, the only one that counts tests."""
    start = text.rfind("&&") + 2 if "&&" in text else 0
    match = runner.call.match(text, start) if _PLAIN.fullmatch(text, start) else None
    return match.end() if match else 0


def find(root: Path, works: Works) -> Suite | None:
    """The suite that a look at the top level and its test folders reveals."""
    if suite := _find_python(root, works):
        return suite
    for look in (_find_node, _find_go, _find_cargo, _find_make):
        if suite := look(root):
            return suite
    return None


def _find_python(root: Path, works: Works) -> Suite | None:
    python = ".venv/bin/python" if (root / ".venv/bin/python").exists() else "python3"
    tests = {folder: _test_files(root / folder) for folder in _TEST_FOLDERS}
    styled = any(_PYTEST_STYLE.search(text) for texts in tests.values() for text in texts)
    if (styled or _configures_pytest(root)) and works([python, "-c", HAS_PYTEST]):
        return Suite(command=f"{python} -m pytest", kind="pytest")
    for folder, texts in tests.items():
        if any("unittest" in text and "TestCase" in text for text in texts):
            top = " -t ." if (root / folder / "__init__.py").exists() else ""
            return Suite(command=f"{python} -m unittest discover -s {folder}{top}", kind="unittest")
    return None


def _test_files(folder: Path) -> list[str]:
    return [read_text(path) for path in sorted((*folder.glob("test_*.py"), *folder.glob("*_test.py")))]


def _configures_pytest(root: Path) -> bool:
    return (
        any((root / name).exists() for name in _PYTEST_FILES)
        or any((root / folder / "conftest.py").exists() for folder in _TEST_FOLDERS)
        or any(section in read_text(root / name).splitlines() for name, section in _PYTEST_SECTIONS)
        or "pytest" in _tools(root)
    )


def _tools(root: Path) -> Mapping[str, object]:
    try:
        return msgspec.convert(tomllib.loads(read_text(root / "pyproject.toml")), _Project).tool
    except (tomllib.TOMLDecodeError, msgspec.ValidationError):
        return {}


class _Project(Struct):
    tool: Mapping[str, object] = {}


class _Package(Struct, rename="camel"):
    scripts: Mapping[str, str] = {}
    dev_dependencies: Mapping[str, str] = {}


def _package(root: Path) -> _Package:
    try:
        return msgspec.json.decode(read_text(root / "package.json"), type=_Package)
    except msgspec.DecodeError:
        return _Package()


def _find_node(root: Path) -> Suite | None:
    package = _package(root)
    script = package.scripts.get("test", "")
    if script and "no test specified" not in script:
        return Suite(command="npm test", kind=kind_behind_npm(root))
    installed = [command for command in ("vitest run", "jest") if command.split()[0] in package.dev_dependencies]
    return configured(f"npx --no-install {installed[0]}") if installed else None


def kind_behind_npm(root: Path) -> Kind:
    kind = configured(_package(root).scripts.get("test", "")).kind
    return kind if kind in {"node", "vitest", "jest"} else "npm"


def _find_go(root: Path) -> Suite | None:
    return Suite(command="go test ./...", kind="go") if (root / "go.mod").exists() else None


def _find_cargo(root: Path) -> Suite | None:
    return Suite(command="cargo test --no-fail-fast", kind="cargo") if (root / "Cargo.toml").exists() else None


def _find_make(root: Path) -> Suite | None:
    texts = (read_text(root / name) for name in ("GNUmakefile", "makefile", "Makefile"))
    has_target = any(re.search(r"^test\s*:(?!=)", text, re.MULTILINE) for text in texts)
    return Suite(command="make test", kind="make") if has_target else None


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
