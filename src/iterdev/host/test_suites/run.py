"""Runs a test suite and reads which tests passed."""

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from iterdev.core.verification import SuiteReport, excerpt
from iterdev.host.test_suites import reports
from iterdev.host.test_suites.detect import (
    _NPM,
    _RUNNERS,
    Kind,
    Suite,
    _end_of_call,
    _Runner,
    kind_behind_npm,
    read_text,
)
from iterdev.host.test_suites.reports import Tally


class Finished(Protocol):
    @property
    def code(self) -> int: ...
    @property
    def timed_out(self) -> bool: ...
    @property
    def stdout(self) -> bytes: ...
    @property
    def stderr(self) -> bytes: ...


class Run(Protocol):
    async def __call__(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> Finished: ...


_NODE_OPTIONS = (
    "--test-reporter=spec --test-reporter-destination=stdout"
    ' --test-reporter=junit "--test-reporter-destination={report}"'
)
_TRACELESS = {
    "CI": "true",  # keeps jest and vitest from watching files, and from writing snapshots that are missing
    "COVERAGE_FILE": "{report}.coverage",
    "HYPOTHESIS_STORAGE_DIRECTORY": "{report}.hypothesis",
    "PYTHONDONTWRITEBYTECODE": "1",
}


async def measure(
    suite: Suite, root: Path, *, run: Run, scratch: Path, env: Mapping[str, str], limit: float
) -> SuiteReport:
    """Runs the suite in root, leaving no traces there, and reads the runner's own report if it wrote one."""
    kind = kind_behind_npm(root) if suite.kind == "npm" else suite.kind
    runner = _RUNNERS.get(kind)
    with _folder(scratch) as folder:
        report = Path(folder, "report")
        command = _reporting(suite.command, runner, report) if runner else suite.command
        environment = _environment(kind, root, report, env)
        finished = await run(("sh", "-c", command), cwd=str(root), env=environment, limit=limit)
        text = _relative(read_text(report), root)
    tally = runner.read(text) if runner and not finished.timed_out else None
    return _report(suite, finished, tally, printed=_printed(kind, text))


def _folder(scratch: Path) -> tempfile.TemporaryDirectory[str]:
    scratch.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=scratch.resolve(), prefix="tests-")


def _reporting(command: str, runner: _Runner, report: Path) -> str:
    quoted = shlex.quote(str(report))
    flags = runner.flags.format(report=quoted)
    if _NPM.fullmatch(command):
        end, glue = len(command), " " if " -- " in command else " -- "
    else:
        end, glue = _end_of_call(runner, command), " "
    called = f"{command[:end]}{glue}{flags}{command[end:]}" if flags else command
    return f"{called} {runner.stream} {quoted}" if runner.stream else called


def _environment(kind: Kind, root: Path, report: Path, env: Mapping[str, str]) -> Mapping[str, str]:
    traceless = {name: value.format(report=report) for name, value in _TRACELESS.items()}
    if kind == "node":
        traceless["NODE_OPTIONS"] = f"{env.get('NODE_OPTIONS', '')} {_NODE_OPTIONS.format(report=report)}"
    if kind == "cargo" and "target" not in read_text(root / ".gitignore"):
        traceless["CARGO_TARGET_DIR"] = str(report.parent.parent / "target")
    return {**env, **traceless}


def _relative(text: str, root: Path) -> str:
    """Names files as seen from root, for the same tests run in several worktrees."""
    for top in {root.absolute(), root.resolve()}:
        text = text.replace(f"{top}/", "")
    return text


def _printed(kind: Kind, report: str) -> str:
    """What the user would have seen, had the runner's words not been kept in a file."""
    if kind == "go":
        return reports.go_output(report)
    return report if kind in _RUNNERS and _RUNNERS[kind].stream else ""


def _report(suite: Suite, finished: Finished, tally: Tally | None, *, printed: str) -> SuiteReport:
    named = tally or Tally()
    outputs = (finished.stdout.decode(errors="replace"), finished.stderr.decode(errors="replace"), printed)
    return SuiteReport(
        command=suite.command,
        exit_code=finished.code,
        timed_out=finished.timed_out,
        passed=named.passed,
        failed=named.failed,
        skipped=named.skipped,
        counted=tally is not None,
        output=excerpt(*outputs),
    )
