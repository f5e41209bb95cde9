"""Parses the reports of test runners: which tests passed, which failed, how many were skipped.

A parser returns None for a text that it does not understand completely, so that a broken report never looks like
a successful one.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal
from xml.etree import ElementTree as ET

import msgspec
from msgspec import Struct

Outcome = Literal["passed", "failed", "skipped"]


class Tally(Struct, frozen=True, kw_only=True):
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: int = 0


def _tally(outcomes: Iterable[tuple[str, Outcome]]) -> Tally:
    """Numbers tests of the same name, so that a failed one is not taken for one that passed."""
    seen = Counter[str]()
    names: dict[Outcome, list[str]] = {"passed": [], "failed": [], "skipped": []}
    for name, outcome in outcomes:
        seen[name] += 1
        names[outcome].append(name if seen[name] == 1 else f"{name} [{seen[name]}]")
    return Tally(passed=tuple(names["passed"]), failed=tuple(names["failed"]), skipped=len(names["skipped"]))


def junit(text: str) -> Tally | None:
    """Reads JUnit XML as pytest and node write it."""
    try:
        # Hostile entities are stopped by expat itself, which limits their expansion.
        top = ET.fromstring(text)  # noqa: S314
    except ET.ParseError:
        return None
    return _tally(_junit_cases(top, ())) if top.tag in {"testsuites", "testsuite"} else None


def _junit_cases(suite: ET.Element, suites: tuple[str, ...]) -> Iterator[tuple[str, Outcome]]:
    for child in suite:
        if child.tag == "testsuite":
            yield from _junit_cases(child, (*suites, child.get("name", "")))
        elif child.tag == "testcase":
            where = child.get("classname", "")
            if where == "test":  # node puts every test into this class, and says in the suites where it belongs
                where = " > ".join(suites)
            name = "::".join(part for part in (where, child.get("name", "")) if part)
            found = {part.tag for part in child}
            yield name, "failed" if found & {"failure", "error"} else "skipped" if "skipped" in found else "passed"


class _JestTest(Struct, rename="camel"):
    title: str
    status: Literal["passed", "failed", "skipped", "pending", "todo", "disabled", "focused"]
    ancestor_titles: tuple[str, ...] = ()


_JEST_OUTCOMES: Mapping[str, Outcome] = {"passed": "passed", "failed": "failed"}


class _JestFile(Struct, rename="camel"):
    name: str
    status: str
    assertion_results: tuple[_JestTest, ...]


class _JestReport(Struct, rename="camel"):
    test_results: tuple[_JestFile, ...]


def jest(text: str) -> Tally | None:
    """Reads the JSON of jest and of vitest, which have one shape."""
    try:
        report = msgspec.json.decode(text, type=_JestReport)
    except msgspec.DecodeError:
        return None
    return _tally(outcome for file in report.test_results for outcome in _jest_outcomes(file))


def _jest_outcomes(file: _JestFile) -> Iterator[tuple[str, Outcome]]:
    for test in file.assertion_results:
        name = " > ".join((*test.ancestor_titles, test.title))
        yield f"{file.name}::{name}", _JEST_OUTCOMES.get(test.status, "skipped")
    if file.status == "failed" and all(test.status != "failed" for test in file.assertion_results):
        yield file.name, "failed"  # it could not be loaded, or failed outside of its tests


class _GoEvent(Struct, rename="pascal"):
    action: str
    package: str = ""
    test: str = ""
    output: str = ""


_GO_OUTCOMES: Mapping[str, Outcome] = {"pass": "passed", "skip": "skipped"}
_GO_UNBUILT = re.compile(r"^FAIL\s+(\S+) \[(?:build|setup) failed\]", re.MULTILINE)


def _go_events(text: str) -> Iterator[_GoEvent]:
    for line in text.splitlines():
        try:
            yield msgspec.json.decode(line, type=_GoEvent)
        except msgspec.DecodeError:
            continue  # before Go 1.24 the compiler's messages are between the events as plain text


def go(text: str) -> Tally | None:
    """Reads `go test -json`; what was started and never ended has failed."""
    last: dict[tuple[str, str], str] = {}
    for event in _go_events(text):
        if event.package and event.action in {"start", "run", "pass", "fail", "skip"}:
            last[event.package, event.test] = event.action
    unbuilt = dict.fromkeys(_GO_UNBUILT.findall(text), "fail")
    if not last and not unbuilt:
        return None
    tests = {key: action for key, action in last.items() if key[1]}
    packages = unbuilt | {package: action for (package, test), action in last.items() if not test}
    explained = {package for (package, _), action in tests.items() if action == "fail"}
    failed = [
        package for package, action in packages.items() if action in {"fail", "start"} and package not in explained
    ]
    return _tally((*((package, "failed") for package in failed), *_go_tests(tests)))


def _go_tests(tests: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, Outcome]]:
    """Omits a test that only repeats the outcome of its subtests."""
    parents = {(package, outer) for package, test in tests for outer in _go_outer(test)}
    explained = {
        (package, outer) for (package, test), action in tests.items() if action == "fail" for outer in _go_outer(test)
    }
    for key, action in tests.items():
        repeats = key in explained if action == "fail" else key in parents
        if not repeats:
            yield "::".join(key), _GO_OUTCOMES.get(action, "failed")


def _go_outer(test: str) -> Iterator[str]:
    """The tests that a subtest may be part of; a name may itself contain slashes."""
    while "/" in test:
        test = test.rpartition("/")[0]
        yield test


def go_output(text: str) -> str:
    """The output of `go test` without -json."""
    return "".join(event.output for event in _go_events(text))


_CARGO_TEST = re.compile(r"^test (.+?)(?: \(line \d+\))?(?: - should panic)? \.\.\. (ok|FAILED|ignored)", re.MULTILINE)
_CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)
_CARGO_OUTCOMES: Mapping[str, Outcome] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}


def cargo(text: str) -> Tally | None:
    """Parses the output of `cargo test`; its sums must agree."""
    tally = _tally((name, _CARGO_OUTCOMES[word]) for name, word in _CARGO_TEST.findall(text))
    sums = [tuple(map(int, result)) for result in _CARGO_RESULT.findall(text)]
    counted = (len(tally.passed), len(tally.failed), tally.skipped)
    return tally if sums and counted == tuple(map(sum, zip(*sums, strict=True))) else None


_UNITTEST_START = re.compile(r"(\w+) \(([\w.<>]+)\)(?: \.\.\. |\n)")
_UNITTEST_FAILED = re.compile(r"^={70}\n(?:FAIL|ERROR): (\w+) \(([\w.<>]+)\)", re.MULTILINE)
_UNITTEST_END = re.compile(r"^Ran (\d+) tests? in .*\n\n(OK|FAILED|NO TESTS RAN)\b(.*)", re.MULTILINE)
_UNITTEST_WORD = re.compile(
    r"(?:^|\.\.\. )(ok|FAIL|ERROR|skipped|expected failure|unexpected success)(?:$| ['\"])", re.MULTILINE
)
_UNITTEST_OUTCOMES: Mapping[str, Outcome] = {"skipped": "skipped", "unexpected success": "failed"}
_UNITTEST_FIXTURES = ("::setUpClass", "::tearDownClass", "::setUpModule", "::tearDownModule")
_UNITTEST_RULE = re.compile(r"^(?:={70}|-{70})$", re.MULTILINE)


def unittest(text: str) -> Tally | None:
    """Parses the output of `python -m unittest -v`; its sums must agree."""
    end = _UNITTEST_END.search(text)
    if end is None:
        return None
    failed = [_unittest_name(*words) for words in _UNITTEST_FAILED.findall(text)]
    outcomes = list(_unittest_outcomes(_UNITTEST_RULE.split(text, maxsplit=1)[0]))
    tally = _unittest_tally(outcomes, failed)
    sums = {word.strip(): int(number) for word, number in re.findall(r"([a-z ]+)=(\d+)", end[3])}
    started = sum(not name.endswith(_UNITTEST_FIXTURES) for name, _ in outcomes)
    agrees = (
        len(failed) == sums.get("failures", 0) + sums.get("errors", 0)
        and sum(outcome == "failed" for _, outcome in outcomes) == sums.get("unexpected successes", 0)
        and bool(tally.failed) == (end[2] == "FAILED")
        # Python 3.12.1 does not count skipped tests among those that ran.
        and int(end[1]) <= started <= int(end[1]) + tally.skipped
    )
    return tally if agrees else None


def _unittest_tally(outcomes: Sequence[tuple[str, Outcome]], failed: Iterable[str]) -> Tally:
    """The list of failures at the end takes precedence: the lines before it do not mention subtests."""
    failures: dict[str, Outcome] = dict.fromkeys(failed, "failed")
    unnamed = failures.keys() - {name for name, _ in outcomes}
    return _tally((*((name, "failed") for name in sorted(unnamed)), *((n, failures.get(n, o)) for n, o in outcomes)))


def _unittest_outcomes(text: str) -> Iterator[tuple[str, Outcome]]:
    """The outcome between the name of a test and the next one; there may also be output of the test."""
    starts = list(_UNITTEST_START.finditer(text))
    ends = [start.start() for start in starts[1:]]
    for start, end in zip(starts, (*ends, len(text)), strict=False):
        word = _UNITTEST_WORD.search(text[start.end() : end])
        yield _unittest_name(*start.groups()), _UNITTEST_OUTCOMES.get(word[1] if word else "", "passed")


def _unittest_name(test: str, where: str) -> str:
    return f"{where.removesuffix(f'.{test}')}::{test}"  # Python 3.11 repeats the test's name behind its class
