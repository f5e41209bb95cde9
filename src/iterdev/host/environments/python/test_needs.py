"""What the tests of a Python project need although nothing may declare it: a runner, its plugins, known libraries."""

import re
from collections.abc import Iterator
from pathlib import Path

from iterdev.host.environments.python.declaration_files import read_text

PLUGINS = {
    r"--(?:no-)?cov\b|--cov-": "pytest-cov",
    r"(?:^|\s)(?:-n[ =]?(?:\d|auto|logical)|--numprocesses|--dist)": "pytest-xdist",
    r"--timeout\b|^timeout\s*=": "pytest-timeout",
    r"asyncio_mode|asyncio_default": "pytest-asyncio",
    r"--benchmark": "pytest-benchmark",
    r"--randomly|--random-order": "pytest-randomly",
    r"--reruns\b": "pytest-rerunfailures",
    r"--mypy\b": "pytest-mypy",
    r"--flake8\b": "pytest-flake8",
    r"--black\b": "pytest-black",
    r"--isort\b": "pytest-isort",
    r"DJANGO_SETTINGS_MODULE|--ds=": "pytest-django",
    r"--doctest-plus\b": "pytest-doctestplus",
    r"--checkdocs\b": "pytest-checkdocs",
    r"--snapshot-": "syrupy",
}
"""Options of pytest that only a plugin knows: without it, pytest refuses to start."""
IMPORTS = {
    "pytest": "pytest",
    "hypothesis": "hypothesis",
    "mock": "mock",
    "freezegun": "freezegun",
    "time_machine": "time-machine",
    "parameterized": "parameterized",
    "pretend": "pretend",
    "responses": "responses",
    "requests_mock": "requests-mock",
    "testfixtures": "testfixtures",
    "pyfakefs": "pyfakefs",
    "pytest_asyncio": "pytest-asyncio",
    "pytest_mock": "pytest-mock",
    "pytest_httpserver": "pytest-httpserver",
    "nose": "nose",
    "ddt": "ddt",
    "sybil": "sybil",
    "trustme": "trustme",
}
"""Libraries for tests, by the module that tests import; a package of any other name is never guessed."""
_FIXTURES = {"mocker": "pytest-mock", "benchmark": "pytest-benchmark", "subtests": "pytest-subtests"}
_MARKS = {"asyncio": "pytest-asyncio", "trio": "pytest-trio", "anyio": "anyio", "timeout": "pytest-timeout"}
_TEST_FOLDERS = ("tests", "test", "testing", ".")
MOST_TEST_FILES = 400
TEST_FILE = re.compile(r"test.*|.*_tests?|conftest")


class Tests:
    """The test files near the top of a project."""

    def __init__(self, tree: Path) -> None:
        folders = [tree / name for name in _TEST_FOLDERS]
        nested = [path for name in _TEST_FOLDERS[:2] for path in (tree / name).glob("*/") if path.is_dir()]
        paths = [path for folder in (*folders, *nested) for path in folder.glob("*.py")]
        self.files = [path for path in paths if path.parent != tree or TEST_FILE.fullmatch(path.stem)][:MOST_TEST_FILES]

    def needs(self, settings: str) -> Iterator[str]:
        """The packages that the tests import, and the plugins that the settings of pytest require."""
        text = "\n".join(map(read_text, self.files))
        imported = set(re.findall(r"^[ \t]*(?:import|from)[ \t]+(\w+)", text, re.MULTILINE))
        needed = [package for module, package in IMPORTS.items() if module in imported]
        styled = re.search(r"^(?:async )?def test_|^class Test\w*(?:\(\))?:|^@pytest", text, re.MULTILINE)
        if styled or settings.strip():
            needed.append("pytest")
        needed += [package for pattern, package in PLUGINS.items() if re.search(pattern, settings, re.MULTILINE)]
        arguments = set(re.findall(r"\w+", " ".join(re.findall(r"def test\w*\(([^()]*)", text))))
        for name, package in _FIXTURES.items():
            if name in arguments and f"def {name}(" not in text:
                needed.append(package)
        needed += [package for name, package in _MARKS.items() if f"pytest.mark.{name}" in text]
        yield from dict.fromkeys(needed)
