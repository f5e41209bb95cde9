"""Reads the XML of test runners: JUnit, which most can write, and TRX of .NET."""

from collections.abc import Callable, Iterable, Mapping
from xml.parsers import expat

from iterdev.host.test_suites.reports.tally import TESTS, Outcome, Tally, cut, tally

DEPTH = 200
"""Elements inside of each other; suites of real reports are at most some dozens deep."""


class _Refused(Exception):
    """The document is not a report, or not one that a test runner writes."""


class _Reader:
    """Follows the elements of a document without keeping them."""

    tops: frozenset[str]

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, Outcome]] = []
        self.depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if self.depth == 0 and tag not in self.tops:
            raise _Refused
        self.depth += 1
        if self.depth > DEPTH:
            raise _Refused
        self.begin(tag, attributes)

    def end(self, tag: str) -> None:
        self.depth -= 1
        self.finish(tag)

    def add(self, name: str, outcome: Outcome) -> None:
        if len(self.outcomes) >= TESTS:
            raise _Refused
        self.outcomes.append((cut(name), outcome))

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        raise NotImplementedError

    def finish(self, tag: str) -> None:
        raise NotImplementedError


_CTEST_SKIPPED = ("SKIP_", "Disabled", "Fixture dependency")


class _JUnit(_Reader):
    tops = frozenset({"testsuites", "testsuite"})

    def __init__(self) -> None:
        super().__init__()
        self.case: str | None = None
        self.inside = 0
        """Elements that are open inside of the test case."""
        self.outcome: Outcome = "passed"
        self.started = True

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        if self.case is not None:
            self.inside += 1
            if self.inside == 1 and tag in {"failure", "error"}:
                self.outcome = "failed"
            elif self.inside == 1 and tag == "skipped" and self.outcome == "passed":
                # ctest writes that a test could not be started as if it had been skipped.
                skipped = self.started or attributes.get("message", "").startswith(_CTEST_SKIPPED)
                self.outcome = "skipped" if skipped else "failed"
        elif tag == "testcase":
            where, name = attributes.get("classname", ""), attributes.get("name", "")
            # ctest repeats the name as the class.
            self.case = "::".join(part for part in (where if where != name else "", name) if part)
            status = attributes.get("status")
            self.outcome, self.inside = "skipped" if status == "disabled" else "passed", 0
            self.started = status != "notrun"

    def finish(self, tag: str) -> None:
        if self.case is not None and self.inside:
            self.inside -= 1
        elif self.case is not None and tag == "testcase":
            self.add(self.case, self.outcome)
            self.case = None


_TRX: Mapping[str, Outcome] = {"Passed": "passed", "NotExecuted": "skipped", "Inconclusive": "skipped"}


class _Trx(_Reader):
    tops = frozenset({"TestRun"})

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "UnitTestResult":
            self.add(attributes.get("testName", ""), _TRX.get(attributes.get("outcome", ""), "failed"))

    def finish(self, tag: str) -> None:
        pass


def _read(text: str, reader: _Reader) -> list[tuple[str, Outcome]] | None:
    parser = expat.ParserCreate("utf-8")  # whatever the document declares, it was decoded before

    def refuse(*_: object) -> None:
        raise _Refused

    # No test runner declares entities, and with a document type they could be of any size.
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except (expat.ExpatError, _Refused):
        return None
    return reader.outcomes


def _each(texts: Iterable[str], reader: Callable[[], _Reader]) -> Tally | None:
    documents = [_read(text, reader()) for text in texts]
    if not documents or any(outcomes is None for outcomes in documents):
        return None
    return tally(outcome for outcomes in documents for outcome in outcomes or ())


def junit(*texts: str) -> Tally | None:
    """Reads the documents of one run, of which some runners write one for each class."""
    return _each(texts, _JUnit)


def trx(*texts: str) -> Tally | None:
    return _each(texts, _Trx)
