"""What test runners write, as recorded from real ones."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from iterdev.host.test_suites.reports import json as json_reports
from iterdev.host.test_suites.reports import text as text_reports
from iterdev.host.test_suites.reports import xml
from iterdev.host.test_suites.reports.events import events, unfinished
from iterdev.host.test_suites.reports.tally import CHARACTERS, NAME_LIMIT, TESTS, Tally, tally
from iterdev.host.test_suites.reports.tap import harness, tap, tap_output
from iterdev.host.test_suites.runners import RUNNERS, Results
from iterdev.host.test_suites.suite import Kind

PYTEST = """<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests">
<testsuite name="pytest" errors="1" failures="1" skipped="1" tests="6" time="0.052"><properties />
<testcase classname="tests.test_p" name="test_ok" time="0.000" />
<testcase classname="tests.test_p.TestC" name="test_m[a b]" time="0.001" />
<testcase classname="tests.test_p" name="test_td" time="0.000"><failure message="assert 0">E</failure></testcase>
<testcase classname="tests.test_p" name="test_td" time="0.000"><error message="failed on teardown">E</error></testcase>
<testcase classname="tests.test_p" name="test_x" time="0.000"><skipped type="pytest.xfail" message="" /></testcase>
</testsuite></testsuites>"""

PYTEST_COLLECTION = """<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests">
<testsuite name="pytest" errors="1" failures="0" skipped="0" tests="1" time="0.115">
<testcase classname="" name="tests.test_q" time="0.000"><error message="collection failure">E</error></testcase>
</testsuite></testsuites>"""

JEST = json.dumps(
    {
        "numTotalTests": 4,
        "success": False,
        "testResults": [
            {
                "assertionResults": [
                    {"ancestorTitles": ["d"], "fullName": "d ok", "status": "passed", "title": "ok", "duration": 3},
                    {"ancestorTitles": ["d"], "fullName": "d bad", "status": "failed", "title": "bad"},
                    {"ancestorTitles": ["d"], "fullName": "d sk", "status": "pending", "title": "sk"},
                    {"ancestorTitles": ["d"], "fullName": "d td", "status": "todo", "title": "td"},
                ],
                "message": "",
                "name": "src/a.test.js",
                "status": "failed",
            },
            {"assertionResults": [], "message": "x", "name": "src/b.test.js", "status": "failed"},
        ],
    }
)

GO = """\
{"ImportPath":"example.com/g/bad [example.com/g/bad.test]","Action":"build-output","Output":"b_test.go:3: undefined\\n"}
{"ImportPath":"example.com/g/bad [example.com/g/bad.test]","Action":"build-fail"}
{"Action":"start","Package":"example.com/g"}
{"Action":"start","Package":"example.com/g/bad"}
{"Action":"output","Package":"example.com/g/bad","Output":"FAIL\\texample.com/g/bad [build failed]\\n"}
{"Action":"fail","Package":"example.com/g/bad","Elapsed":0,"FailedBuild":"example.com/g/bad [example.com/g/bad.test]"}
{"Action":"start","Package":"example.com/g/sub"}
{"Action":"skip","Package":"example.com/g/sub","Elapsed":0}
{"Action":"run","Package":"example.com/g","Test":"TestOk"}
{"Action":"pass","Package":"example.com/g","Test":"TestOk","Elapsed":0}
{"Action":"run","Package":"example.com/g","Test":"TestSkip"}
{"Action":"skip","Package":"example.com/g","Test":"TestSkip","Elapsed":0}
{"Action":"run","Package":"example.com/g","Test":"TestSub"}
{"Action":"run","Package":"example.com/g","Test":"TestSub/a"}
{"Action":"pass","Package":"example.com/g","Test":"TestSub/a","Elapsed":0}
{"Action":"run","Package":"example.com/g","Test":"TestSub/b/c"}
{"Action":"fail","Package":"example.com/g","Test":"TestSub/b/c","Elapsed":0}
{"Action":"fail","Package":"example.com/g","Test":"TestSub","Elapsed":0}
{"Action":"fail","Package":"example.com/g","Elapsed":0.003}
"""

GO_BEFORE_1_24 = """\
# example.com/g/bad [example.com/g/bad.test]
bad/b_test.go:3:28: undefined: undefined
{"Action":"run","Package":"example.com/g","Test":"TestOk"}
{"Action":"pass","Package":"example.com/g","Test":"TestOk","Elapsed":0}
{"Action":"pass","Package":"example.com/g","Elapsed":0.003}
FAIL	example.com/g/bad [build failed]
"""

GO_CUT_SHORT = """\
{"Action":"start","Package":"example.com/g"}
{"Action":"run","Package":"example.com/g","Test":"TestOk"}
{"Action":"pass","Package":"example.com/g","Test":"TestOk","Elapsed":0}
{"Action":"run","Package":"example.com/g","Test":"TestExit"}
{"Action":"fail","Package":"exam"""

CARGO = """
running 4 tests
test tests::ig ... ignored, slow
test tests::ok ... ok
test tests::bad ... FAILED
test tests::pan - should panic ... ok

failures:

---- tests::bad stdout ----
thread 'tests::bad' (6500) panicked at src/lib.rs:7:39:

failures:
    tests::bad

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s


running 1 test
test tests::ok ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s


running 1 test
test src/lib.rs - add (line 1) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.09s
"""

TAP = """\
TAP version 13
# outer
ok 1 should be strictly equal
not ok 2 one is two
  ---
    operator: equal
    stack: |-
      ok 7 not a point
  ...
# b took 12ms
ok 3 should be truthy
ok 4 later # SKIP not now
not ok 5 some day # TODO
noise of a test

1..5
# tests 5
# pass  3
# fail  1
"""

TAP_NESTED = """\
TAP version 14
# Subtest: test/a.js
    # Subtest: inner
        ok 1 - deep
        not ok 2 - down
        1..2
    not ok 1 - inner # time=1.2ms
    ok 2 - beside
    1..2
not ok 1 - test/a.js # time=51.3ms
ok 2 - test/b.js {
    ok 1 - braces
    1..1
}
1..2
"""

AVA = """\
TAP version 13
ok 1 - three # SKIP
not ok 2 - four # TODO
ok 3 - a \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} one
not ok 4 - a \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} two
not ok 5 - Error: Cannot find module 'nope'
  ---
    name: Error
  ...
not ok 6 - test/b.js exited with a non-zero exit code: 1

1..4
# tests 3
# pass 1
# skip 1
# fail 4
"""

UVU = """\
a.js
• ✘   (1 / 2)

   FAIL  "two words"
    Expected values to be strictly equal:  (is)

 named  • ✘   (1 / 2)

   FAIL  named  "bad"
    boo


b.js
•   (1 / 1)

  Total:     5
  Passed:    3
  Skipped:   1
  Duration:  1.16ms
"""

EVENTS = """\
{"event": "begin", "test": ""}
{"event": "start", "test": "a.py::test_ok"}
{"event": "passed", "test": "a.py::test_ok"}
{"event": "start", "test": "a.py::test_teardown"}
{"event": "passed", "test": "a.py::test_teardown"}
{"event": "failed", "test": "a.py::test_teardown"}
{"event": "start", "test": "a.py::test_skip"}
{"event": "skipped", "test": "a.py::test_skip"}
{"event": "start", "test": "a.py::test_ok"}
{"event": "failed", "test": "a.py::test_ok"}
{"event": "failed", "test": "b.py"}
{"event": "end", "test": ""}
"""


def recorded(name: str) -> str:
    """A report that a real runner wrote for a small project."""
    return Path(__file__).with_name("recorded").joinpath(name).read_text()


Reader = Callable[[str], Tally | None]
READERS = (
    xml.junit,
    xml.trx,
    json_reports.jest,
    json_reports.go,
    json_reports.meson,
    json_reports.rspec,
    text_reports.cargo,
    text_reports.uvu,
    tap,
    events,
)


@pytest.mark.parametrize(
    ("read", "text", "tally"),
    [
        pytest.param(
            xml.junit,
            PYTEST,
            Tally(
                passed=("tests.test_p::test_ok", "tests.test_p.TestC::test_m[a b]"),
                failed=("tests.test_p::test_td", "tests.test_p::test_td [2]"),
                skipped=1,
            ),
            id="pytest",
        ),
        pytest.param(xml.junit, PYTEST_COLLECTION, Tally(failed=("tests.test_q",)), id="pytest collection"),
        pytest.param(xml.junit, "<testsuites/>", Tally(), id="an empty report"),
        pytest.param(
            json_reports.jest,
            JEST,
            Tally(
                passed=("src/a.test.js::d > ok",),
                failed=("src/a.test.js::d > bad", "src/b.test.js"),
                skipped=2,
            ),
            id="jest",
        ),
        pytest.param(
            json_reports.go,
            GO,
            Tally(
                passed=("example.com/g::TestOk", "example.com/g::TestSub/a"),
                failed=("example.com/g/bad", "example.com/g::TestSub/b/c"),
                skipped=1,
            ),
            id="go",
        ),
        pytest.param(
            json_reports.go,
            GO_BEFORE_1_24,
            Tally(passed=("example.com/g::TestOk",), failed=("example.com/g/bad",)),
            id="go before 1.24",
        ),
        pytest.param(
            json_reports.go,
            GO_CUT_SHORT,
            Tally(passed=("example.com/g::TestOk",), failed=("example.com/g", "example.com/g::TestExit")),
            id="go cut short",
        ),
        pytest.param(
            text_reports.cargo,
            CARGO,
            Tally(
                passed=("tests::ok", "tests::pan", "tests::ok [2]", "src/lib.rs - add"),
                failed=("tests::bad",),
                skipped=1,
            ),
            id="cargo",
        ),
        pytest.param(
            text_reports.cargo,
            recorded("cargo.txt"),
            Tally(
                passed=("foo::tests::ok", "foo::tests::pan", "a::ok", "foo::src/lib.rs - add"),
                failed=("foo::tests::bad",),
                skipped=1,
            ),
            id="cargo with its standard error",
        ),
        pytest.param(
            partial(tap, comments=True),
            TAP,
            Tally(
                passed=("outer > should be strictly equal", "b took > should be truthy"),
                failed=("outer > one is two",),
                skipped=2,
            ),
            id="TAP of tape",
        ),
        pytest.param(
            tap,
            TAP_NESTED,
            Tally(
                passed=("test/a.js > inner > deep", "test/a.js > beside", "test/b.js > braces"),
                failed=("test/a.js > inner > down",),
            ),
            id="TAP with subtests",
        ),
        pytest.param(tap, "1..0 # SKIP no server\n", Tally(skipped=1), id="TAP that skips everything"),
        pytest.param(
            tap,
            AVA,
            Tally(
                passed=("a \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} one",),
                failed=(
                    "a \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} two",
                    "Error: Cannot find module 'nope'",
                    "test/b.js exited with a non-zero exit code: 1",
                ),
                skipped=2,
            ),
            id="TAP of ava",
        ),
        pytest.param(
            text_reports.uvu,
            UVU,
            Tally(
                passed=("a.js #1", "a.js > named #1", "b.js #1"),
                failed=("a.js > two words", "a.js > named > bad"),
                skipped=1,
            ),
            id="uvu",
        ),
        pytest.param(
            events,
            EVENTS,
            Tally(
                passed=("a.py::test_ok",),
                failed=("a.py::test_teardown", "a.py::test_ok [2]", "b.py"),
                skipped=1,
            ),
            id="events",
        ),
        pytest.param(
            xml.junit,
            recorded("ctest.xml"),
            Tally(passed=("ok",), failed=("bad", "gone"), skipped=2),
            id="ctest",
        ),
        pytest.param(
            xml.junit,
            recorded("phpunit.xml"),
            Tally(
                passed=("ATest::testOk", "ATest::testData with data set #0", 'ATest::testData with data set "named"'),
                failed=("ATest::testBad",),
                skipped=1,
            ),
            id="phpunit",
        ),
        pytest.param(
            xml.junit,
            recorded("surefire.xml"),
            Tally(passed=("shop.TillTest::adds",), failed=("shop.TillTest::breaks", "shop.TillTest::fails"), skipped=1),
            id="surefire",
        ),
        pytest.param(
            xml.junit,
            recorded("gradle.xml"),
            Tally(passed=("p.CalcTest::adds",), failed=("p.CalcTest::fails",), skipped=1),
            id="gradle",
        ),
        pytest.param(
            xml.junit,
            recorded("bun.xml"),
            Tally(passed=("outer::one", "inner > outer::one"), failed=("outer::two", "boom"), skipped=1),
            id="bun",
        ),
        pytest.param(
            xml.junit,
            recorded("deno.xml"),
            Tally(
                passed=("./a_test.ts::one", "./a_test.ts::outer > inner"),
                failed=("./a_test.ts::two", "./a_test.ts::outer", "./a_test.ts::outer > broken"),
                skipped=1,
            ),
            id="deno",
        ),
        pytest.param(
            partial(tap, comments=True),
            recorded("tap18.txt"),
            # tap itself counts one skipped test; the empty plan of the file that does not load is counted as another.
            Tally(
                passed=("test/a.js > one > fine",), failed=("test/a.js > two > no, it is not", "test/b.js"), skipped=2
            ),
            id="tap 18",
        ),
        pytest.param(
            json_reports.meson,
            recorded("meson.json"),
            Tally(passed=("ok", "xf"), failed=("bad one",), skipped=1),
            id="meson",
        ),
        pytest.param(
            json_reports.rspec,
            recorded("rspec.json"),
            Tally(
                passed=("spec/a_spec.rb::thing works", "spec/a_spec.rb::thing inner is fine"),
                failed=("spec/a_spec.rb::thing fails",),
                skipped=1,
            ),
            id="rspec",
        ),
    ],
)
def test_a_report_is_read(read: Reader, text: str, tally: Tally) -> None:
    assert read(text) == tally


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("text", ["", "ok", "{}", "[]", "<html/>", "make: *** [Makefile:2: test] Error 1\n"])
def test_text_of_another_kind_is_no_report(read: Reader, text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("read", "text"),
    [
        pytest.param(xml.junit, PYTEST[:-20], id="XML without its end"),
        pytest.param(json_reports.jest, JEST[:-20], id="JSON without its end"),
        pytest.param(json_reports.jest, JEST.replace('"passed"', '"splendid"'), id="an unknown outcome"),
        pytest.param(text_reports.cargo, CARGO.replace("test tests::bad ... FAILED\n", ""), id="a failure is missing"),
        pytest.param(text_reports.cargo, CARGO.partition("test result")[0], id="a binary crashed"),
    ],
)
def test_a_report_whose_sums_do_not_agree_is_refused(read: Reader, text: str) -> None:
    assert read(text) is None


def test_a_failed_go_test_with_passing_subtests_is_kept() -> None:
    text = GO.replace(
        '"fail","Package":"example.com/g","Test":"TestSub/b/c"', '"pass","Package":"example.com/g","Test":"TestSub/b/c"'
    )

    tally = json_reports.go(text)

    assert tally is not None
    assert "example.com/g::TestSub" in tally.failed


def test_a_jest_file_that_breaks_outside_of_its_tests_has_failed() -> None:
    tally = json_reports.jest(JEST.replace('"status": "failed", "title": "bad"', '"status": "passed", "title": "bad"'))

    assert tally is not None
    assert tally.failed == ("src/a.test.js", "src/b.test.js")


def test_the_output_of_go_is_shown_as_without_json() -> None:
    assert json_reports.go_output(GO) == "b_test.go:3: undefined\nFAIL\texample.com/g/bad [build failed]\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1..2\nok 1 - a\n", "a point is missing"),
        ("ok 1 - a\n", "there is no plan"),
        ("1..1\nok 1 - a\n1..1\n", "there are two plans"),
        ("1..2\nok 1 - a\nok 3 - b\n", "a number is missing"),
        ("1..1\nok 1 - a\nBail out! no disk\n", "the run was given up"),
        ("    ok 1 - in\n    1..2\nok 1 - out\n1..1\n", "a subtest is missing"),
        ("ok 1 - a {\n    ok 1 - in\n    1..1\n1..1\n", "the braces are not closed"),
    ],
)
def test_tap_that_breaks_the_protocol_is_refused(text: str, why: str) -> None:
    assert tap(text) is None, why


PASSING_AROUND_A_FAILURE = """\
TAP version 13
# one
ok 1 fine
# null
ok 2 fine
  ---
  duration_ms: 1
  ...
not ok 3 should be equal
  ---
    expected: 'null'
  ...
ok 4 fine
# last
ok 5 fine

1..5
# fail  1
"""


def test_of_a_long_stream_of_tap_what_failed_is_shown() -> None:
    shown = tap_output(PASSING_AROUND_A_FAILURE).splitlines()

    failure = ["# null", "not ok 3 should be equal", "  ---", "    expected: 'null'", "  ..."]
    assert shown == ["TAP version 13", *failure, "", "1..5", "# fail  1"]
    assert tap_output("ok 1 fine\nSegmentation fault\n") == "ok 1 fine\nSegmentation fault\n"


def test_a_subtest_may_be_a_word_only() -> None:
    assert tap("ok\n    1..1\n    ok\nok 1 - test/a.js\n1..1\n") == Tally(passed=("test/a.js > ",))


def test_a_brace_that_nothing_follows_is_part_of_a_name() -> None:
    assert tap("ok 1 - a {\nok 2 - b {\n1..2\n") == Tally(passed=("a", "b"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{"event": "end", "test": ""}\n', ""),
        ("passed", "splendid"),
        ('{"event": "begin", "test": ""}', '{"event": "begin", "test": "", "more": 1}'),
        ('{"event": "begin", "test": ""}', '{"event": "beg'),
    ],
)
def test_events_that_are_cut_or_changed_are_refused(old: str, new: str) -> None:
    assert events(EVENTS.replace(old, new)) is None


def test_a_name_may_have_a_separator_of_lines() -> None:
    named = EVENTS.replace("test_teardown", "a \u2028 b \x85")

    assert events(named) is not None
    assert unfinished(named[: named.index('{"event": "passed", "test": "a.py::a')]) == ("a.py::a \u2028 b \x85",)


def test_a_test_that_has_not_ended_was_running() -> None:
    cut = EVENTS[: EVENTS.index('{"event": "passed", "test": "a.py::test_teardown"}') + 20]

    assert unfinished(cut) == ("a.py::test_teardown",)


def test_a_go_test_that_has_not_ended_was_running() -> None:
    assert json_reports.go_unfinished(GO_CUT_SHORT) == ("example.com/g::TestExit",)


def test_a_perl_program_that_failed_for_another_reason_is_named() -> None:
    streams = {"t/a.t": "ok 1 - fine\n1..1\n", "t/b.t": "ok 1 - fine\n"}

    assert harness(streams, frozenset({"t/a.t", "t/b.t", "t/c.t"})) == Tally(
        passed=("t/a.t > fine",), failed=("t/a.t", "t/b.t", "t/c.t")
    )
    assert harness(streams, frozenset()) is None


TRX = """<?xml version="1.0" encoding="utf-8"?>
<TestRun xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/2010"><Results>
<UnitTestResult testName="Shop.Tests.Ok" outcome="Passed" />
<UnitTestResult testName="Shop.Tests.Bad" outcome="Failed" />
<UnitTestResult testName="Shop.Tests.Late" outcome="Timeout" />
<UnitTestResult testName="Shop.Tests.Skip" outcome="NotExecuted" />
</Results></TestRun>"""


def test_an_unknown_outcome_of_dotnet_is_a_failure() -> None:
    assert xml.trx(TRX) == Tally(passed=("Shop.Tests.Ok",), failed=("Shop.Tests.Bad", "Shop.Tests.Late"), skipped=1)


def test_the_documents_of_one_run_are_read_together() -> None:
    assert xml.junit(PYTEST_COLLECTION, "<testsuite/>") == Tally(failed=("tests.test_q",))
    assert xml.junit(PYTEST_COLLECTION, "<testsuite>") is None
    assert xml.junit() is None


DIGITS = "9" * 5000
HOSTILE = {
    "XML nested deep": "<testsuite>" * 100_000 + "</testsuite>" * 100_000,
    "XML that expands": '<!DOCTYPE a [<!ENTITY b "ccccc">]><testsuite name="&b;"/>',
    "JSON nested deep": '{"testResults": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "JSON nested deep in a field that is not read": '{"event": "begin", "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "a number of 5,000 digits in cargo": f"test a ... ok\ntest result: ok. {DIGITS} passed; 0 failed; 0 ignored; x",
    "a number of 5,000 digits in TAP": f"1..{DIGITS}\nok {DIGITS} - a\n",
    "a number of 5,000 digits in JSON": f'{{"examples": [], "summary": {{"example_count": {DIGITS}}}}}',
    "a number of 5,000 digits in uvu": f"  Total:     {DIGITS}\n  Passed:    1\n  Skipped:   0\n",
    "TAP nested deep": "".join(f"{'    ' * depth}ok 1 - a\n" for depth in range(3000)),
    "spaces": " " * 1_000_000,
    "one long word": "x" * 1_000_000,
    "one long word after each way to begin a result": "ERROR: x FAIL: x ok 1 - test " + "x" * 1_000_000,
    "one long line of cargo": "test " + "a - should panic " * 100_000,
    "many lines that begin like a result": "test a ... \n" * 100_000 + "test result: ok. 1 passed; 1 failed\n" * 1000,
    "many marks of uvu": "• " * 500_000 + "(1 / 1" + "(1 / 1)\n" * 10_000,
    "one long name of go": '{"Action":"run","Package":"a","Test":"' + "a/" * 500_000 + '"',
    "lines of a cargo binary": "     Running (" + "a/" * 500_000,
}


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_report_is_refused_and_does_not_stop_the_reader(read: Reader, name: str) -> None:
    assert read(HOSTILE[name]) is None


@pytest.mark.parametrize("names", [["x"] * (TESTS + 1), ["x" * NAME_LIMIT] * (CHARACTERS // NAME_LIMIT + 1)])
def test_more_tests_than_a_suite_has_are_not_counted(names: list[str]) -> None:
    assert tally((name, "passed") for name in names) is None


def test_the_name_of_a_test_is_cut() -> None:
    found = xml.junit(f'<testsuites><testcase name="{"x" * 5_000}"/><testcase name="y"/></testsuites>')

    assert found
    assert [len(name) for name in found.passed] == [NAME_LIMIT + 1, 1]


def test_a_name_of_go_with_many_slashes_is_read() -> None:
    name = "a/" * 200_000
    text = f'{{"Action":"run","Package":"p","Test":"{name}"}}\n{{"Action":"pass","Package":"p","Test":"{name}"}}\n'

    tally = json_reports.go(text)

    assert tally is not None
    assert len(tally.passed) == 1


@pytest.mark.parametrize(
    ("kind", "output", "file"),
    [
        pytest.param(
            "bun", "(fail) boom [0.04ms]\n\nb.test.ts:\n\n# Unhandled error between tests\n", "b.test.ts", id="bun"
        ),
        pytest.param("deno", "./b_test.ts (uncaught error)\nerror: Error: early\n", "./b_test.ts", id="deno"),
    ],
)
def test_a_file_that_cannot_be_loaded_fails_although_the_report_leaves_it_out(
    kind: Kind, output: str, file: str
) -> None:
    results = Results(report=recorded(f"{kind}.xml"), stdout="", stderr=output)

    found = RUNNERS[kind].read(results)

    assert found is not None
    assert found.failed[-1] == file


def test_the_serial_harness_of_automake_is_read_from_its_output() -> None:
    printed = "make  check-TESTS\nPASS: test_a\nFAIL: test_b\nXFAIL: test_c\nSKIP: test_d\n1 of 3 tests failed\n"

    assert text_reports.automake({}, printed) == Tally(passed=("test_a", "test_c"), failed=("test_b",), skipped=1)


def test_a_project_of_meson_without_tests_has_run_none() -> None:
    results = Results(report="", stdout="ninja: no work to do.\nNo tests defined.\n", stderr="")

    assert RUNNERS["meson"].read(results) == Tally()
