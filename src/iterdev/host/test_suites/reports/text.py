"""Reads runners that only print text: cargo, uvu, and make with automake's test logs."""

import re
from collections.abc import Iterator, Mapping

from iterdev.host.test_suites.reports.tally import Outcome, Tally, tally

_NUMBER = r"(\d{1,9})"

_CARGO_RESULT = re.compile(rf"test result: \w+\. {_NUMBER} passed; {_NUMBER} failed; {_NUMBER} ignored;")
_CARGO_BINARY = re.compile(r"\s+Running (?:unittests )?.*[/\\(]([^/\\()]+?)(?:-[0-9a-f]{16})?(?:\.exe)?\)")
_CARGO_DOCS = re.compile(r"\s+Doc-tests (\S+)")
_CARGO_OUTCOMES: Mapping[str, Outcome] = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
_CARGO_OUTCOME = re.compile(r"\s*(ok|FAILED|ignored)(?=[\s,]|$)")
_CARGO_DETAIL = re.compile(r" \(line \d{1,9}\)| - should panic$| - compile fail$| - compile$")
_CARGO_SLOW = " has been running for over "


def cargo(text: str) -> Tally | None:
    """Parses the output of `cargo test`, standard error included; its sums must agree."""
    counted = tally(_cargo_tests(text))
    sums = [tuple(map(int, result.groups())) for line in text.splitlines() if (result := _CARGO_RESULT.match(line))]
    if counted is None:
        return None
    found = (len(counted.passed), len(counted.failed), counted.skipped)
    return counted if sums and found == tuple(map(sum, zip(*sums, strict=True))) else None


def _cargo_tests(text: str) -> Iterator[tuple[str, Outcome]]:
    binary = ""
    for line in text.splitlines():
        if where := _CARGO_BINARY.fullmatch(line) or _CARGO_DOCS.fullmatch(line):
            binary = where[1]
        elif line.startswith("test "):
            name, found, word = line.removeprefix("test ").rpartition(" ... ")
            # A reason, a time or the limit of it may follow.
            if found and (said := _CARGO_OUTCOME.match(word)):
                test = "::".join(part for part in (binary, _CARGO_DETAIL.sub("", name)) if part)
                yield test, _CARGO_OUTCOMES[said[1]]


def cargo_unfinished(text: str) -> tuple[str, ...]:
    """The tests that libtest said were slow, and that had not ended."""
    slow = [line.removeprefix("test ").partition(_CARGO_SLOW)[0] for line in text.splitlines() if _CARGO_SLOW in line]
    ended = {name.partition("::")[2] or name for name, _ in _cargo_tests(text)} | {n for n, _ in _cargo_tests(text)}
    return tuple(name for name in dict.fromkeys(slow) if name not in ended)


_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_UVU_FILE = re.compile(r"\S+\.[cm]?[jt]sx?")
_UVU_COUNT = re.compile(rf"{_NUMBER} / {_NUMBER}")
_UVU_SUM = re.compile(rf"^[ \t]+(Total|Passed|Skipped):[ \t]+{_NUMBER}$", re.MULTILINE)
_UVU_MARKS = re.compile("[•✘]")


def uvu(text: str) -> Tally | None:
    """Parses the output of uvu; it names only the tests that failed, so the others are numbered."""
    plain = _ESCAPE.sub("", text)
    sums = {word: int(number) for word, number in _UVU_SUM.findall(plain)}
    if sums.keys() != {"Total", "Passed", "Skipped"}:
        return None
    counted = tally(_uvu_tests(plain))
    if counted is None:
        return None
    agrees = (len(counted.passed), len(counted.failed)) == (sums["Passed"], sums["Total"] - sums["Passed"])
    return Tally(passed=counted.passed, failed=counted.failed, skipped=sums["Skipped"]) if agrees else None


def _uvu_tests(text: str) -> Iterator[tuple[str, Outcome]]:
    file = ""
    for line in text.splitlines():
        before, _, count = line.rstrip().rpartition("(")
        if _UVU_FILE.fullmatch(line):
            file = line
        elif passed := _UVU_COUNT.fullmatch(count.removesuffix(")")):
            suite = _UVU_MARKS.split(before, maxsplit=1)[0].strip() if line.startswith(" ") else ""
            where = " > ".join(part for part in (file, suite) if part)
            yield from ((f"{where} #{number + 1}", "passed") for number in range(min(int(passed[1]), 100_000)))
        elif line.lstrip().startswith("FAIL ") and line.endswith('"'):
            suite, _, name = line.lstrip().removeprefix("FAIL ").partition('"')
            yield " > ".join(part for part in (file, suite.strip(), name.removesuffix('"')) if part), "failed"


_TRS_OUTCOMES: Mapping[str, Outcome] = {
    "PASS": "passed",
    "XFAIL": "passed",
    "SKIP": "skipped",
    "FAIL": "failed",
    "XPASS": "failed",
    "ERROR": "failed",
}
_TRS_RESULT = re.compile(r"^:test-result: (PASS|XFAIL|SKIP|FAIL|XPASS|ERROR)(?: (.*))?$", re.MULTILINE)


_SERIAL_RESULT = re.compile(r"^(PASS|XFAIL|SKIP|FAIL|XPASS|ERROR): (\S.*)$", re.MULTILINE)


def automake(files: Mapping[str, str], stdout: str = "") -> Tally | None:
    """Reads the `.trs` files of automake's parallel test harness, or what the older serial one prints."""
    if not files:
        printed = [(name, _TRS_OUTCOMES[word]) for word, name in _SERIAL_RESULT.findall(stdout)]
        return tally(printed) if printed else None
    outcomes: list[tuple[str, Outcome]] = []
    for name, text in files.items():
        results = _TRS_RESULT.findall(text)
        if not results:
            return None
        test = name.removesuffix(".trs")
        outcomes += ((f"{test} > {detail}" if detail else test, _TRS_OUTCOMES[word]) for word, detail in results)
    return tally(outcomes) if outcomes else None
