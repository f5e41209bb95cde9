"""Runs the tests of a package as its documentation says, and reads from their output how many there were."""

import re
from pathlib import Path

import fetch
import trial
from packages import Package

PATTERNS = {
    "pytest": r"^=* ?(?:\d+ \w+, )*(\d+) (?:passed|failed|errors?)\b(?=.* in [\d.]+s)",
    "unittest": r"^Ran (\d+) tests? in",
    "TAP": r"^# (?:pass|fail)\s+(\d+)",
    "mocha": r"^\s+(\d+) (?:passing|failing)",
    "jest": r"^Tests:.*?(\d+) (?:passed|failed)",
    "ava, automake": r"^\s*(\d+) tests? (?:passed|failed)",
    "cargo": r"^test result: \w+\. (\d+) passed; (\d+) failed",
    "ctest": r"tests passed, \d+ tests failed out of (\d+)",
    "meson": r"^(?:Ok|Fail): +(\d+)",
    "prove": r"^Files=\d+, Tests=(\d+)",
    "rspec": r"^(\d+) examples?, \d+ failures?",
    "minitest": r"^(\d+) (?:runs|tests), \d+ assertions",
    "phpunit": r"^(?:OK \(|Tests: )(\d+)",
}
"""The closing lines in which runners count the tests that passed and failed, by the runner."""
GO = r"^\s*--- (?:PASS|FAIL): (\S+)"
"""A line for each test; one with subtests only repeats how these ended."""
SKIPPED = {
    "unittest": r"^(?:OK|FAILED) \(.*skipped=(\d+)",
    "rspec": r"^\d+ examples?, \d+ failures?, (\d+) pending",
    "minitest": r"^\d+ runs, .*, (\d+) skips",
    "phpunit": r"^Tests: .*Skipped: (\d+)",
}
"""How many of those were skipped, where they are among them."""
SKIPPED_POINT = r"^(?:not )?ok \d+.*# (?:skip|todo)\b"
"""`prove -v` shows each, and counts them with the others."""


def described(package: Package, cache: Path, scratch: Path) -> str:
    """The number of tests without the change that breaks the package, and whether they notice it."""
    top = fetch.repository(fetch.fetched(package, cache), scratch / "checkout")
    variables = trial.user(cache, scratch)
    prepared = trial.by_hand(package.setup, top, variables)
    variables |= trial.active(top, variables)
    before = trial.by_hand(package.test, top, variables)
    package.breaking.apply(top)
    after = trial.by_hand(package.test, top, variables)
    (cache / "by-hand.log").write_text(prepared.stdout + before.stdout + after.stdout, encoding="utf-8")
    noticed = "noticed" if after.returncode and after.returncode != before.returncode else "not noticed by exit code"
    return f"{package.name}: {counted(before.stdout)} tests, exit code {before.returncode}, regression {noticed}"


def counted(output: str) -> dict[str, int]:
    """By runner."""
    output = re.sub(r"\x1b\[[0-9;]*m", "", output)
    found = {runner: re.findall(pattern, output, re.MULTILINE) for runner, pattern in PATTERNS.items()}
    counts = {runner: sum(map(_number, numbers)) for runner, numbers in found.items() if numbers}
    if names := re.findall(GO, output, re.MULTILINE):
        counts["go"] = sum(not any(other.startswith(f"{name}/") for other in names) for name in names)
    for runner, pattern in SKIPPED.items():
        if runner in counts:
            counts[runner] -= sum(map(int, re.findall(pattern, output, re.MULTILINE)))
    if "prove" in counts:
        counts["prove"] -= len(re.findall(SKIPPED_POINT, output, re.MULTILINE | re.IGNORECASE))
    return counts


def _number(groups: str | tuple[str, ...]) -> int:
    texts = (groups,) if isinstance(groups, str) else groups
    return sum(map(int, texts))
