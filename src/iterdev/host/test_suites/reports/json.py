"""Reads the JSON of test runners: jest and vitest, go, meson, RSpec."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from iterdev.host.test_suites.reports.tally import Outcome, Tally, cut, tally

T = TypeVar("T")


def _decoded(text: str, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


class _JestTest(Struct, rename="camel"):
    title: str
    status: Literal["passed", "failed", "skipped", "pending", "todo", "disabled", "focused"]
    ancestor_titles: tuple[str, ...] = ()


class _JestFile(Struct, rename="camel"):
    name: str
    status: str
    assertion_results: tuple[_JestTest, ...]


class _JestReport(Struct, rename="camel"):
    test_results: tuple[_JestFile, ...]


_JEST_OUTCOMES: Mapping[str, Outcome] = {"passed": "passed", "failed": "failed"}


def jest(text: str) -> Tally | None:
    """Reads the JSON of jest and of vitest, which have one shape."""
    report = _decoded(text, _JestReport)
    return tally(outcome for file in report.test_results for outcome in _jest_outcomes(file)) if report else None


def _jest_outcomes(file: _JestFile) -> Iterator[tuple[str, Outcome]]:
    path = cut(file.name)
    for test in file.assertion_results:
        name = " > ".join((*test.ancestor_titles, test.title))
        yield f"{path}::{name}", _JEST_OUTCOMES.get(test.status, "skipped")
    if file.status == "failed" and all(test.status != "failed" for test in file.assertion_results):
        yield path, "failed"  # it could not be loaded, or failed outside of its tests


class _GoEvent(Struct, rename="pascal"):
    action: str
    package: str = ""
    test: str = ""
    output: str = ""


_GO_OUTCOMES: Mapping[str, Outcome] = {"pass": "passed", "skip": "skipped"}
_GO_SLASHES = 50
"""How many parts of a test's name may be tests around it."""
_GO_UNBUILT = re.compile(r"^FAIL\s+(\S+) \[(?:build|setup) failed\]", re.MULTILINE)


def _go_events(text: str) -> Iterator[_GoEvent]:
    for line in text.splitlines():
        # Before Go 1.24 the compiler's messages are between the events as plain text.
        if event := _decoded(line, _GoEvent):
            yield event


def go(text: str) -> Tally | None:
    """Reads `go test -json`; what was started and never ended has failed."""
    last = _go_last(text)
    unbuilt = dict.fromkeys(_GO_UNBUILT.findall(text), "fail")
    if not last and not unbuilt:
        return None
    tests = {key: action for key, action in last.items() if key[1]}
    packages = unbuilt | {package: action for (package, test), action in last.items() if not test}
    explained = {package for (package, _), action in tests.items() if action == "fail"}
    failed = [
        package for package, action in packages.items() if action in {"fail", "start"} and package not in explained
    ]
    return tally((*((package, "failed") for package in failed), *_go_tests(tests)))


def _go_last(text: str) -> dict[tuple[str, str], str]:
    last: dict[tuple[str, str], str] = {}
    for event in _go_events(text):
        if event.package and event.action in {"start", "run", "pass", "fail", "skip"}:
            last[event.package, event.test] = event.action
    return last


def _go_tests(tests: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, Outcome]]:
    """Omits a test that only repeats the outcome of its subtests."""
    parents = {(package, outer) for package, test in tests for outer in _go_outer(test, tests, package)}
    explained = {
        (package, outer)
        for (package, test), action in tests.items()
        if action == "fail"
        for outer in _go_outer(test, tests, package)
    }
    for key, action in tests.items():
        repeats = key in explained if action == "fail" else key in parents
        if not repeats:
            yield "::".join(key), _GO_OUTCOMES.get(action, "failed")


def _go_outer(test: str, tests: Mapping[tuple[str, str], str], package: str) -> Iterator[str]:
    """The test that a subtest is part of, and so on; a name may itself contain slashes."""
    end = test.find("/")
    for _ in range(_GO_SLASHES):
        if end < 0:
            break
        if (package, test[:end]) in tests:
            yield test[:end]
        end = test.find("/", end + 1)


def go_unfinished(text: str) -> tuple[str, ...]:
    running = {key: action for key, action in _go_last(text).items() if key[1] and action == "run"}
    outer = {(package, name) for package, test in running for name in _go_outer(test, running, package)}
    return tuple("::".join(key) for key in running if key not in outer)


def go_output(text: str) -> str:
    """The output of `go test` without -json."""
    return "".join(event.output for event in _go_events(text))


class _MesonTest(Struct):
    name: str
    result: Literal["OK", "FAIL", "SKIP", "TIMEOUT", "ERROR", "INTERRUPT", "IGNORED", "EXPECTEDFAIL", "UNEXPECTEDPASS"]


_MESON_OUTCOMES: Mapping[str, Outcome] = {
    "OK": "passed",
    "EXPECTEDFAIL": "passed",
    "SKIP": "skipped",
    "IGNORED": "skipped",
}


def meson(text: str, stdout: str = "") -> Tally | None:
    """Reads `testlog.json`, which has a line for each test, and is not written if there are none."""
    tests = [_decoded(line, _MesonTest) for line in text.splitlines()]
    if not tests:
        return Tally() if "No tests defined" in stdout else None
    outcomes: list[tuple[str, Outcome]] = []
    for test in tests:
        if test is None:
            return None
        outcomes.append((test.name, _MESON_OUTCOMES.get(test.result, "failed")))
    return tally(outcomes)


class _Example(Struct):
    full_description: str
    status: Literal["passed", "failed", "pending"]
    file_path: str = ""


class _RSpecSummary(Struct):
    example_count: int
    failure_count: int
    pending_count: int
    errors_outside_of_examples_count: int = 0


class _RSpecReport(Struct):
    examples: tuple[_Example, ...]
    summary: _RSpecSummary


_RSPEC_OUTCOMES: Mapping[str, Outcome] = {"passed": "passed", "failed": "failed", "pending": "skipped"}
OUTSIDE = "(outside of the examples)"


def rspec(text: str) -> Tally | None:
    report = _decoded(text, _RSpecReport)
    if report is None or report.summary.example_count != len(report.examples):
        return None
    names = ((e.file_path.removeprefix("./") + "::" + e.full_description, e.status) for e in report.examples)
    outcomes: list[tuple[str, Outcome]] = [(name, _RSPEC_OUTCOMES[status]) for name, status in names]
    if report.summary.errors_outside_of_examples_count:
        outcomes.append((OUTSIDE, "failed"))
    return tally(outcomes)
