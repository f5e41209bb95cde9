"""What test runners write, as recorded from real ones."""

import json
from collections.abc import Callable

import pytest

from iterdev.host.test_suites import reports
from iterdev.host.test_suites.reports import Tally

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

NODE = """<?xml version="1.0" encoding="utf-8"?>
<testsuites>
	<testcase name="one" time="0.001581" classname="test"/>
	<testcase name="three" time="0.000162" classname="test">
		<skipped type="skipped" message="true"/>
	</testcase>
	<testsuite name="s" time="0.000477" disabled="0" errors="0" tests="1" failures="0" skipped="0" hostname="vm">
		<testcase name="one" time="0.000184" classname="test"/>
		<testcase name="one" time="0.000184" classname="test" failure="1 == 2">
			<failure type="testCodeFailure" message="1 == 2">AssertionError</failure>
		</testcase>
	</testsuite>
	<testcase name="t/b.test.js" time="0.108497" classname="test" failure="test failed">
		<failure type="testCodeFailure" message="test failed">[Error: test failed]</failure>
	</testcase>
	<!-- tests 6 -->
</testsuites>"""

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

RULES = ("=" * 70, "-" * 70)

UNITTEST = """\
test_bad (test_a.C.test_bad) ... FAIL
test_doc (test_a.C.test_doc)
A docstring. ... ok
test_noise (test_a.C.test_noise) ... noise
ok
test_tail (test_a.C.test_tail) ... no end of lineok
test_skip (test_a.C.test_skip) ... skipped 'r'
test_sub (test_a.C.test_sub) ...{space}
  test_sub (test_a.C.test_sub) (i=1) ... FAIL
  test_sub (test_a.C.test_sub) (i=2) ... FAIL
test_xf (test_a.C.test_xf) ... expected failure
test_xs (test_a.C.test_xs) ... unexpected success
ERROR
setUpClass (test_a.E) ... skipped 'w'
test_b (unittest.loader._FailedTest.test_b) ... ERROR

{double}
ERROR: setUpClass (test_a.D)
{single}
RuntimeError

{double}
ERROR: test_b (unittest.loader._FailedTest.test_b)
{single}
ImportError: Failed to import test module: test_b

{double}
FAIL: test_bad (test_a.C.test_bad)
{single}
AssertionError: x

{double}
FAIL: test_sub (test_a.C.test_sub) (i=1)
{single}
AssertionError: 1 != 0

{double}
FAIL: test_sub (test_a.C.test_sub) (i=2)
{single}
AssertionError: 2 != 0

{double}
UNEXPECTED SUCCESS: test_xs (test_a.C.test_xs)
{single}
Ran 9 tests in 0.002s

FAILED (failures=3, errors=2, skipped=2, expected failures=1, unexpected successes=1)
""".format(space=" ", double=RULES[0], single=RULES[1])

UNITTEST_BEFORE_3_11 = """\
test_sub (test_a.C) ... test_ok (test_a.C) ... ok

{double}
FAIL: test_sub (test_a.C) (i=1)
{single}
AssertionError: 1 != 0

{single}
Ran 2 tests in 0.001s

FAILED (failures=1)
""".format(double=RULES[0], single=RULES[1])

UNITTEST_3_12_1 = f"""\
test_a (test_s.C.test_a) ... skipped 'c'

{RULES[1]}
Ran 0 tests in 0.000s

NO TESTS RAN (skipped=1)
"""

UNITTEST_TWICE = f"""\
test_a (base.C.test_a) ... ok
test_a (base.C.test_a) ... ok

{RULES[1]}
Ran 2 tests in 0.000s

OK
"""

Reader = Callable[[str], Tally | None]


@pytest.mark.parametrize(
    ("read", "text", "tally"),
    [
        pytest.param(
            reports.junit,
            PYTEST,
            Tally(
                passed=("tests.test_p::test_ok", "tests.test_p.TestC::test_m[a b]"),
                failed=("tests.test_p::test_td", "tests.test_p::test_td [2]"),
                skipped=1,
            ),
            id="pytest",
        ),
        pytest.param(reports.junit, PYTEST_COLLECTION, Tally(failed=("tests.test_q",)), id="pytest collection"),
        pytest.param(reports.junit, "<testsuites/>", Tally(), id="an empty report"),
        pytest.param(
            reports.junit,
            NODE,
            Tally(passed=("one", "s::one"), failed=("s::one [2]", "t/b.test.js"), skipped=1),
            id="node",
        ),
        pytest.param(
            reports.jest,
            JEST,
            Tally(
                passed=("src/a.test.js::d > ok",),
                failed=("src/a.test.js::d > bad", "src/b.test.js"),
                skipped=2,
            ),
            id="jest",
        ),
        pytest.param(
            reports.go,
            GO,
            Tally(
                passed=("example.com/g::TestOk", "example.com/g::TestSub/a"),
                failed=("example.com/g/bad", "example.com/g::TestSub/b/c"),
                skipped=1,
            ),
            id="go",
        ),
        pytest.param(
            reports.go,
            GO_BEFORE_1_24,
            Tally(passed=("example.com/g::TestOk",), failed=("example.com/g/bad",)),
            id="go before 1.24",
        ),
        pytest.param(
            reports.go,
            GO_CUT_SHORT,
            Tally(passed=("example.com/g::TestOk",), failed=("example.com/g", "example.com/g::TestExit")),
            id="go cut short",
        ),
        pytest.param(
            reports.cargo,
            CARGO,
            Tally(
                passed=("tests::ok", "tests::pan", "tests::ok [2]", "src/lib.rs - add"),
                failed=("tests::bad",),
                skipped=1,
            ),
            id="cargo",
        ),
        pytest.param(
            reports.unittest,
            UNITTEST,
            Tally(
                passed=("test_a.C::test_doc", "test_a.C::test_noise", "test_a.C::test_tail", "test_a.C::test_xf"),
                failed=(
                    "test_a.D::setUpClass",
                    "test_a.C::test_bad",
                    "test_a.C::test_sub",
                    "test_a.C::test_xs",
                    "unittest.loader._FailedTest::test_b",
                ),
                skipped=2,
            ),
            id="unittest",
        ),
        pytest.param(
            reports.unittest,
            UNITTEST_BEFORE_3_11,
            Tally(passed=("test_a.C::test_ok",), failed=("test_a.C::test_sub",)),
            id="unittest before 3.11",
        ),
        pytest.param(reports.unittest, UNITTEST_3_12_1, Tally(skipped=1), id="unittest 3.12.1"),
        pytest.param(
            reports.unittest,
            UNITTEST_TWICE,
            Tally(passed=("base.C::test_a", "base.C::test_a [2]")),
            id="unittest, one class imported twice",
        ),
    ],
)
def test_a_report_is_read(read: Reader, text: str, tally: Tally) -> None:
    assert read(text) == tally


@pytest.mark.parametrize("read", [reports.junit, reports.jest, reports.go, reports.cargo, reports.unittest])
@pytest.mark.parametrize("text", ["", "ok", "{}", "[]", "<html/>", "make: *** [Makefile:2: test] Error 1\n"])
def test_text_of_another_kind_is_no_report(read: Reader, text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("read", "text"),
    [
        pytest.param(reports.junit, PYTEST[:-20], id="XML without its end"),
        pytest.param(reports.jest, JEST[:-20], id="JSON without its end"),
        pytest.param(reports.jest, JEST.replace('"passed"', '"splendid"'), id="an unknown outcome"),
        pytest.param(reports.cargo, CARGO.replace("test tests::bad ... FAILED\n", ""), id="a failure is missing"),
        pytest.param(reports.cargo, CARGO.partition("test result")[0], id="a binary crashed"),
        pytest.param(reports.unittest, UNITTEST.replace("Ran 9", "Ran 10"), id="a test is missing"),
        pytest.param(reports.unittest, UNITTEST.replace("failures=3", "failures=4"), id="a failure is not explained"),
        pytest.param(reports.unittest, UNITTEST.replace("successes=1", "successes=2"), id="a success is missing"),
        pytest.param(reports.unittest, UNITTEST_TWICE.replace("OK", "FAILED"), id="failed without a failure"),
    ],
)
def test_a_report_whose_sums_do_not_agree_is_refused(read: Reader, text: str) -> None:
    assert read(text) is None


def test_a_failed_go_test_with_passing_subtests_is_kept() -> None:
    text = GO.replace(
        '"fail","Package":"example.com/g","Test":"TestSub/b/c"', '"pass","Package":"example.com/g","Test":"TestSub/b/c"'
    )

    tally = reports.go(text)

    assert tally is not None
    assert "example.com/g::TestSub" in tally.failed


def test_a_jest_file_that_breaks_outside_of_its_tests_has_failed() -> None:
    tally = reports.jest(JEST.replace('"status": "failed", "title": "bad"', '"status": "passed", "title": "bad"'))

    assert tally is not None
    assert tally.failed == ("src/a.test.js", "src/b.test.js")


def test_the_output_of_go_is_shown_as_without_json() -> None:
    assert reports.go_output(GO) == "b_test.go:3: undefined\nFAIL\texample.com/g/bad [build failed]\n"
