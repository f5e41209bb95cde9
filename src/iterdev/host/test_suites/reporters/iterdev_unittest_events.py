"""Runs a Python program, or a module with -m, and writes which tests of unittest start and how they end.

Every runner that builds on unittest (its own, Django's, a script of the project) reports to a TestResult; the methods
of that class are extended, so no runner has to be replaced and no output to be read.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import re
import runpy
import sys
import unittest
from typing import Any

_REPORT = os.environ.get("ITERDEV_TEST_EVENTS", "")
_SELECTION = os.environ.get("ITERDEV_TEST_SELECTION", "")
# Taken before any test: a test may replace `open`, `json.dumps` or `os.getpid` until after its outcome is known.
_FILE = open(_REPORT, "ab", buffering=0) if _REPORT else None  # noqa: SIM115 - open to the end
_dumps, _pid = json.dumps, os.getpid
_PROCESS = _pid()
_FIXTURE = re.compile(r"^(setUpClass|tearDownClass|setUpModule|tearDownModule) \((.*)\)$")
_NOT_LOADED = ("unittest.loader._FailedTest.", "unittest.loader.ModuleImportFailure.")
_EXTENDED = {
    "startTest": ("start",),
    "addSuccess": ("passed",),
    "addExpectedFailure": ("passed",),
    "addSkip": ("skipped",),
    "addFailure": ("failed",),
    "addError": ("failed",),
    "addUnexpectedSuccess": ("failed",),
    "addSubTest": ("failed", "only those that failed are told"),
}


def _write(event: str, test: str = "") -> None:
    if _FILE and _pid() == _PROCESS:  # processes that run tests for this one tell it the outcome
        _FILE.write(_dumps({"event": event, "test": test}).encode() + b"\n")


def _name(test: Any) -> str:
    name = str(test.id()) if hasattr(test, "id") else str(test)
    for prefix in _NOT_LOADED:
        if name.startswith(prefix):
            return name[len(prefix) :]
    fixture = _FIXTURE.match(name)
    if fixture:
        return f"{fixture.group(2)}::{fixture.group(1)}"
    where, _, method = name.rpartition(".")
    return f"{where}::{method}" if where and isinstance(test, unittest.TestCase) else name


def _extend(result: Any) -> None:
    """Makes a class of results write what it is told; a class that overrides a method need not call it."""
    for name in result.__dict__.keys() & _EXTENDED.keys():
        setattr(result, name, _reporting(result.__dict__[name], *_EXTENDED[name]))


def _reporting(method: Any, event: str, subtests: str = "") -> Any:
    @functools.wraps(method)
    def reporting(self: Any, test: Any, *args: Any, **kwargs: Any) -> Any:
        # A skip inside of a subtest names the subtest, which is not a test of its own.
        if not subtests or args[1] is not None:
            _write(event, _name(getattr(test, "test_case", test)))
        return method(self, test, *args, **kwargs)

    return reporting


def _extend_subclass(cls: Any, /, **_: Any) -> None:
    _extend(cls)


def _select(names: frozenset[str]) -> None:
    run = unittest.TestCase.run

    @functools.wraps(run)
    def selected(self: Any, result: Any = None) -> Any:
        return run(self, result) if _name(self) in names else result

    unittest.TestCase.run = selected  # type: ignore[method-assign]


def main() -> None:
    result: Any = unittest.TestResult
    _extend(result)
    result.__init_subclass__ = classmethod(_extend_subclass)
    # A limit of failures would hide the other tests.
    result.failfast = property(lambda _: False, lambda _, __: None)
    if _SELECTION:
        with open(_SELECTION, encoding="utf-8") as file:
            _select(frozenset(json.load(file)))
    _write("begin")
    try:
        _run(sys.argv[1:])
    except SystemExit:
        _write("end")
        raise
    _write("end")


def _run(arguments: list[str]) -> None:
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        if importlib.util.find_spec(arguments[1]) is None:
            sys.exit(f"{sys.executable}: No module named {arguments[1]}")
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    # Under its own name, because the program that it runs takes the name __main__.
    importlib.import_module("iterdev_unittest_events").main()
