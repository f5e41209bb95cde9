"""What a run of the tests says about a change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from iterdev.core.verification import (
    OUTPUT_LIMIT,
    SuiteReport,
    Verification,
    compare,
    excerpt,
    failure_summary,
    judge,
)

ENOUGH = 0.95

NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True).map(tuple)


def counted(passed: str = "", failed: str = "", *, exit_code: int | None = None, skipped: int = 0) -> SuiteReport:
    """A report in which every letter is the name of a test."""
    code = int(bool(failed)) if exit_code is None else exit_code
    return SuiteReport(
        command="t", exit_code=code, passed=tuple(passed), failed=tuple(failed), skipped=skipped, counted=True
    )


def uncounted(exit_code: int, *, timed_out: bool = False) -> SuiteReport:
    return SuiteReport(command="t", exit_code=exit_code, timed_out=timed_out, counted=False)


NOT_THERE = SuiteReport(command="t", exit_code=127, missing_program="t", counted=False)


def passes(verification: Verification) -> bool:
    """Whether the tests say that the change is good."""
    return verification.passes(ENOUGH)


@st.composite
def reports(draw: st.DrawFn) -> SuiteReport:
    named = draw(st.booleans())
    names = draw(NAMES) if named else ()
    cut = draw(st.integers(0, len(names)))
    return SuiteReport(
        command="t",
        exit_code=draw(st.sampled_from((0, 1, 2, 5, -9))),
        timed_out=draw(st.booleans()),
        passed=names[:cut],
        failed=names[cut:],
        counted=named,
    )


@pytest.mark.parametrize(
    ("change", "base", "rate"),
    [
        pytest.param(counted("abc"), None, 1.0, id="all pass"),
        pytest.param(counted("abc", "d"), None, 0.75, id="one fails"),
        pytest.param(counted("abc", "d"), counted("abcd"), 0.75, id="one fails that passed before"),
        pytest.param(counted("abc", "d"), counted("abc", "d"), 1.0, id="the only failure is old"),
        pytest.param(counted("ab", "cd"), counted("abc", "d"), 2 / 3, id="an old failure beside a new one"),
        pytest.param(counted("", "d"), counted("", "d"), None, id="nothing but old failures"),
        pytest.param(counted("", "d"), counted("abc", "d"), 0.0, id="old failures only, the others are gone"),
        pytest.param(
            counted("ab", "m"), counted("abcdef"), 2 / 7, id="a module that does not load takes its tests along"
        ),
        pytest.param(counted("ab"), counted("abc"), 2 / 3, id="a test was removed"),
        pytest.param(counted("ab", skipped=1), counted("abc"), 2 / 3, id="a test is skipped now"),
        pytest.param(counted(exit_code=5), counted("abc"), 0.0, id="no test runs any more"),
        pytest.param(counted(exit_code=5), counted(exit_code=5), None, id="no test ran"),
        pytest.param(counted(exit_code=0), None, None, id="no test ran, and nobody minds"),
        pytest.param(counted(skipped=3), None, None, id="all skipped"),
        pytest.param(counted("abc", exit_code=1), counted("abc"), 0.0, id="fails without a failing test"),
        pytest.param(counted("abc", exit_code=1), counted("ab", exit_code=2), 1.0, id="always fails, tests are fine"),
        pytest.param(counted(exit_code=1), counted(exit_code=1), None, id="never started"),
        pytest.param(uncounted(0), None, 1.0, id="exit code 0"),
        pytest.param(uncounted(0), uncounted(1), 1.0, id="exit code 0 after 1"),
        pytest.param(uncounted(0), counted("abc"), None, id="exit code 0, but the report is gone"),
        pytest.param(NOT_THERE, NOT_THERE, None, id="the runner is not installed"),
        pytest.param(NOT_THERE, counted("abc"), 0.0, id="the runner is gone"),
        pytest.param(uncounted(2), None, 0.0, id="exit code 2"),
        pytest.param(uncounted(2), uncounted(0), 0.0, id="exit code 2 after 0"),
        pytest.param(uncounted(2), uncounted(1), None, id="exit code 2 after 1"),
        pytest.param(uncounted(5), None, 0.0, id="exit code 5 of an unknown runner"),
        pytest.param(uncounted(101), counted("abc", "d"), 0.0, id="no longer compiles, with an old failure"),
        pytest.param(uncounted(-9, timed_out=True), counted("abc"), 0.0, id="timed out"),
        pytest.param(uncounted(-9, timed_out=True), uncounted(1), 0.0, id="timed out after failing"),
        pytest.param(uncounted(-9, timed_out=True), uncounted(-9, timed_out=True), None, id="always timed out"),
        pytest.param(uncounted(1), uncounted(-9, timed_out=True), 0.0, id="failed after timing out"),
    ],
)
def test_the_pass_rate_is_about_what_the_change_can_be_blamed_for(
    change: SuiteReport, base: SuiteReport | None, rate: float | None
) -> None:
    verification = compare(change, base)

    assert verification.pass_rate == rate
    assert verification.note or rate not in {None, 0.0}


def test_failures_are_told_apart_by_what_they_were_before() -> None:
    verification = compare(counted("a", "bcd"), counted("ab", "c"))

    assert verification.failures == ("b", "d")
    assert verification.regressions == ("b",)
    assert verification.known_failures == ("c",)
    assert verification.total == 3


@pytest.mark.parametrize(
    ("change", "base", "rate"),
    [
        pytest.param(counted("a", "xyz"), counted("a", "xyz"), None, id="most failed before"),
        pytest.param(counted("abc", "xyz"), counted("abc", "xyz"), 1.0, id="half of them"),
        pytest.param(counted("a", "bxyz"), counted("ab", "xyz"), 0.5, id="one of the others is broken"),
        pytest.param(counted("", "bxyz"), counted("b", "xyz"), 0.0, id="all of the others are broken"),
    ],
)
def test_a_few_tests_do_not_speak_for_those_that_failed_before(
    change: SuiteReport, base: SuiteReport, rate: float | None
) -> None:
    verification = compare(change, base)

    assert verification.pass_rate == rate
    assert ("3 of 4" in verification.note) == (rate is None)


def test_missing_tests_are_named() -> None:
    verification = compare(counted("a"), counted("abc"))

    assert verification.missing == ("b", "c")
    assert verification.note == "Tests that passed before the change did not run."


def named(*passed: str, failed: tuple[str, ...] = (), folder: str = "", doubt: str = "") -> SuiteReport:
    code = int(bool(failed))
    return SuiteReport(
        command="t", folder=folder, exit_code=code, passed=passed, failed=failed, counted=True, doubt=doubt
    )


@pytest.mark.requirement("R90")
@pytest.mark.parametrize(
    ("change", "base"),
    [
        pytest.param(named(*map(str, range(99)), failed=("x",)), named(*map(str, range(99)), "x"), id="fails now"),
        pytest.param(named(*map(str, range(99))), named(*map(str, range(99)), "x"), id="is missing now"),
    ],
)
def test_a_regression_among_many_tests_is_never_a_pass(change: SuiteReport, base: SuiteReport) -> None:
    verification = compare(change, base)

    assert verification.pass_rate == 0.99
    assert verification.regressed
    assert not passes(verification)


@pytest.mark.parametrize(
    ("before", "now", "missing"),
    [
        pytest.param(("m::test_a[0x7f1]",), ("m::test_a[0x7f2]",), (), id="a parameter that differs from run to run"),
        pytest.param(("a.T::test_x",), ("b.T::test_x",), (), id="moved to another file"),
        pytest.param(("m::test_a[1]", "m::test_a[2]"), ("m::test_a[1]",), ("m::test_a[2]",), id="a case was removed"),
        pytest.param(("m::test_a", "m::test_b"), ("m::test_a", "m::test_c"), ("m::test_b",), id="replaced"),
        pytest.param(("s > a > does it",), ("s > b > does it",), (), id="moved to another group"),
    ],
)
def test_a_test_is_missing_unless_as_many_of_its_name_run(
    before: tuple[str, ...], now: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    assert compare(named(*now), named(*before)).missing == missing


def test_a_doubt_about_a_run_is_never_a_pass() -> None:
    doubted = named("a", "b", doubt='the tests imported `calc` from "/elsewhere/calc.py"')

    verification = compare(doubted, named("a", "b"))

    assert verification.pass_rate is None
    assert verification.note == 'the tests imported `calc` from "/elsewhere/calc.py".'


def test_the_reason_why_nothing_was_measured_names_the_command_and_the_error() -> None:
    output = "E   ModuleNotFoundError: No module named 'attr'\n=== 1 error in 0.1s ==="
    broken = replace(named(failed=("tests.test_a",)), output=output)

    note = compare(broken, broken).note

    assert note == (
        "every test of `t` that ran had failed before the change too: ModuleNotFoundError: No module named 'attr'."
    )


@pytest.mark.parametrize(
    ("base", "first"),
    [
        pytest.param([], True, id="no suite before"),
        pytest.param([counted(exit_code=5)], True, id="no test before"),
        pytest.param([uncounted(1)], True, id="nothing could be run before"),
        pytest.param([counted("a")], False, id="a test before"),
        pytest.param([uncounted(0)], False, id="a suite that only has an exit code"),
    ],
)
def test_the_first_tests_of_a_repository_are_told_apart(base: list[SuiteReport], first: bool) -> None:  # noqa: FBT001
    assert judge([named("a", "b")], base).first is first


def test_the_tests_that_hung_are_named() -> None:
    hung = replace(uncounted(-9, timed_out=True), hung=("tests.T::test_wait",))

    assert compare(hung, named("a")).note == (
        "`t` did not finish in time; tests.T::test_wait did not end (exit code -9)."
    )


def in_folders(**suites: SuiteReport) -> list[SuiteReport]:
    return [replace(report, folder=folder) for folder, report in suites.items()]


@pytest.mark.parametrize(
    ("change", "concerned", "rate"),
    [
        pytest.param({"a": counted("ab"), "b": counted("cd")}, {"a"}, 1.0, id="all pass"),
        pytest.param({"a": counted("ab"), "b": counted("c", "d")}, {"a"}, 0.75, id="the other one fails"),
        pytest.param({"a": NOT_THERE, "b": counted("cd")}, {"a"}, None, id="the one that matters says nothing"),
        pytest.param({"a": NOT_THERE, "b": counted("cd")}, {"b"}, 1.0, id="another one says nothing"),
        pytest.param({"a": NOT_THERE, "b": counted("cd")}, None, None, id="every one matters"),
        pytest.param({"a": NOT_THERE, "b": counted("c", "d")}, {"a"}, 0.5, id="nothing said, and one fails"),
        pytest.param({"a": counted("abcdefgh"), "b": uncounted(1)}, {"a"}, 0.0, id="one fails as a whole"),
    ],
)
def test_suites_are_judged_together(
    change: dict[str, SuiteReport], concerned: set[str] | None, rate: float | None
) -> None:
    base = in_folders(a=counted("ab") if change["a"].counted else NOT_THERE, b=counted("cd"))

    assert judge(in_folders(**change), base, concerned).pass_rate == rate


def test_the_tests_of_several_suites_carry_their_folder() -> None:
    verification = judge(in_folders(a=counted("x", "y"), b=counted("x")), in_folders(a=counted("xy"), b=counted("xz")))

    assert verification.regressions == ("a: y",)
    assert verification.missing == ("b: z",)
    assert verification.command == "cd a && t; cd b && t"


@pytest.mark.parametrize(
    ("passed", "total", "enough"), [(19, 20, True), (57, 60, True), (94, 99, False), (0, 1, False)]
)
def test_95_percent_are_enough(passed: int, total: int, enough: bool) -> None:  # noqa: FBT001
    names = tuple(map(str, range(total)))
    change = SuiteReport(command="t", exit_code=1, passed=names[:passed], failed=names[passed:], counted=True)

    assert passes(compare(change, None)) is enough


def test_nothing_verified_is_not_a_pass() -> None:
    assert not passes(Verification(note="No test command was found."))


@given(change=reports(), base=st.none() | reports())
def test_every_failure_is_either_blamed_or_known(change: SuiteReport, base: SuiteReport | None) -> None:
    verification = compare(change, base)

    assert set(verification.failures) | set(verification.known_failures) == set(change.failed)
    assert not set(verification.failures) & set(base.failed if base else ())
    assert set(verification.regressions) <= set(verification.failures)


@given(change=reports(), base=st.none() | reports())
def test_a_pass_is_never_claimed_for_a_run_that_went_wrong(change: SuiteReport, base: SuiteReport | None) -> None:
    verification = compare(change, base)
    unexplained = change.exit_code != 0 and not change.failed

    assert verification.pass_rate is None or 0 <= verification.pass_rate <= 1
    assert not (passes(verification) and base is None and (unexplained or change.timed_out))
    assert not (passes(verification) and verification.failures and len(change.passed) < 19)


@pytest.mark.parametrize(
    ("raw", "readable"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("10%\r50%\r\nend\r\n", "10%\n50%\nend"),
        ("a\x00b\x9b\tc\x1b", "ab\tc"),
    ],
)
def test_control_codes_are_removed(raw: str, readable: str) -> None:
    assert excerpt(raw) == readable


def test_the_end_of_a_long_output_is_kept() -> None:
    kept = excerpt("x" * OUTPUT_LIMIT + "the end")

    assert len(kept) == OUTPUT_LIMIT
    assert kept.startswith("…x")
    assert kept.endswith("the end")


def test_one_output_does_not_crowd_out_another() -> None:
    kept = excerpt("short", "", "y" * OUTPUT_LIMIT)

    assert kept.startswith("short\n…y")
    assert len(kept) <= OUTPUT_LIMIT


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Verification(command="pytest", failures=("test_a",)), "`pytest`: 1 test: test_a"),
        (Verification(command="pytest", failures=("b", "a"), regressions=("a",)), "`pytest`: 1 test: a"),
        (Verification(command="pytest", failures=tuple("abcdefg")), "`pytest`: 7 tests: a, b, c, d, e and 2 more"),
        (Verification(command="make", note="`make` failed (exit code 2)."), "`make` failed (exit code 2)"),
        (Verification(command="make"), "`make`"),
    ],
)
def test_a_failure_is_summed_up_by_its_tests_or_by_what_is_known_of_the_run(found: Verification, words: str) -> None:
    assert failure_summary(found) == words
