"""Finds a project's test suite."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from iterdev.host.test_suites import reports

Kind = Literal["pytest", "unittest", "npm", "node", "vitest", "jest", "go", "cargo", "make", "custom"]


class Suite(Struct, frozen=True, kw_only=True):
    command: str
    """Text for `sh -c`, to be run at the top of the project."""
    kind: Kind


Works = Callable[[Sequence[str]], bool]
"""Whether a command, run at the top of the project, succeeds."""

HAS_PYTEST = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pytest') is None)"


class Runner(Struct, frozen=True, kw_only=True):
    call: re.Pattern[str]
    """Matches a command up to the place where flags may be added."""
    read: Callable[[str], reports.Tally | None]
    flags: str = ""
    stream: Literal["", ">", "2>"] = ""
    """Where the report comes from when the runner cannot write it to a file."""


_VARIABLES = r"\s*(?:cross-env +)?(?:\w+=\S* +)*"
_PYTHON = rf"{_VARIABLES}(?:(?:uv|poetry|pdm|pipenv|hatch) +run +)?"
_SCRIPT = rf"{_VARIABLES}(?:(?:npx|node) +(?:-\S+ +)*)?(?:\S*/)?"

RUNNERS: Mapping[Kind, Runner] = {
    "pytest": Runner(
        call=re.compile(rf"{_PYTHON}(?:\S*python[\d.]* +-m +pytest|(?:\S*/)?pytest)(?!\S)"),
        read=reports.junit,
        # A rate needs every test, so a limit of failures in the project's settings is lifted.
        flags="--junitxml={report} --maxfail=0 -o cache_dir={report}.cache",
    ),
    "unittest": Runner(
        call=re.compile(rf"{_PYTHON}\S*python[\d.]* +-m +unittest(?!\S).*"),
        read=reports.unittest,
        flags="-v",
        stream="2>",
    ),
    "node": Runner(
        call=re.compile(rf"{_VARIABLES}node +(?:-\S+ +)*--test(?!\S)(?!.*--test-reporter)"),
        read=reports.junit,
    ),
    "vitest": Runner(
        call=re.compile(rf"{_SCRIPT}vitest(?:\.mjs)?(?!\S)"),
        read=reports.jest,
        flags="--run --reporter=default --reporter=json --outputFile.json={report}",
    ),
    "jest": Runner(
        call=re.compile(rf"{_SCRIPT}jest(?:\.js)?(?!\S)"),
        read=reports.jest,
        flags="--json --outputFile={report}",
    ),
    "go": Runner(call=re.compile(rf"{_VARIABLES}go +test(?!\S)"), read=reports.go, flags="-json", stream=">"),
    "cargo": Runner(call=re.compile(rf"{_VARIABLES}cargo +(?:\+\S+ +)?test(?!\S)"), read=reports.cargo, stream=">"),
}
NPM = re.compile(r"\s*npm +(?:run +)?(?:-s +|--silent +)?(?:test|t)(?: +-- .*)?\s*")
_MAKE = re.compile(r"\s*make(?!\S)")
_PLAIN = re.compile(r"""(?:[^;&|<>()#`\\\n'"]|'[^'\n]*'|"[^"`\\\n]*")*""")

_PYTEST_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
_PYTEST_SECTIONS = (("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]"))
_PYTEST_STYLE = re.compile(r"^(?:import pytest|from pytest|(?:async )?def test|class Test\w*(?:\(\))?:)", re.MULTILINE)
_TEST_FOLDERS = (".", "tests", "test")


def configured(text: str) -> Suite:
    """The suite that the user named; the runner is recognised if it is called directly."""
    kinds = [kind for kind, runner in RUNNERS.items() if end_of_call(runner, text)]
    other: Kind = "npm" if NPM.fullmatch(text) else "make" if _MAKE.match(text) else "custom"
    return Suite(command=text, kind=kinds[0] if kinds else other)


def end_of_call(runner: Runner, text: str) -> int:
    """Where flags for the runner belong: in the last of the commands joined by &&, the only one that counts tests."""
    start = text.rfind("&&") + 2 if "&&" in text else 0
    match = runner.call.match(text, start) if _PLAIN.fullmatch(text, start) else None
    return match.end() if match else 0


def find(root: Path, works: Works) -> Suite | None:
    """The suite that files of the top level and of its test folders indicate."""
    if suite := _find_python(root, works) or _find_node(root):
        return suite
    if (root / "go.mod").exists():
        return Suite(command="go test ./...", kind="go")
    if (root / "Cargo.toml").exists():
        return Suite(command="cargo test --no-fail-fast", kind="cargo")
    makefiles = (read_text(root / name) for name in ("GNUmakefile", "makefile", "Makefile"))
    has_target = any(re.search(r"^test\s*:(?!=)", text, re.MULTILINE) for text in makefiles)
    return Suite(command="make test", kind="make") if has_target else None


def _find_python(root: Path, works: Works) -> Suite | None:
    python = ".venv/bin/python" if (root / ".venv/bin/python").exists() else "python3"
    files = {
        folder: {*(root / folder).glob("test_*.py"), *(root / folder).glob("*_test.py")} for folder in _TEST_FOLDERS
    }
    tests = {folder: [read_text(path) for path in sorted(paths)] for folder, paths in files.items()}
    styled = any(_PYTEST_STYLE.search(text) for texts in tests.values() for text in texts)
    if (styled or _configures_pytest(root)) and works([python, "-c", HAS_PYTEST]):
        return Suite(command=f"{python} -m pytest", kind="pytest")
    for folder, texts in tests.items():
        if any("unittest" in text and "TestCase" in text for text in texts):
            top = " -t ." if (root / folder / "__init__.py").exists() else ""
            return Suite(command=f"{python} -m unittest discover -s {folder}{top}", kind="unittest")
    return None


def _configures_pytest(root: Path) -> bool:
    return (
        any((root / name).exists() for name in _PYTEST_FILES)
        or any((root / folder / "conftest.py").exists() for folder in _TEST_FOLDERS)
        or any(section in read_text(root / name).splitlines() for name, section in _PYTEST_SECTIONS)
        or _has_pytest_table(root)
    )


def _has_pytest_table(root: Path) -> bool:
    try:
        tools = tomllib.loads(read_text(root / "pyproject.toml")).get("tool")
    except tomllib.TOMLDecodeError:
        return False
    return isinstance(tools, dict) and "pytest" in tools


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


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
