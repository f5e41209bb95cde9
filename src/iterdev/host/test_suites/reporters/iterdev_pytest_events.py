"""A plugin for pytest that writes which tests start and how they end.

pytest's own JUnit report is only written at the end, can be switched off by the project, and does not have the ids with
which a test can be run again.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

_REPORT = os.environ.get("ITERDEV_TEST_EVENTS", "")
_SELECTION = os.environ.get("ITERDEV_TEST_SELECTION", "")
# Opened once, and before any test: a test may replace `open` or `json.dumps` until after its outcome is known.
_FILE = open(_REPORT, "ab", buffering=0) if _REPORT else None  # noqa: SIM115 - open to the end
_dumps = json.dumps


def _write(event: str, test: str = "") -> None:
    if _FILE:
        _FILE.write(_dumps({"event": event, "test": test}).encode() + b"\n")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    # Coverage would write into the tree, and fail for another reason than a test.
    early_config.known_args_namespace.no_cov = True


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    if getattr(config.option, "xmlpath", None):
        config.option.xmlpath = None
    if _REPORT and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Events(), "iterdev-events")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    if not _SELECTION:
        return
    with open(_SELECTION, encoding="utf-8") as file:
        wanted = frozenset(json.load(file))
    kept = [item for item in items if item.nodeid in wanted or item.nodeid.partition("[")[0] in wanted]
    dropped = [item for item in items if item not in kept]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


class _Events:
    """Only in the process that knows all tests, which with pytest-xdist is not the one that runs them."""

    def pytest_sessionstart(self) -> None:
        _write("begin")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        _write("start", nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        # Any other outcome, such as that of a test that will be run again, is not the last word.
        if report.outcome in {"passed", "failed", "skipped"} and (report.when == "call" or report.outcome != "passed"):
            _write(report.outcome, report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.outcome != "passed":
            _write(report.outcome, report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if int(exitstatus) in {0, 1, 5}:  # otherwise the run was given up, and the tests are not all there
            _write("end")
