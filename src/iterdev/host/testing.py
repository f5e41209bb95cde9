"""Finds a project's test suite, runs it, and reads which tests passed.

It knows the runners' command lines and the traces that they leave. Tests are run through the caller's `Run` only, and
nothing is judged here: `core.verification` does that.
"""

import re
import shlex
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from msgspec import Struct

from iterdev.core import runners
from iterdev.core.runners import Tally
from iterdev.core.verification import SuiteReport, excerpt

Kind = Literal["pytest", "unittest", "npm", "node", "vitest", "jest", "go", "cargo", "make", "custom"]


class Suite(Struct, frozen=True, kw_only=True):
    command: str
    """Text for `sh -c`, to be run at the top of the project."""
    kind: Kind


class Finished(Protocol):
    @property
    def code(self) -> int: ...
    @property
    def timed_out(self) -> bool: ...
    @property
    def stdout(self) -> bytes: ...
    @property
    def stderr(self) -> bytes: ...


class Run(Protocol):
    async def __call__(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> Finished: ...


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
        read=runners.junit,
        # A rate needs every test, so a limit of failures in the project's settings is lifted.
        flags="--junitxml={report} --maxfail=0 -o cache_dir={report}.cache",
    ),
    "unittest": _Runner(
        call=re.compile(rf"{_PYTHON}\S*python[\d.]* +-m +unittest(?!\S).*"),
        read=runners.unittest,
        flags="-v",
        stream="2>",
    ),
    "node": _Runner(
        call=re.compile(rf"{_VARIABLES}node +(?:-\S+ +)*--test(?!\S)(?!.*--test-reporter)"),
        read=runners.junit,
    ),
    "vitest": _Runner(
        call=re.compile(rf"{_SCRIPT}vitest(?:\.mjs)?(?!\S)"),
        read=runners.jest,
        flags="--run --reporter=default --reporter=json --outputFile.json={report}",
    ),
    "jest": _Runner(
        call=re.compile(rf"{_SCRIPT}jest(?:\.js)?(?!\S)"),
        read=runners.jest,
        flags="--json --outputFile={report}",
    ),
    "go": _Runner(call=re.compile(rf"{_VARIABLES}go +test(?!\S)"), read=runners.go, flags="-json", stream=">"),
    "cargo": _Runner(call=re.compile(rf"{_VARIABLES}cargo +(?:\+\S+ +)?test(?!\S)"), read=runners.cargo, stream=">"),
}
_NODE_OPTIONS = (
    "--test-reporter=spec --test-reporter-destination=stdout"
    ' --test-reporter=junit "--test-reporter-destination={report}"'
)
_TRACELESS = {
    "CI": "true",  # keeps jest and vitest from watching files, and from writing snapshots that are missing
    "COVERAGE_FILE": "{report}.coverage",
    "HYPOTHESIS_STORAGE_DIRECTORY": "{report}.hypothesis",
    "PYTHONDONTWRITEBYTECODE": "1",
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
    return [_text(path) for path in sorted((*folder.glob("test_*.py"), *folder.glob("*_test.py")))]


def _configures_pytest(root: Path) -> bool:
    return (
        any((root / name).exists() for name in _PYTEST_FILES)
        or any((root / folder / "conftest.py").exists() for folder in _TEST_FOLDERS)
        or any(section in _text(root / name).splitlines() for name, section in _PYTEST_SECTIONS)
        or "pytest" in _tools(root)
    )


def _tools(root: Path) -> Mapping[str, object]:
    try:
        return msgspec.convert(tomllib.loads(_text(root / "pyproject.toml")), _Project).tool
    except (tomllib.TOMLDecodeError, msgspec.ValidationError):
        return {}


class _Project(Struct):
    tool: Mapping[str, object] = {}


class _Package(Struct, rename="camel"):
    scripts: Mapping[str, str] = {}
    dev_dependencies: Mapping[str, str] = {}


def _package(root: Path) -> _Package:
    try:
        return msgspec.json.decode(_text(root / "package.json"), type=_Package)
    except msgspec.DecodeError:
        return _Package()


def _find_node(root: Path) -> Suite | None:
    package = _package(root)
    script = package.scripts.get("test", "")
    if script and "no test specified" not in script:
        return Suite(command="npm test", kind=_kind_behind_npm(root))
    installed = [command for command in ("vitest run", "jest") if command.split()[0] in package.dev_dependencies]
    return configured(f"npx --no-install {installed[0]}") if installed else None


def _kind_behind_npm(root: Path) -> Kind:
    kind = configured(_package(root).scripts.get("test", "")).kind
    return kind if kind in {"node", "vitest", "jest"} else "npm"


def _find_go(root: Path) -> Suite | None:
    return Suite(command="go test ./...", kind="go") if (root / "go.mod").exists() else None


def _find_cargo(root: Path) -> Suite | None:
    return Suite(command="cargo test --no-fail-fast", kind="cargo") if (root / "Cargo.toml").exists() else None


def _find_make(root: Path) -> Suite | None:
    texts = (_text(root / name) for name in ("GNUmakefile", "makefile", "Makefile"))
    has_target = any(re.search(r"^test\s*:(?!=)", text, re.MULTILINE) for text in texts)
    return Suite(command="make test", kind="make") if has_target else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


async def measure(
    suite: Suite, root: Path, *, run: Run, scratch: Path, env: Mapping[str, str], limit: float
) -> SuiteReport:
    """Runs the suite in root, leaving no traces there, and reads the runner's own report if it wrote one."""
    kind = _kind_behind_npm(root) if suite.kind == "npm" else suite.kind
    runner = _RUNNERS.get(kind)
    with _folder(scratch) as folder:
        report = Path(folder, "report")
        command = _reporting(suite.command, runner, report) if runner else suite.command
        environment = _environment(kind, root, report, env)
        finished = await run(("sh", "-c", command), cwd=str(root), env=environment, limit=limit)
        text = _relative(_text(report), root)
    tally = runner.read(text) if runner and not finished.timed_out else None
    return _report(suite, finished, tally, printed=_printed(kind, text))


def _folder(scratch: Path) -> tempfile.TemporaryDirectory[str]:
    scratch.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=scratch.resolve(), prefix="tests-")


def _reporting(command: str, runner: _Runner, report: Path) -> str:
    quoted = shlex.quote(str(report))
    flags = runner.flags.format(report=quoted)
    if _NPM.fullmatch(command):
        end, glue = len(command), " " if " -- " in command else " -- "
    else:
        end, glue = _end_of_call(runner, command), " "
    called = f"{command[:end]}{glue}{flags}{command[end:]}" if flags else command
    return f"{called} {runner.stream} {quoted}" if runner.stream else called


def _environment(kind: Kind, root: Path, report: Path, env: Mapping[str, str]) -> Mapping[str, str]:
    traceless = {name: value.format(report=report) for name, value in _TRACELESS.items()}
    if kind == "node":
        traceless["NODE_OPTIONS"] = f"{env.get('NODE_OPTIONS', '')} {_NODE_OPTIONS.format(report=report)}"
    if kind == "cargo" and "target" not in _text(root / ".gitignore"):
        traceless["CARGO_TARGET_DIR"] = str(report.parent.parent / "target")
    return {**env, **traceless}


def _relative(text: str, root: Path) -> str:
    """Names files as seen from root, for the same tests run in several worktrees."""
    for top in {root.absolute(), root.resolve()}:
        text = text.replace(f"{top}/", "")
    return text


def _printed(kind: Kind, report: str) -> str:
    """What the user would have seen, had the runner's words not been kept in a file."""
    if kind == "go":
        return runners.go_output(report)
    return report if kind in _RUNNERS and _RUNNERS[kind].stream else ""


def _report(suite: Suite, finished: Finished, tally: Tally | None, *, printed: str) -> SuiteReport:
    named = tally or Tally()
    outputs = (finished.stdout.decode(errors="replace"), finished.stderr.decode(errors="replace"), printed)
    return SuiteReport(
        command=suite.command,
        exit_code=finished.code,
        timed_out=finished.timed_out,
        passed=named.passed,
        failed=named.failed,
        skipped=named.skipped,
        counted=tally is not None,
        output=excerpt(*outputs),
    )
