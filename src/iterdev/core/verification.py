"""What a run of the tests says about a change, given what the same tests said before it.

It works on reports; running the tests and reading the output of runners is done elsewhere.
"""

import re

from msgspec import Struct

OUTPUT_LIMIT = 4000

_NO_TESTS = 5
"""The exit code with which pytest, and unittest since Python 3.12, say that there was nothing to run."""

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


class SuiteReport(Struct, frozen=True, kw_only=True):
    """One run of a test suite, as it was seen."""

    command: str
    exit_code: int
    timed_out: bool = False
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: int = 0
    counted: bool
    """True when the runner's own report named the tests, False when only the exit code is known."""
    output: str = ""


class Verification(Struct, frozen=True, kw_only=True):
    """What is known about a change; without a command, nothing was verified."""

    command: str | None = None
    pass_rate: float | None = None
    """Between 0 and 1; None when the tests say nothing about the change, for the reason in `note`."""
    total: int = 0
    """How many tests the rate is about."""
    failures: tuple[str, ...] = ()
    """Failing tests that are blamed on the change."""
    regressions: tuple[str, ...] = ()
    """Those of the failures that passed before it."""
    known_failures: tuple[str, ...] = ()
    """Failing tests that failed before the change too, and are not blamed on it."""
    note: str = ""
    output: str = ""


class Measurement(Struct, frozen=True, kw_only=True):
    """The test runs of one attempt."""

    verification: Verification
    baseline: SuiteReport | None = None
    """The test run on the session's base commit, when this attempt made it."""
    iterations: int = 0
    """How often the agent was asked to fix failing tests."""


def compare(change: SuiteReport, base: SuiteReport | None) -> Verification:
    """Judges the change by its own tests, without blaming it for what was broken before."""
    before = base or SuiteReport(command=change.command, exit_code=0, counted=False)
    failures = _without(change.failed, before.failed)
    lost = _without(before.passed, change.passed + change.failed) if change.counted else ()
    # A module that can no longer be loaded is a single failure, however many tests went with it.
    total = len(change.passed) + len(failures) + (len(lost) if failures else 0)
    rate, note = _overruled(change, before) or _by_names(change, total, len(lost))
    return Verification(
        command=change.command,
        pass_rate=rate,
        total=total,
        failures=failures,
        regressions=_without(failures, _without(failures, before.passed)),
        known_failures=_without(change.failed, failures),
        note=note,
        output=change.output,
    )


def _without(tests: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    left_out = frozenset(others)
    return tuple(test for test in tests if test not in left_out)


def _overruled(change: SuiteReport, before: SuiteReport) -> tuple[float | None, str] | None:
    """The verdict where the way in which the run ended matters more than the tests that it named."""
    problem = _problem(change)
    if problem and problem != _problem(before):
        return 0.0, f"The test command {problem} (exit code {change.exit_code})."
    if problem and not change.passed:
        return None, f"The test command {problem}, as it did before the change."
    if change.counted:
        return None
    if before.counted and before.passed and before.command == change.command:
        return None, "The test command named its tests before the change, and names none now."
    return 1.0, "Only the exit code of the test command is known."


def _problem(report: SuiteReport) -> str:
    """How a run failed, if no failing test explains it."""
    if report.timed_out:
        return "did not finish in time"
    if report.exit_code == 0 or report.failed:
        return ""
    no_tests = report.counted and not report.passed and report.exit_code == _NO_TESTS
    return "" if no_tests else "failed without naming a failing test"


def _by_names(change: SuiteReport, total: int, lost: int) -> tuple[float | None, str]:
    if not change.passed and not change.failed:
        return None, "Every test was skipped." if change.skipped else "No test ran."
    if total == 0:
        return None, "Every test that ran had failed before the change too."
    notes = (
        f"The test command {_problem(change)}, as it did before the change." if _problem(change) else "",
        f"Tests that passed before the change and did not run now: {lost}." if lost else "",
    )
    return len(change.passed) / total, " ".join(filter(None, notes))


def excerpt(*texts: str) -> str:
    """The ends of some outputs, readable, each with an equal share of the limit."""
    cleaned = (_CONTROL.sub("", re.sub(r"\r+\n?", "\n", text)).strip("\n") for text in texts)
    readable = [text for text in cleaned if text]
    share = OUTPUT_LIMIT // max(len(readable), 1)
    return "\n".join(text if len(text) <= share else f"…{text[1 - share :]}" for text in readable)
