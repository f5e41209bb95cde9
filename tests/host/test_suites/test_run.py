"""Running and reading real test suites."""

import itertools
from pathlib import Path

import pytest
from tests.host.test_suites.suite_projects import (
    WITH_PYTEST,
    WITHOUT_PYTEST,
    find,
    measured,
    one,
    seen_by_git,
    write,
)

from iterdev.core.verification import compare
from iterdev.host.test_suites.invocations import configured, recognise
from iterdev.host.test_suites.run import behind_npm, only
from iterdev.host.test_suites.runners import RUNNERS
from iterdev.host.test_suites.suite import Suite

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
describe('outer', () => { test('two', () => { throw new Error('no, it is not'); }); test('in', () => {}); });
test('three', {skip: true}, () => {});
test('parent', async (t) => { await t.test('sub', () => {}); });
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with pytest, whose clean state git knows."""
    return write(tmp_path / "project", {**WITH_PYTEST, ".gitignore": "environment\n"})


def test_pytest_names_its_tests(project: Path) -> None:
    write(project, {"tests/test_a.py": PLAIN + FAILING})

    report = measured(one(project), project)

    assert report.counted
    assert (report.passed, report.failed) == (("tests/test_a.py::test_a",), ("tests/test_a.py::test_b",))
    assert report.exit_code == 1
    assert "assert 1 == 2" in report.output


REPLACING = """\
import atexit, os, pathlib
report = pathlib.Path(os.environ["ITERDEV_TEST_EVENTS"])
def test_a():
    atexit.register(lambda: (report.unlink(), {instead}))
"""


def test_a_report_that_a_test_replaced_by_a_link_is_not_read(project: Path) -> None:
    write(project.parent, {"secret": '{"event": "passed", "test": "the-key-of-the-user"}\n{"event": "end"}\n'})
    write(project, {"test_a.py": REPLACING.format(instead=f"report.symlink_to('{project.parent}/secret')")})

    report = measured(one(project), project)

    assert "the-key-of-the-user" not in repr(report)
    assert (report.passed, report.counted) == ((), False)


def test_a_report_beyond_all_measure_is_not_read_and_that_is_said(project: Path) -> None:
    grow = "import os\nos.truncate(os.environ['ITERDEV_TEST_EVENTS'], 700 * 2**20)\n"
    write(project, {"tests/test_a.py": PLAIN, "tests/test_b.py": f"def test_b():\n    {grow.replace(chr(10), '; ')}"})

    report = measured(one(project), project)

    assert not report.counted
    assert "its report of 700 MiB cannot be read; 64 MiB in 10000 files can" in report.output


def test_a_configured_pytest_keeps_its_arguments(project: Path) -> None:
    write(project, {"test_a.py": PLAIN + FAILING})

    report = measured(configured("true && PYTHONPATH=. python -m pytest -q -k 'test_a and not test_b'"), project)

    assert (report.passed, report.failed, report.exit_code) == (("test_a.py::test_a",), (), 0)


@pytest.mark.parametrize(
    "options", ["-x", "--maxfail=1", "-p no:junitxml", "-q --junitxml=out.xml", "-n 2", "-W error"]
)
def test_settings_of_the_project_do_not_hide_tests(project: Path, options: str) -> None:
    write(project, {"pytest.ini": f"[pytest]\naddopts = {options}\n", "test_a.py": FAILING + PLAIN})
    before = seen_by_git(project)

    report = measured(one(project), project)

    assert (report.passed, report.failed) == (("test_a.py::test_a",), ("test_a.py::test_b",))
    assert seen_by_git(project) == before


def test_a_run_leaves_nothing_that_git_would_see(project: Path) -> None:
    write(project, {"shop.py": "", "test_a.py": "import shop\n" + PLAIN + FAILING})
    before = seen_by_git(project)

    measured(one(project), project)

    assert seen_by_git(project) == before
    assert list((project.parent / "scratch of tests").iterdir()) == []


def test_a_module_that_cannot_be_collected_is_a_failure_and_the_others_are_measured(project: Path) -> None:
    write(project, {"test_a.py": PLAIN, "test_b.py": "import nothing_of_this_name\n" + PLAIN})

    report = measured(one(project), project)

    assert (report.passed, report.failed) == (("test_a.py::test_a",), ("test_b.py",))


def test_a_test_has_the_worst_outcome_of_its_phases(project: Path) -> None:
    late = "import pytest\n@pytest.fixture\ndef late():\n    yield\n    assert 0\n"
    early = "@pytest.fixture\ndef early():\n    assert 0\n"
    tests = "def test_late(late): pass\ndef test_early(early): pass\n@pytest.mark.xfail\ndef test_x(): assert 0\n"
    write(project, {"test_a.py": late + early + tests})

    report = measured(one(project), project)

    assert (report.passed, report.failed, report.skipped) == ((), ("test_a.py::test_late", "test_a.py::test_early"), 1)


REPLACED_BY_PYTEST = """\
import builtins, json, pytest
@pytest.fixture(autouse=True)
def replaced(monkeypatch):
    monkeypatch.setattr(builtins, "open", None)
    monkeypatch.setattr(json, "dumps", None)
def test_a():
    pass
def test_b():
    assert 1 == 2
def test_c():
    pytest.skip("no")
"""
REPLACED_BY_UNITTEST = """\
import builtins, json, os, unittest
from unittest.mock import mock_open, patch
class C(unittest.TestCase):
    def setUp(self):
        for where, name, value in ((builtins, "open", mock_open()), (json, "dumps", str), (os, "getpid", int)):
            replaced = patch.object(where, name, value)
            replaced.start()
            self.addCleanup(replaced.stop)
    def test_a(self):
        pass
    def test_b(self):
        self.fail("no")
    def test_c(self):
        self.skipTest("no")
"""


@pytest.mark.parametrize(
    ("command", "text"),
    [("python3 -m pytest", REPLACED_BY_PYTEST), ("python3 -W error -m unittest", REPLACED_BY_UNITTEST)],
    ids=["pytest", "unittest"],
)
def test_what_a_test_replaces_does_not_hide_its_outcome(project: Path, command: str, text: str) -> None:
    write(project, {"test_a.py": text})

    report = measured(configured(command), project)

    assert [len(tests) for tests in (report.passed, report.failed)] == [1, 1]
    assert (report.skipped, report.exit_code) == (1, 1)
    assert report.failed[0].endswith("::test_b")


def test_names_have_no_addresses_in_them(project: Path) -> None:
    ids = "@pytest.mark.parametrize('x', [object()], ids=repr)\n"
    write(project, {"test_a.py": f"import pytest\n{ids}def test_a(x):\n    pass\n"})

    report = measured(one(project), project)
    alone = only(one(project), report.passed)

    assert report.passed == ("test_a.py::test_a[<object object at 0x…>]",)
    assert alone is not None
    assert measured(alone, project).passed == report.passed


def test_pytest_that_cannot_start_is_not_a_pass(project: Path) -> None:
    write(project, {"pytest.ini": "[pytest]\naddopts = --no-such-option\n", "test_a.py": PLAIN})

    report = measured(one(project), project)

    assert not report.counted
    assert compare(report, None).pass_rate == 0.0


def test_a_suite_without_tests_says_nothing(project: Path) -> None:
    write(project, {"pytest.ini": ""})

    report = measured(one(project), project)

    assert (report.exit_code, report.counted) == (5, True)
    assert compare(report, None).pass_rate is None


@pytest.mark.parametrize("command", ["python -m pytest", "sleep 1000"])
def test_a_suite_that_does_not_end_is_stopped_and_fails(project: Path, command: str) -> None:
    write(project, {"test_a.py": "import time\n" + PLAIN + "def test_b():\n    time.sleep(1000)\n"})

    report = measured(configured(command), project, limit=0.5)

    assert (report.timed_out, report.counted, report.passed) == (True, False, ())
    assert compare(report, None).pass_rate == 0.0


HANGING = "open('started', 'w').close()\n        import time\n        time.sleep(1000)\n"
PYTEST_HANGS = f"def test_a(): pass\ndef test_slow():\n    if True:\n        {HANGING}"
UNITTEST_HANGS = (
    "import unittest\nclass C(unittest.TestCase):\n    def test_a(self): pass\n"
    f"    def test_slow(self):\n        {HANGING}"
)


@pytest.mark.parametrize(
    ("text", "command", "name"),
    [
        (PYTEST_HANGS, "python -m pytest", "test_a.py::test_slow"),
        (UNITTEST_HANGS, "python -m unittest", "test_a.C::test_slow"),
    ],
)
def test_the_test_that_hangs_is_named(project: Path, text: str, command: str, name: str) -> None:
    write(project, {"test_a.py": text})

    # On a busy machine the first limits may be too short to reach the test.
    reports = (measured(configured(command), project, limit=2**exponent) for exponent in itertools.count())
    report = next(report for report in reports if (project / "started").exists())

    assert (report.timed_out, report.hung) == (True, (name,))


def test_a_failure_that_was_there_before_is_not_blamed_on_the_change(tmp_path: Path) -> None:
    old = write(tmp_path / "old", {**WITH_PYTEST, "test_a.py": PLAIN + FAILING})
    new = write(tmp_path / "new", {**WITH_PYTEST, "test_a.py": PLAIN + FAILING, "test_c.py": PLAIN})

    verification = compare(measured(one(new), new), measured(one(old), old))

    assert verification.pass_rate == 1
    assert (verification.total, verification.failures) == (2, ())
    assert verification.known_failures == ("test_a.py::test_b",)


def test_unittest_names_its_tests(project: Path) -> None:
    write(project, {"tests/test_a.py": CASES})

    report = measured(one(project), project)

    assert (report.passed, report.failed) == (("test_a.C::test_a",), ("test_a.C::test_b",))
    assert "AssertionError: no" in report.output


UNITTEST = """\
import unittest
class C(unittest.TestCase):
    def test_ok(self): print('test_x (y) ... FAIL')
    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i): self.assertNotEqual(i, 1)
    @unittest.skip('later')
    def test_skip(self): pass
    @unittest.expectedFailure
    def test_xf(self): self.fail()
    @unittest.expectedFailure
    def test_xs(self): pass
class D(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise RuntimeError
    def test_d(self): pass
"""


def test_every_outcome_of_unittest_is_known(project: Path) -> None:
    write(project, {"tests/test_a.py": UNITTEST})

    report = measured(one(project), project)

    assert report.passed == ("test_a.C::test_ok", "test_a.C::test_xf")
    assert report.failed == ("test_a.C::test_sub", "test_a.C::test_xs", "test_a.D::setUpClass")
    assert report.skipped == 1


@pytest.mark.parametrize("command", ["python -m unittest", "python -m unittest -f", "python -m unittest discover"])
def test_a_unittest_module_that_does_not_load_is_a_failure_and_the_others_are_measured(
    project: Path, command: str
) -> None:
    broken = "import not_installed_here\n" + CASES
    write(project, {"tests/__init__.py": "", "tests/test_a.py": CASES, "tests/test_optional.py": broken})

    report = measured(configured(command), project)

    assert report.passed == ("tests.test_a.C::test_a",)
    assert sorted(report.failed) == ["tests.test_a.C::test_b", "tests.test_optional"]


@pytest.mark.parametrize("script", ["runtests.py", "tests/runtests.py"])
def test_a_script_that_runs_unittest_or_pytest_is_read(project: Path, script: str) -> None:
    unittest = "import sys, unittest\nsys.path.insert(0, 'tests')\nunittest.main('test_a', exit=False)\n"
    pytest_too = "import pytest\npytest.main(['-q', 'tests/test_a.py'])\n"
    write(project, {script: unittest + pytest_too, "tests/test_a.py": CASES})

    report = measured(one(project), project)

    assert report.passed == ("test_a.C::test_a", "tests/test_a.py::C::test_a")
    assert report.failed == ("test_a.C::test_b", "tests/test_a.py::C::test_b")


@pytest.mark.parametrize(
    "command", ["npm test", "npm run test:unit", "node --test t/", "node --test --test-reporter=dot t/"]
)
def test_node_names_its_tests(tmp_path: Path, command: str) -> None:
    scripts = 'node --test t/", "test:unit": "npm test'
    files = {"package.json": PACKAGE % scripts, "t/a.test.js": NODE_TESTS, "t/b.test.js": "throw 1;"}
    root = write(tmp_path / "project", files)

    report = measured(configured(command), root)

    assert report.passed == ("t/a.test.js::one", "t/a.test.js::outer > in", "t/a.test.js::parent > sub")
    assert report.failed == ("t/a.test.js::outer > two", "t/b.test.js")
    assert (report.exit_code, report.skipped) == (1, 1)
    assert "no, it is not" in report.output


def test_the_runner_of_bun_is_not_a_script_of_the_package(tmp_path: Path) -> None:
    root = write(tmp_path, {"package.json": PACKAGE % "node --test"})

    assert behind_npm(configured("bun test"), root).command == "bun test"
    assert behind_npm(configured("bun run test"), root).command == "node --test"


@pytest.mark.parametrize(
    ("files", "command", "name"),
    [
        ({"test_a.py": PLAIN + FAILING}, "python -m pytest", "test_a.py::test_a"),
        ({"test_a.py": CASES}, "python -m unittest", "test_a.C::test_a"),
        ({"a.test.js": NODE_TESTS}, "node --test", "a.test.js::outer > in"),
    ],
)
def test_a_test_can_be_run_alone(project: Path, files: dict[str, str], command: str, name: str) -> None:
    write(project, files)

    alone = only(configured(command), [name])

    assert alone is not None
    report = measured(alone, project)
    assert (report.passed, report.failed, report.exit_code) == ((name,), (), 0)


def test_tests_of_the_same_name_are_run_alone_together(project: Path) -> None:
    write(project, {"test_a.py": CASES})

    alone = only(configured("python -m unittest test_a test_a"), ["test_a.C::test_a [2]"])

    assert alone is not None
    assert measured(alone, project).passed == ("test_a.C::test_a", "test_a.C::test_a [2]")


@pytest.mark.parametrize("command", ["make test", "npm test", "./run-tests.sh"])
def test_a_runner_that_cannot_run_one_test_is_not_restricted(command: str) -> None:
    assert only(configured(command), ["a"]) is None


def test_cargo_builds_outside_of_a_project_that_does_not_ignore_its_target(tmp_path: Path) -> None:
    cargo = '#!/bin/sh\necho "target: $CARGO_TARGET_DIR" >&2\n'
    root = write(tmp_path / "project", {"environment/bin/cargo": cargo})

    bare = measured(configured("cargo test"), root)
    write(root, {".gitignore": "/target\n"})
    ignoring = measured(configured("cargo test"), root)

    assert bare.output == f"target: {tmp_path / 'scratch of tests' / 'target'}"
    assert ignoring.output == "target: "


def test_gradle_runs_every_test_in_our_processes_and_shows_why_one_failed(tmp_path: Path) -> None:
    gradle = '#!/bin/sh\necho "$@" >&2; while [ "$1" != --init-script ]; do shift; done; cat "$2" >&2\n'
    root = write(tmp_path / "project", {"build.gradle": "", "gradlew": gradle})

    report = measured(one(root), root)

    assert "cleanTest test --continue --no-build-cache --no-daemon" in report.output
    assert "exceptionFormat = 'full'" in report.output
    assert "outputs.upToDateWhen { false }" in report.output


@pytest.mark.parametrize(
    ("command", "tests", "asked"),
    [
        ("gradle test", ("p.A::one", "p.A::two[1]"), "--tests p.A.one --tests p.A.two"),
        ("mvn test", ("p.A::one", "p.A::two(int)[1]"), "-Dtest='p.A#one,p.A#two'"),
        ("swift test", ("P.A::one", "P.A::two"), "--filter 'P.A.one|P.A.two'"),
        (
            "dotnet test",
            ("P.A::One", "P.A::Two(x: 1)"),
            "--filter 'FullyQualifiedName~P.A.One|FullyQualifiedName~P.A.Two'",
        ),
        ("phpunit", ('A::one with data set "x"', "A::two"), "--filter '/::(one|two)( |$)/'"),
        ("go test ./...", ("p::TestA/sub", "p::TestB"), "-run '^(TestA|TestB)$'"),
        ("vitest run", ("a.ts::outer > in (x)",), r"-t '^(outer in \(x\))$'"),
        ("bun test", ("a.ts::one",), "-t '(^| )(one)$'"),
        ("deno test", ("a.ts::outer > step",), "--filter '/^(outer)$/'"),
        ("rspec", ("spec/a_spec.rb::A adds",), "-e 'A adds'"),
        ("ctest --test-dir b", ("a.b",), r"-R '^(a\.b)$'"),
    ],
)
def test_every_runner_is_restricted_in_its_own_words(command: str, tests: tuple[str, ...], asked: str) -> None:
    call = recognise(command)
    assert call is not None
    restrict = RUNNERS[call.kind].restrict
    assert restrict is not None

    assert asked in restrict(call, tests).text()


@pytest.mark.parametrize(("recipe", "code"), [("true", 0), ("exit 3", 2)])
def test_make_reports_only_an_exit_code(tmp_path: Path, recipe: str, code: int) -> None:
    root = write(tmp_path / "project", {"Makefile": f"test:\n\t@echo testing\n\t@{recipe}\n"})

    report = measured(one(root), root)

    assert (report.exit_code, report.counted) == (code, False)
    assert "testing" in report.output


def test_make_that_prints_tap_is_read(tmp_path: Path) -> None:
    root = write(tmp_path / "project", {"Makefile": "test:\n\t@echo 1..2; echo 'ok 1 - a'; echo 'not ok 2 - b'\n"})

    report = measured(one(root), root)

    assert (report.passed, report.failed) == (("a",), ("b",))


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({**WITHOUT_PYTEST, "test_a.py": PLAIN}, "pytest"),
        ({"package.json": PACKAGE % "no-runner-of-this-name && mocha"}, "no-runner-of-this-name"),
        ({"phpunit.xml": "<phpunit/>", "environment/bin/phpunit": "#!/bin/sh\nno-php-here\n"}, "no-php-here"),
    ],
)
def test_a_program_that_is_missing_is_named(tmp_path: Path, files: dict[str, str], missing: str) -> None:
    root = write(tmp_path / "project", files)

    report = measured(one(root), root)

    assert (report.counted, report.missing_program) == (False, missing)
    assert report.exit_code != 0


def test_a_suite_runs_in_its_folder(project: Path) -> None:
    write(project, {"api/pyproject.toml": "[project]\nname = 'api'\n", "api/tests/test_a.py": PLAIN})

    report = measured(one(project), project)

    assert (report.folder, report.passed) == ("api", ("tests/test_a.py::test_a",))


def test_what_is_built_is_built_outside_of_the_tree(tmp_path: Path) -> None:
    lists = "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nenable_testing()\nadd_executable(t t.c)\n"
    tests = "add_test(NAME ok COMMAND t)\nadd_test(NAME bad COMMAND t 1)\nadd_test(NAME gone COMMAND no-such-program)\n"
    program = "int main(int count, char **words) { return count - 1; }\n"
    root = write(tmp_path / "project", {"CMakeLists.txt": lists + tests, "t.c": program})
    before = seen_by_git(root)

    report = measured(one(root), root)

    assert (report.passed, report.failed) == (("ok",), ("bad", "gone"))
    assert seen_by_git(root) == before


def test_cargo_names_its_tests_by_crate(tmp_path: Path) -> None:
    library = "#[cfg(test)] mod tests { #[test] fn ok() {} #[test] #[ignore] fn later() {} }\n"
    manifest = "[package]\nname = 'shop'\nversion = '0.1.0'\nedition = '2021'\n"
    files = {"Cargo.toml": manifest, "src/lib.rs": library, "tests/a.rs": "#[test] fn ok() { panic!() }\n"}
    root = write(tmp_path / "project", files)

    report = measured(one(root), root)

    assert (report.passed, report.failed, report.skipped) == (("shop::tests::ok",), ("a::ok",), 1)


def test_perl_tests_are_read_from_their_tap(tmp_path: Path) -> None:
    tests = {
        "t/a.t": "use Test::More tests => 3; ok(1, 'one'); ok(0, 'two'); subtest s => sub { plan tests => 1; ok 1 };",
        "t/b.t": "use Test::More; ok(1, 'fine'); done_testing; exit 3",
        "t/c.t": "use Test::More skip_all => 'because';",
        "t/d.t": "die 'early'",
    }
    root = write(tmp_path / "project", {"Makefile.PL": "", **tests})

    report = measured(one(root), root)

    assert report.passed == ("t/a.t > one", "t/a.t > s", "t/b.t > fine")
    assert (report.failed, report.skipped) == (("t/a.t > two", "t/b.t", "t/d.t"), 1)


def test_tests_that_are_named_after_temporary_files_have_the_same_names_in_every_run(tmp_path: Path) -> None:
    program = 'use Test::More tests => 1; use File::Temp; my $t = File::Temp->new(TMPDIR => 1); ok(1, "made $t");'
    root = write(tmp_path / "project", {"Makefile.PL": "", "t/a.t": program})

    first, second = measured(one(root), root), measured(one(root), root)

    assert first.passed == second.passed == ("t/a.t > made $TMPDIR/…",)


def test_suites_of_several_projects_are_measured_apart(project: Path) -> None:
    write(project, {"test_a.py": PLAIN, "js/package.json": PACKAGE % "node --test", "js/a.test.js": NODE_TESTS})

    reports = [measured(suite, project) for suite in find(project)]

    assert [(report.folder, len(report.passed)) for report in reports] == [("", 1), ("js", 3)]


def test_a_program_that_does_not_exist_fails(tmp_path: Path) -> None:
    root = write(tmp_path / "project", {"go.mod": ""})

    report = measured(Suite(command="no-such-command-anywhere --test", kind="custom"), root)

    assert (report.exit_code, report.counted, report.missing_program) == (127, False, "no-such-command-anywhere")
