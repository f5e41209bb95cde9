"""Reports and output of test runners."""

from collections.abc import Callable

from tests.fuzz.target import Target, text_target

from iterdev.core.formatting import plain
from iterdev.core.verification import SuiteReport, compare, excerpt
from iterdev.host.test_suites.reports import json, text, xml
from iterdev.host.test_suites.reports.events import events, unfinished
from iterdev.host.test_suites.reports.tap import harness, tap
from iterdev.host.test_suites.run import _missing
from iterdev.host.test_suites.runners import RUNNERS, Results
from iterdev.host.test_suites.suite import Kind

EVENTS = """\
{"event": "begin"}
{"event": "start", "test": "tests/test_a.py::test_a[1]"}
{"event": "passed", "test": "tests/test_a.py::test_a[1]"}
{"event": "start", "test": "tests/test_a.py::test_b"}
{"event": "failed", "test": "tests/test_a.py::test_b"}
{"event": "end"}
"""
JEST = """{"testResults": [{"name": "/a.test.js", "status": "failed", "assertionResults": [
{"ancestorTitles": ["a", "b"], "title": "c", "status": "passed"}, {"title": "d", "status": "failed"}]}]}"""
GO = """\
{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/b/c"}
{"Action":"output","Package":"p","Test":"TestA","Output":"FAIL\\tq [build failed]\\n"}
{"Action":"fail","Package":"p","Test":"TestA/b/c","Elapsed":0}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0}
FAIL\tq [setup failed]
"""
MESON = '{"name": "suite / a", "result": "OK"}\n{"name": "suite / b", "result": "TIMEOUT"}\n'
RSPEC = """{"examples": [{"full_description": "a b", "status": "passed", "file_path": "./spec/a_spec.rb"}],
"summary": {"example_count": 1, "failure_count": 0, "pending_count": 0, "errors_outside_of_examples_count": 1}}"""
CARGO = """\
     Running unittests src/lib.rs (target/debug/deps/a-0123456789abcdef)
running 2 tests
test tests::a ... ok
test tests::b - should panic ... FAILED
test tests::c has been running for over 60 seconds
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
   Doc-tests a
test src/lib.rs - a (line 3) ... ignored
test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured
"""
UVU = """\
a.js
 suite • • ✘   (2 / 3)
   FAIL  suite  "name"
  Total:     3
  Passed:    2
  Skipped:   0
"""
TAP = """\
TAP version 13
# Subtest: outer
    # Subtest: inner
        ok 1 - a # time=1.5ms
        1..1
    ok 1 - inner
    not ok 2 - b # TODO later
      ---
      message: x
      ...
    1..2
ok 1 - outer {
}
not ok 2 - c # SKIP no
ok
1..2
# tests 2
# pass 1
# fail 1
"""
TRS = ":test-result: PASS a\n:test-result: XFAIL\n:global-test-result: PASS\n:recheck: no\n"
JUNIT = """<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="s" tests="3">
<testcase classname="a.B" name="c[1]" time="0.1"/>
<testcase classname="a" name="d"><failure message="m">t</failure></testcase>
<testcase name="e" status="notrun"><skipped message="SKIP_RETURN_CODE=4"/>
<system-out><![CDATA[x]]></system-out></testcase>
</testsuite></testsuites>"""
TRX = """<TestRun><Results><UnitTestResult testName="a" outcome="Passed"/><UnitTestResult testName="b" outcome="Failed">
<Output><ErrorInfo><Message>m</Message></ErrorInfo></Output></UnitTestResult></Results></TestRun>"""
BUN = "bun test v1.1\n\nb.test.ts:\n\n# Unhandled error between tests\nb_test.ts (uncaught error)\n"
PROVE = "t/a.t .. Failed 1/2 subtests\nt/a.t (Wstat: 256 (exited 1) Tests: 2 Failed: 1)\n  Failed test:  2\n"
SHELL = """\
sh: 1: pytest: not found
/bin/sh: line 1: foo: command not found
/usr/bin/python3.11: No module named pytest
env: 'node': No such file or directory
\x1b[31mError\x1b[0m: no module named x\r\r\n\x1b]0;title\x07\x9dtitle\x9c
"""


def _of_runner(kind: Kind) -> Callable[[str], object]:
    """The way from the output to the tally, as a run takes it."""
    runner = RUNNERS[kind]

    def read(report: str) -> object:
        results = Results(report=report, stdout=report, stderr=report, files={"a": report, "b": report})
        runner.running(report)
        return runner.read(results), excerpt(report, runner.output(report), "x")

    return read


def _verification(report: str) -> object:
    """Names and output of any kind, compared with those before."""
    names = tuple(report.splitlines())
    before = SuiteReport(command="x", exit_code=0, counted=True, passed=names[::2], failed=names[1::2])
    after = SuiteReport(command="x", exit_code=1, counted=True, passed=names[1:], output=excerpt(report, report))
    return compare(after, before)


TARGETS: tuple[Target, ...] = (
    text_target("events of reporters", lambda report: (events(report), unfinished(report)), EVENTS),
    text_target("jest report", json.jest, JEST),
    text_target("go report", lambda report: (json.go(report), json.go_unfinished(report), json.go_output(report)), GO),
    text_target("meson report", json.meson, MESON),
    text_target("rspec report", json.rspec, RSPEC),
    text_target("cargo output", lambda report: (text.cargo(report), text.cargo_unfinished(report)), CARGO),
    text_target("uvu output", text.uvu, UVU),
    text_target("automake logs", lambda report: text.automake({"a.trs": report}), TRS),
    text_target("tap stream", lambda report: (tap(report), tap(report, comments=True)), TAP),
    text_target("perl harness", lambda report: harness({"t/a.t": report}, frozenset({"t/a.t"})), TAP),
    text_target("junit report", xml.junit, JUNIT),
    text_target("trx report", xml.trx, TRX),
    text_target("bun output", _of_runner("bun"), BUN, JUNIT),
    text_target("deno output", _of_runner("deno"), BUN, JUNIT),
    text_target("prove output", _of_runner("prove"), PROVE, TAP),
    text_target("names of tests", _verification, "a::b[1]\nsrc/a.test.js::c > d\na.b.C(1)\nx (0xdeadbeef01)\n"),
    text_target("missing program", lambda said: (_missing(127, said), _missing(1, said)), SHELL),
    text_target("control codes", plain, SHELL),
)
