"""Test runners of Node, each with its real program on a small project."""

from pathlib import Path

import pytest
from tests.host.test_suites.suite_projects import measured, one, write

from iterdev.core.verification import compare
from iterdev.host.test_suites.run import only

INSTALLED = Path(__file__).parents[3] / ".test-runners/node_modules"
PACKAGE = '{"name": "p", "version": "1.0.0", "scripts": {"test": "%s"}}'

MOCHA = """\
describe('outer', () => {
  it('one', () => {});
  it('two', () => { throw new Error('no, it is not'); });
  it.skip('three');
  it('four', () => {});
});
describe('hooks', () => { before(() => { throw new Error('early'); }); it('x', () => {}); });
"""
JASMINE = """\
describe('outer', () => {
  it('one', () => {});
  it('two', () => { expect(1).withContext('no, it is not').toBe(2); });
  xit('three', () => {});
});
"""
AVA = """\
const test = require('ava');
test('one', (t) => t.pass());
test('two', (t) => t.fail('no, it is not'));
test.skip('three', (t) => t.pass());
"""
TAPE = """\
const test = require('tape');
test('outer', (t) => { t.equal(1, 1, 'one'); console.log('noise'); t.equal(1, 2, 'no, it is not'); t.end(); });
"""
UVU = """\
const {test} = require('uvu');
test('one', () => {});
test('two', () => { throw new Error('no, it is not'); });
test.skip('three', () => {});
test.run();
"""


def project(tmp_path: Path, script: str, text: str) -> Path:
    root = write(tmp_path / "project", {"package.json": PACKAGE % script, "test/a.js": text})
    (root / "node_modules").symlink_to(INSTALLED)
    return root


@pytest.mark.parametrize(
    ("script", "text", "passed", "failed", "skipped"),
    [
        pytest.param(
            "eslint . && nyc --reporter lcov mocha --bail -R dot",
            MOCHA,
            ("test/a.js::outer > one", "test/a.js::outer > four"),
            ("test/a.js::outer > two", 'test/a.js::hooks > "before all" hook for "x"'),
            1,
            id="mocha",
        ),
        pytest.param(
            "jasmine --random=false test/*.js",
            JASMINE,
            ("test/a.js::outer one",),
            ("test/a.js::outer two",),
            1,
            id="jasmine",
        ),
        pytest.param("xo && ava --fail-fast && tsd", AVA, ("one",), ("two",), 1, id="ava"),
        pytest.param("tape test/*.js | tap-spec", TAPE, ("outer > one",), ("outer > no, it is not",), 0, id="tape"),
        pytest.param("uvu test", UVU, ("a.js #1",), ("a.js > two",), 1, id="uvu"),
    ],
)
def test_a_runner_is_found_behind_its_script_and_read(
    tmp_path: Path, script: str, text: str, passed: tuple[str, ...], failed: tuple[str, ...], skipped: int
) -> None:
    root = project(tmp_path, script, text)

    report = measured(one(root), root)

    assert (report.passed, report.failed, report.skipped) == (passed, failed, skipped)
    assert report.exit_code != 0
    assert "no, it is not" in report.output


REPLACING = """\
const fs = require('fs');
const {openSync, writeFileSync} = fs;
const {stringify} = JSON;
const binding = process.binding('fs');
const {writeString} = binding;
const replaced = () => { throw new Error('replaced'); };
beforeEach(() => {
  process.chdir('/');
  fs.openSync = fs.writeFileSync = JSON.stringify = binding.writeString = replaced;
});
afterEach(() => {
  process.chdir(__dirname);
  Object.assign(fs, {openSync, writeFileSync});
  JSON.stringify = stringify;
  binding.writeString = writeString;
});
describe('outer', () => {
  it('one', () => {});
  it('two', () => { throw new Error('no, it is not'); });
  it('a line \\u2028 separator', () => {});
});
"""


@pytest.mark.parametrize(
    ("script", "between"), [("mocha", " > "), ("jasmine --random=false test/*.js", " ")], ids=["mocha", "jasmine"]
)
def test_what_a_test_replaces_does_not_hide_its_outcome(tmp_path: Path, script: str, between: str) -> None:
    root = project(tmp_path, script, REPLACING)

    report = measured(one(root), root)

    outer = f"test/a.js::outer{between}"
    assert report.passed == (f"{outer}one", f"{outer}a line \u2028 separator")
    assert report.failed == (f"{outer}two",)


@pytest.mark.parametrize(
    ("script", "text", "passed"),
    [pytest.param("tape test/*.js", TAPE, "ok 1 one", id="tape"), pytest.param("ava", AVA, "- one", id="ava")],
)
def test_what_passed_does_not_hide_what_failed(tmp_path: Path, script: str, text: str, passed: str) -> None:
    root = project(tmp_path, script, text)

    report = measured(one(root), root)

    assert passed not in report.output
    assert "not ok" in report.output


def test_a_run_that_a_test_ends_with_success_says_nothing(tmp_path: Path) -> None:
    root = project(tmp_path, "mocha", "it('one', () => {}); it('two', () => process.exit(0)); it('three', () => {});")

    report = measured(one(root), root)

    assert (report.exit_code, report.counted) == (0, False)
    assert compare(report, None).pass_rate is None
    assert "before all of them had run" in compare(report, None).note


@pytest.mark.parametrize(
    ("script", "text", "name"),
    [
        pytest.param("mocha", MOCHA, "test/a.js::outer > four", id="mocha"),
        pytest.param("mocha --parallel", MOCHA, "test/a.js::outer > four", id="mocha, in parallel"),
        pytest.param("ava", AVA, "one", id="ava"),
    ],
)
def test_a_test_can_be_run_alone(tmp_path: Path, script: str, text: str, name: str) -> None:
    root = project(tmp_path, script, text)

    alone = only(one(root), [name])

    assert alone is not None
    report = measured(alone, root)
    assert (report.passed, report.failed) == ((name,), ())
