"""Runs a test suite and reads which tests passed."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from iterdev.core.verification import SuiteReport, excerpt
from iterdev.host.processes.spawn import ProgramResult
from iterdev.host.test_suites import detect, reports
from iterdev.host.test_suites.detect import Kind, Suite, read_text


class RunCommand(Protocol):
    async def __call__(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float
    ) -> ProgramResult: ...


_NODE_OPTIONS = (
    "--test-reporter=spec --test-reporter-destination=stdout"
    ' --test-reporter=junit "--test-reporter-destination={report}"'
)
_NO_FILES = {
    "CI": "true",  # keeps jest and vitest from watching files, and from writing snapshots that are missing
    "COVERAGE_FILE": "{report}.coverage",
    "HYPOTHESIS_STORAGE_DIRECTORY": "{report}.hypothesis",
    "PYTHONDONTWRITEBYTECODE": "1",
}


async def measure(
    suite: Suite, root: Path, *, run: RunCommand, scratch: Path, env: Mapping[str, str], limit: float
) -> SuiteReport:
    """Runs the suite in root without leaving files there, and reads the runner's own report if it wrote one."""
    kind = detect.kind_behind_npm(root) if suite.kind == "npm" else suite.kind
    runner = detect.RUNNERS.get(kind)
    with _folder(scratch) as folder:
        report = Path(folder, "report")
        command = _reporting(suite.command, runner, report) if runner else suite.command
        environment = _environment(kind, root, report, env)
        finished = await run(("sh", "-c", command), cwd=str(root), env=environment, limit=limit)
        text = _relative(read_text(report), root)
    tally = runner.read(text) if runner and not finished.timed_out else None
    # The output of some runners was redirected to the report.
    printed = reports.go_output(text) if kind == "go" else text if runner and runner.stream else ""
    outputs = (finished.stdout.decode(errors="replace"), finished.stderr.decode(errors="replace"), printed)
    counts = tally or reports.Tally()
    return SuiteReport(
        command=suite.command,
        exit_code=finished.code,
        timed_out=finished.timed_out,
        passed=counts.passed,
        failed=counts.failed,
        skipped=counts.skipped,
        counted=tally is not None,
        output=excerpt(*outputs),
    )


def _folder(scratch: Path) -> TemporaryDirectory[str]:
    scratch.mkdir(parents=True, exist_ok=True)
    return TemporaryDirectory(dir=scratch.resolve(), prefix="tests-")


def _reporting(command: str, runner: detect.Runner, report: Path) -> str:
    quoted = shlex.quote(str(report))
    flags = runner.flags.format(report=quoted)
    if detect.NPM.fullmatch(command):
        end, glue = len(command), " " if " -- " in command else " -- "
    else:
        end, glue = detect.end_of_call(runner, command), " "
    called = f"{command[:end]}{glue}{flags}{command[end:]}" if flags else command
    return f"{called} {runner.stream} {quoted}" if runner.stream else called


def _environment(kind: Kind, root: Path, report: Path, env: Mapping[str, str]) -> Mapping[str, str]:
    variables = {name: value.format(report=report) for name, value in _NO_FILES.items()}
    if kind == "node":
        variables["NODE_OPTIONS"] = f"{env.get('NODE_OPTIONS', '')} {_NODE_OPTIONS.format(report=report)}"
    if kind == "cargo" and "target" not in read_text(root / ".gitignore"):
        variables["CARGO_TARGET_DIR"] = str(report.parent.parent / "target")
    return {**env, **variables}


def _relative(text: str, root: Path) -> str:
    """Makes paths relative to root, because the same tests run in several worktrees."""
    for top in {root.absolute(), root.resolve()}:
        text = text.replace(f"{top}/", "")
    return text
