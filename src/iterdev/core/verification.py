"""What a run of the tests says about a change, given what the same tests said before it.

It works on reports; running the tests and reading the output of runners is done elsewhere.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.formatting import counted, plain

TEST_FIXES = 5
"""How often an agent is asked to fix failing tests in one attempt."""
OUTPUT_LIMIT = 4000
READ_LIMIT = 25 * OUTPUT_LIMIT
"""Characters of an output that are examined; some of them may be control codes."""
CAUSE_LIMIT = 160
NAMED = 5
"""Tests that a summary names."""

_NO_TESTS = 5
"""The exit code with which pytest, and unittest since Python 3.12, say that there was nothing to run."""

_PARAMETERS = re.compile(r"\[[^\[]*\]$|\([^(]*\)$")
_PLACE = re.compile(r"^.*(?:::|/|\.(?=\w+$)| > )")
_TELLING = re.compile(r"(?:Error|Exception)\b|(?i:error:|no module named|not found|cannot find|no such file|fatal:)")


class SuiteReport(Struct, frozen=True, kw_only=True):
    """One run of a test suite, as it was seen."""

    command: str
    folder: str = ""
    """Where the suite is, relative to the top of the repository."""
    exit_code: int
    timed_out: bool = False
    hung: tuple[str, ...] = ()
    """The tests that were running when the suite was ended because it took too long."""
    missing_program: str = ""
    """The program without which the suite could not start."""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    """Tests that failed first and passed when they were run again alone; they are among those that passed."""
    skipped: int = 0
    counted: bool
    """True when the runner's own report named the tests, False when only the exit code is known."""
    doubt: str = ""
    """Why the run says nothing about the change, such as code that was imported from elsewhere."""
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
    missing: tuple[str, ...] = ()
    """Tests that passed before the change and did not run with it."""
    known_failures: tuple[str, ...] = ()
    """Failing tests that failed before the change too, and are not blamed on it."""
    flaky: tuple[str, ...] = ()
    """Tests that failed and then passed with the same code; they are not blamed on the change."""
    first: bool = False
    """No test passed before the change: it brought the first ones."""
    environment: tuple[str, ...] = ()
    """What the environment of the tests was made from."""
    note: str = ""
    output: str = ""

    @property
    def regressed(self) -> bool:
        """Whether something that worked before is broken or cannot be shown any more, whatever the rate."""
        return bool(self.regressions or self.missing)

    def passes(self, rate: float) -> bool:
        return self.pass_rate is not None and self.pass_rate >= rate and not self.regressed


class Measurement(Struct, frozen=True, kw_only=True):
    """The test runs of one attempt."""

    verification: Verification
    baseline: tuple[SuiteReport, ...] = ()
    """The test runs on the session's base commit, when this attempt made them."""
    iterations: int = 0
    """How often the agent was asked to fix failing tests."""


def judge(
    changes: Sequence[SuiteReport], bases: Sequence[SuiteReport], concerned: Collection[str] | None = None
) -> Verification:
    """Judges a change by all suites of a repository.

    Each suite that the change concerns (by its folder; None: all of them) has to say something: the others cannot speak
    for it. A suite that fails is never outvoted.
    """
    first = any(one.passed for one in changes) and not any(_shows_something(base) for base in bases)
    return replace(_judged_together(changes, bases, concerned), first=first)


def _shows_something(base: SuiteReport) -> bool:
    return bool(base.passed) or (not base.counted and base.exit_code == 0)


def _judged_together(
    changes: Sequence[SuiteReport], bases: Sequence[SuiteReport], concerned: Collection[str] | None
) -> Verification:
    before = {(base.folder, base.command): base for base in bases}
    compared = [(one.folder, compare(one, before.get((one.folder, one.command)))) for one in changes]
    if len(compared) == 1:
        return compared[0][1]
    parts = [_in_folder(part, folder) for folder, part in compared]
    measured = [part for part in parts if part.pass_rate is not None]
    heard = [part.pass_rate is not None or folder not in (concerned or {folder}) for folder, part in compared]
    failing = any(part.regressed or part.failures or not part.pass_rate for part in measured)
    notes = dict.fromkeys(part.note for part in sorted(parts, key=lambda part: part.pass_rate is not None) if part.note)
    return Verification(
        command="; ".join(str(part.command) for part in parts),
        pass_rate=_rate_of_all(measured) if failing or all(heard) else None,
        total=sum(part.total for part in measured),
        failures=_joined(part.failures for part in parts),
        regressions=_joined(part.regressions for part in parts),
        missing=_joined(part.missing for part in parts),
        known_failures=_joined(part.known_failures for part in parts),
        flaky=_joined(part.flaky for part in parts),
        note=" ".join(notes),
        output=excerpt(*(part.output for part in parts if part.failures or not part.pass_rate)),
    )


def _rate_of_all(parts: Sequence[Verification]) -> float | None:
    """The part of all tests that pass; none if one of the suites failed as a whole.

    A suite of which only the exit code is known counts as one test.
    """
    if not all(part.pass_rate for part in parts):
        return 0.0
    weights = [max(part.total, 1) for part in parts]
    passed = sum((part.pass_rate or 0) * weight for part, weight in zip(parts, weights, strict=True))
    return passed / sum(weights) if parts else None


def _joined(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(name for part in names for name in part)


def _in_folder(part: Verification, folder: str) -> Verification:
    """The same with names that say where the suite is."""
    if not folder:
        return part
    listed = ("failures", "regressions", "missing", "known_failures", "flaky")
    names = {field: tuple(f"{folder}: {name}" for name in getattr(part, field)) for field in listed}
    note = f"{folder}: {part.note}" if part.note else ""
    return replace(part, **names, note=note, command=f"cd {folder} && {part.command}")


def compare(change: SuiteReport, base: SuiteReport | None) -> Verification:
    """Judges the change by one suite, without blaming it for what was broken before."""
    before = base or SuiteReport(command=change.command, exit_code=0, counted=False)
    failures = _without(change.failed, before.failed)
    missing = _missing(change, before) if change.counted else ()
    total = len(change.passed) + len(failures) + len(missing)
    known = _without(change.failed, failures)
    rate, note = _overruled(change, before) or _by_names(change, total, missing, known)
    return Verification(
        command=change.command,
        pass_rate=rate,
        total=total,
        failures=failures,
        regressions=_without(failures, _without(failures, before.passed)),
        missing=missing,
        known_failures=known,
        flaky=change.flaky,
        note=note,
        output=change.output,
    )


def _without(tests: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    left_out = frozenset(others)
    return tuple(test for test in tests if test not in left_out)


def _missing(change: SuiteReport, before: SuiteReport) -> tuple[str, ...]:
    """The tests that passed before and did not run now.

    The parameters in a test's name may differ from run to run, and a test may be moved to another file: neither loses a
    test as long as as many of the same name run.
    """
    ran = (*change.passed, *change.failed)
    gone = _without(before.passed, ran)
    if not gone:
        return ()
    new = Counter(_function(test) for test in _without(ran, (*before.passed, *before.failed)))
    missing = []
    for test in gone:
        if new[_function(test)]:
            new[_function(test)] -= 1
        else:
            missing.append(test)
    return tuple(missing)


def _function(test: str) -> str:
    """The name of a test without its place and its parameters."""
    return _PLACE.sub("", _PARAMETERS.sub("", test))


def _overruled(change: SuiteReport, before: SuiteReport) -> tuple[float | None, str] | None:
    """The verdict where the way in which the run ended matters more than the tests that it named."""
    if change.doubt:
        return None, f"{change.doubt}."
    problem = _problem(change)
    if problem and (not _problem(before) or change.timed_out != before.timed_out):
        return 0.0, f"`{change.command}` {problem} (exit code {change.exit_code}){_cause(change)}."
    if problem and not change.passed:
        return None, f"`{change.command}` {problem}, as it did before the change{_cause(change)}."
    if change.counted:
        return None
    if before.counted and before.passed and before.command == change.command:
        return None, f"`{change.command}` named its tests before the change, and names none now."
    return 1.0, f"Only the exit code of `{change.command}` is known."


def _problem(report: SuiteReport) -> str:
    """How a run failed, if no failing test explains it."""
    if report.timed_out:
        hung = f"; {', '.join(report.hung)} did not end" if report.hung else ""
        return f"did not finish in time{hung}"
    if report.missing_program:
        return f"could not be started without {report.missing_program}"
    if report.exit_code == 0 or report.failed:
        return ""
    no_tests = report.counted and not report.passed and report.exit_code == _NO_TESTS
    return "" if no_tests else "failed without naming a failing test"


def _by_names(
    change: SuiteReport, total: int, missing: tuple[str, ...], known: tuple[str, ...]
) -> tuple[float | None, str]:
    if total == 0:
        return None, _nothing_measured(change)
    if total == len(change.passed) < len(known):
        # Each may be a file that cannot be loaded, with all of its tests.
        most = f"most tests of `{change.command}` failed before the change too"
        return None, f"{most}, {len(known)} of {total + len(known)}{_cause(change)}."
    notes = (
        f"`{change.command}` {_problem(change)}, as it did before the change." if _problem(change) else "",
        "Tests that passed before the change did not run." if missing else "",
    )
    return len(change.passed) / total, " ".join(filter(None, notes))


def _nothing_measured(change: SuiteReport) -> str:
    if change.failed:
        return f"every test of `{change.command}` that ran had failed before the change too{_cause(change)}."
    return f"`{change.command}` skipped every test." if change.skipped else f"`{change.command}` ran no test."


def _cause(report: SuiteReport) -> str:
    """The line of the output that most likely says why nothing could be run."""
    lines = [line.strip() for line in report.output.splitlines()]
    telling = [line for line in lines if _TELLING.search(line)] or [line for line in lines if line][-1:]
    return f": {telling[-1].removeprefix('E ').strip()[:CAUSE_LIMIT].rstrip('.')}" if telling else ""


def failure_summary(found: Verification) -> str:
    """The command and the tests that fail, in a few words; without names of tests, what is known of the run."""
    tests = (*found.regressions, *found.missing) or found.failures
    if not tests:
        return found.note.rstrip(".") or f"`{found.command}`"
    more = f" and {len(tests) - NAMED} more" if len(tests) > NAMED else ""
    return f"`{found.command}`: {counted(len(tests), 'test')}: {', '.join(tests[:NAMED])}{more}"


def excerpt(*texts: str) -> str:
    """The ends of some outputs, readable, each with an equal share of the limit."""
    ends = (text[-READ_LIMIT:] for text in texts)
    cleaned = (plain(re.sub(r"\r+\n?", "\n", text)).strip("\n") for text in ends)
    readable = [text for text in cleaned if text]
    share = OUTPUT_LIMIT // max(len(readable), 1)
    return "\n".join(text if len(text) <= share else f"…{text[1 - share :]}" for text in readable)
