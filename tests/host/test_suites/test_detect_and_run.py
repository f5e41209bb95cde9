"""Finding, running and reading real test suites."""

import asyncio
import math
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import pytest

from iterdev.core.verification import SuiteReport, compare
from iterdev.host.processes.spawn import ProgramResult
from iterdev.host.test_suites import detect
from iterdev.host.test_suites.detect import Kind, Suite, configured
from iterdev.host.test_suites.run import measure

PLAIN = "def test_a():\n    assert True\n"
FAILING = "def test_b():\n    assert 1 == 2\n"
CASES = (
    "import unittest\nclass C(unittest.TestCase):\n    def test_a(self):\n        pass\n"
    "    def test_b(self):\n        self.fail('no')\n"
)
PACKAGE = '{"name": "p", "version": "1.0.0", "scripts": {"test": "%s"}}'
NODE_TESTS = """\
const {test, describe} = require('node:test');
test('one', () => {});
describe('outer', () => { test('two', () => { throw new Error('no'); }); });
test('three', {skip: true}, () => {});
"""
LIMIT = math.inf
"""A runner that starts slowly on a busy machine must not be stopped."""

STAND_IN = """\
#!/bin/sh
# Plays a runner that is not installed everywhere: notes its arguments, and gives the recorded report.
printf '%s' "$*" > asked
for argument in "$@"; do
    case $argument in --outputFile*=*) cp said "${argument#*=}"; echo "no, it is not"; exit 1 ;; esac
done
cat said
exit 1
"""
JEST = """\
{{"testResults": [{{"name": "{root}/a", "status": "failed", "assertionResults": [
  {{"title": "ok", "ancestorTitles": [], "status": "passed"}}, {{"title": "bad", "status": "failed"}}]}}]}}
"""
GO = """\
{{"Action":"pass","Package":"a","Test":"ok"}}
{{"Action":"output","Package":"a","Test":"bad","Output":"no, it is not\\n"}}
{{"Action":"fail","Package":"a","Test":"bad"}}
"""
CARGO = """\
test a::ok ... ok
test a::bad ... FAILED
thread 'a::bad' panicked: no, it is not
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
"""


def find(root: Path) -> Suite | None:
    def works(argv: Sequence[str]) -> bool:
        try:
            # A relative program is looked for from here, not from where it is to run.
            program = str(root / argv[0]) if "/" in argv[0] else argv[0]
            return subprocess.run([program, *argv[1:]], cwd=root, check=False, capture_output=True).returncode == 0
        except OSError:
            return False

    return detect.find(root, works)


async def run(argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> ProgramResult:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    output = asyncio.ensure_future(process.communicate())
    done, _ = await asyncio.wait([output], timeout=limit)
    if not done:
        os.killpg(process.pid, signal.SIGKILL)
    stdout, stderr = await output
    return ProgramResult(code=process.returncode or 0, timed_out=not done, stdout=stdout, stderr=stderr)


def measured(suite: Suite | None, root: Path, *, limit: float = LIMIT, path: str = "") -> SuiteReport:
    assert suite is not None
    env = {"PATH": f"{path}:{os.environ['PATH']}", "HOME": str(root.parent)}
    scratch = root.parent / "scratch of tests"

    async def main() -> SuiteReport:
        return await measure(suite, root, run=run, scratch=scratch, env=env, limit=limit)

    return anyio.run(main)


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return root


def python(*flags: str) -> str:
    """A stand-in for the project's own interpreter, which is ours and thus has pytest, or with -IS has nothing."""
    return f'#!/bin/sh\nexec {shlex.join((sys.executable, *flags))} "$@"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with pytest, whose clean state git knows."""
    return write(tmp_path / "project", {".venv/bin/python": python(), ".gitignore": ".venv\n"})


def seen_by_git(root: Path) -> str:
    git = ("git", "-c", "safe.directory=*")
    subprocess.run((*git, "init", "--quiet"), cwd=root, check=True)
    listed = (*git, "ls-files", "--others", "--exclude-standard")
    return subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout


WITH_PYTEST = {".venv/bin/python": python()}
WITHOUT_PYTEST = {".venv/bin/python": python("-I", "-S")}
PYTEST = (".venv/bin/python -m pytest", "pytest")


@pytest.mark.parametrize(
    ("files", "found"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"README": "test:"}, None, id="nothing of use"),
        pytest.param({**WITH_PYTEST, "pytest.ini": ""}, PYTEST, id="pytest.ini"),
        pytest.param({**WITH_PYTEST, "pyproject.toml": "[tool.pytest.ini_options]\n"}, PYTEST, id="pyproject"),
        pytest.param({**WITH_PYTEST, "pyproject.toml": "[tool.pytest.ini_options\n"}, None, id="broken pyproject"),
        pytest.param({**WITH_PYTEST, "pyproject.toml": "tool = 3\n"}, None, id="strange pyproject"),
        pytest.param({**WITH_PYTEST, "setup.cfg": "[tool:pytest]\n"}, PYTEST, id="setup.cfg"),
        pytest.param({**WITH_PYTEST, "tox.ini": "[tox]\n[pytest]\n"}, PYTEST, id="tox.ini"),
        pytest.param({**WITH_PYTEST, "tox.ini": "[tox]\n"}, None, id="tox.ini without pytest"),
        pytest.param({**WITH_PYTEST, "tests/conftest.py": ""}, PYTEST, id="conftest"),
        pytest.param({**WITH_PYTEST, "test_a.py": PLAIN}, PYTEST, id="a plain test at the top"),
        pytest.param({**WITH_PYTEST, "tests/a_test.py": PLAIN}, PYTEST, id="a plain test in a folder"),
        pytest.param({**WITHOUT_PYTEST, "tests/test_a.py": PLAIN}, None, id="pytest is missing"),
        pytest.param(
            {**WITHOUT_PYTEST, "pytest.ini": "", "test_a.py": CASES},
            (".venv/bin/python -m unittest discover -s .", "unittest"),
            id="pytest is missing, unittest will do",
        ),
        pytest.param(
            {**WITH_PYTEST, "tests/test_a.py": CASES},
            (".venv/bin/python -m unittest discover -s tests", "unittest"),
            id="unittest",
        ),
        pytest.param(
            {"test/test_a.py": CASES, "test/__init__.py": ""},
            ("python3 -m unittest discover -s test -t .", "unittest"),
            id="unittest in a package",
        ),
        pytest.param({"package.json": PACKAGE % "mocha"}, ("npm test", "npm"), id="npm"),
        pytest.param({"package.json": PACKAGE % "tsc && node --test t/"}, ("npm test", "node"), id="node"),
        pytest.param({"package.json": PACKAGE % "vitest"}, ("npm test", "vitest"), id="vitest"),
        pytest.param({"package.json": PACKAGE % "cross-env A=b jest --ci"}, ("npm test", "jest"), id="jest"),
        pytest.param({"package.json": PACKAGE % "jest && eslint ."}, ("npm test", "npm"), id="jest is not the last"),
        pytest.param({"package.json": PACKAGE % "echo 'no test specified' && exit 1"}, None, id="npm's placeholder"),
        pytest.param(
            {"package.json": '{"devDependencies": {"vitest": "3"}}'},
            ("npx --no-install vitest run", "vitest"),
            id="vitest without a script",
        ),
        pytest.param(
            {"package.json": '{"devDependencies": {"jest": "30"}}'},
            ("npx --no-install jest", "jest"),
            id="jest without a script",
        ),
        pytest.param({"package.json": "{"}, None, id="broken package.json"),
        pytest.param({"package.json": '{"scripts": []}'}, None, id="strange package.json"),
        pytest.param({"go.mod": "module x\n"}, ("go test ./...", "go"), id="go"),
        pytest.param({"Cargo.toml": ""}, ("cargo test --no-fail-fast", "cargo"), id="cargo"),
        pytest.param({"Makefile": "all:\n\ntest : all\n\ttrue\n"}, ("make test", "make"), id="make"),
        pytest.param({"Makefile": "test := 3\nlatest:\n"}, None, id="make without a target"),
        pytest.param(
            {**WITHOUT_PYTEST, "test_a.py": PLAIN, "Makefile": "test:\n"}, ("make test", "make"), id="the next best"
        ),
    ],
)
def test_a_suite_is_found_by_its_traces(tmp_path: Path, files: dict[str, str], found: tuple[str, str] | None) -> None:
    suite = find(write(tmp_path, files))

    assert (suite and (suite.command, suite.kind)) == found


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("pytest -q", "pytest"),
        ("python -m pytest tests -k 'a or b'", "pytest"),
        (".venv/bin/pytest", "pytest"),
        ("PYTHONPATH=src uv run pytest -q", "pytest"),
        ("ruff check . && pytest -q", "pytest"),
        ("pytest -q && ruff check .", "custom"),
        ("pytest -q | tee log", "custom"),
        ("pytest -q; true", "custom"),
        ("(cd api && python -m unittest)", "custom"),
        ("bash -c 'cd api && pytest'", "custom"),
        ("pytest-watch", "custom"),
        ("python3 -m unittest discover -s tests", "unittest"),
        ("node --test tests/", "node"),
        ("node --test --test-reporter=dot", "custom"),
        ("npx vitest run", "vitest"),
        ("node --experimental-vm-modules node_modules/jest/bin/jest.js", "jest"),
        ("npm test", "npm"),
        ("npm run test -- --coverage", "npm"),
        ("npm test --workspaces", "custom"),
        ("go test -race ./...", "go"),
        ("cargo +nightly test", "cargo"),
        ("make test", "make"),
        ("makepkg", "custom"),
        ("./run-tests.sh", "custom"),
    ],
)
def test_a_runner_that_is_called_plainly_is_recognised(command: str, kind: Kind) -> None:
    assert configured(command) == Suite(command=command, kind=kind)


def test_pytest_names_its_tests(project: Path) -> None:
    write(project, {"tests/test_a.py": PLAIN + FAILING})

    report = measured(find(project), project)

    assert report.counted
    assert (report.passed, report.failed) == (("tests.test_a::test_a",), ("tests.test_a::test_b",))
    assert report.exit_code == 1
    assert "assert 1 == 2" in report.output


def test_a_configured_pytest_keeps_its_arguments(project: Path) -> None:
    write(project, {"test_a.py": PLAIN + FAILING})

    report = measured(configured("true && .venv/bin/python -m pytest -q -k 'test_a and not test_b'"), project)

    assert (report.passed, report.failed, report.exit_code) == (("test_a::test_a",), (), 0)


def test_a_limit_of_failures_does_not_hide_the_other_tests(project: Path) -> None:
    write(project, {"pytest.ini": "[pytest]\naddopts = -x\n", "test_a.py": FAILING + PLAIN})

    report = measured(find(project), project)

    assert (report.passed, report.failed) == (("test_a::test_a",), ("test_a::test_b",))


def test_a_run_leaves_nothing_that_git_would_see(project: Path) -> None:
    write(project, {"shop.py": "", "test_a.py": "import shop\n" + PLAIN + FAILING})
    before = seen_by_git(project)

    measured(find(project), project)

    assert seen_by_git(project) == before
    assert list((project.parent / "scratch of tests").iterdir()) == []


def test_a_collection_error_is_not_a_pass(project: Path) -> None:
    write(project, {"test_a.py": PLAIN})
    base = measured(find(project), project)
    write(project, {"test_b.py": "import nothing_of_this_name\n" + PLAIN})

    verification = compare(measured(find(project), project), base)

    assert verification.pass_rate == 0.0
    assert verification.failures == ("test_b",)


def test_pytest_that_cannot_start_is_not_a_pass(project: Path) -> None:
    write(project, {"pytest.ini": "[pytest]\naddopts = --no-such-option\n", "test_a.py": PLAIN})

    report = measured(find(project), project)

    assert not report.counted
    assert compare(report, None).pass_rate == 0.0


def test_a_suite_without_tests_says_nothing(project: Path) -> None:
    write(project, {"pytest.ini": ""})

    report = measured(find(project), project)

    assert (report.exit_code, report.counted) == (5, True)
    assert compare(report, None).pass_rate is None


@pytest.mark.parametrize("command", [".venv/bin/python -m pytest", "sleep 1000"])
def test_a_suite_that_does_not_end_is_stopped_and_fails(project: Path, command: str) -> None:
    write(project, {"test_a.py": "import time\n" + PLAIN + "def test_b():\n    time.sleep(1000)\n"})

    report = measured(configured(command), project, limit=0.5)

    assert (report.timed_out, report.counted, report.passed) == (True, False, ())
    assert compare(report, None).pass_rate == 0.0


def test_a_failure_that_was_there_before_is_not_blamed_on_the_change(tmp_path: Path) -> None:
    old = write(tmp_path / "old", {**WITH_PYTEST, "test_a.py": PLAIN + FAILING})
    new = write(tmp_path / "new", {**WITH_PYTEST, "test_a.py": PLAIN + FAILING, "test_c.py": PLAIN})

    verification = compare(measured(find(new), new), measured(find(old), old))

    assert verification.pass_rate == 1
    assert (verification.total, verification.failures) == (2, ())
    assert verification.known_failures == ("test_a::test_b",)


def test_unittest_names_its_tests(project: Path) -> None:
    write(project, {"tests/test_a.py": CASES})

    report = measured(find(project), project)

    assert (report.passed, report.failed) == (("test_a.C::test_a",), ("test_a.C::test_b",))
    assert "AssertionError: no" in report.output


def test_a_unittest_module_that_does_not_load_is_a_failure(project: Path) -> None:
    write(project, {"tests/test_a.py": "import nothing_of_this_name\n" + CASES})

    verification = compare(measured(find(project), project), None)

    assert verification.pass_rate == 0.0
    assert verification.failures == ("unittest.loader._FailedTest::test_a",)


@pytest.mark.parametrize("command", ["npm test", "node --test t/"])
def test_node_names_its_tests(tmp_path: Path, command: str) -> None:
    files = {"package.json": PACKAGE % "node --test t/", "t/a.test.js": NODE_TESTS, "t/b.test.js": "throw 1;"}
    root = write(tmp_path / "project", files)

    report = measured(configured(command), root)

    assert (report.passed, report.failed) == (("one",), ("outer::two", "t/b.test.js"))
    assert (report.exit_code, report.skipped) == (1, 1)


@pytest.mark.parametrize(
    ("command", "program", "asked", "said"),
    [
        pytest.param("npm test", "node_modules/.bin/vitest", "run --run --reporter=default", JEST, id="vitest by npm"),
        pytest.param(
            "npm test -- -t x", "node_modules/.bin/vitest", "run -t x --run", JEST, id="vitest with arguments"
        ),
        pytest.param("npx --no-install jest -i", "node_modules/.bin/jest", "--json --outputFile=", JEST, id="jest"),
        pytest.param("go test ./...", "bin/go", "test -json ./...", GO, id="go"),
        pytest.param("cargo test", "bin/cargo", "test", CARGO, id="cargo"),
    ],
)
def test_other_runners_are_asked_for_a_report_and_read(
    tmp_path: Path, command: str, program: str, asked: str, said: str
) -> None:
    files = {"package.json": PACKAGE % "vitest run", program: STAND_IN, "said": said.format(root=tmp_path / "project")}
    root = write(tmp_path / "project", files)

    report = measured(configured(command), root, path=str(root / "bin"))

    assert (root / "asked").read_text().startswith(asked)
    assert (report.passed, report.failed, report.counted) == (("a::ok",), ("a::bad",), True)
    assert "no, it is not" in report.output


def test_cargo_builds_outside_of_a_project_that_does_not_ignore_its_target(tmp_path: Path) -> None:
    cargo = '#!/bin/sh\necho "target: $CARGO_TARGET_DIR" >&2\n'
    root = write(tmp_path / "project", {"bin/cargo": cargo})

    bare = measured(configured("cargo test"), root, path=str(root / "bin"))
    write(root, {".gitignore": "/target\n"})
    ignoring = measured(configured("cargo test"), root, path=str(root / "bin"))

    assert bare.output == f"target: {tmp_path / 'scratch of tests' / 'target'}"
    assert ignoring.output == "target: "


@pytest.mark.parametrize(("recipe", "code"), [("true", 0), ("exit 3", 2)])
def test_make_reports_only_an_exit_code(tmp_path: Path, recipe: str, code: int) -> None:
    root = write(tmp_path / "project", {"Makefile": f"test:\n\t@echo testing\n\t@{recipe}\n"})

    report = measured(find(root), root)

    assert (report.exit_code, report.counted) == (code, False)
    assert "testing" in report.output


def test_a_command_that_does_not_exist_fails(tmp_path: Path) -> None:
    root = write(tmp_path / "project", {"go.mod": ""})

    report = measured(configured("no-such-command-anywhere --test"), root)

    assert (report.exit_code, report.counted) == (127, False)
