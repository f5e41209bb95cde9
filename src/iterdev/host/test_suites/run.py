"""Runs a test suite and reads which tests passed."""

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import msgspec
from anyio.to_thread import run_sync

from iterdev.core.verification import READ_LIMIT, SuiteReport, excerpt
from iterdev.host import untrusted_files
from iterdev.host.processes.spawn import ProgramResult
from iterdev.host.test_suites.invocations import NPM, Invocation, recognise
from iterdev.host.test_suites.projects import node
from iterdev.host.test_suites.projects.files import parent, read_text
from iterdev.host.test_suites.reports.tally import Tally, unnumbered
from iterdev.host.test_suites.reports.tap import tap
from iterdev.host.test_suites.runners import BUILD, RUNNERS, Results, Run, Runner
from iterdev.host.test_suites.suite import Suite

REPORT_LIMIT = 64 * 1024 * 1024
"""Bytes of all reports of a run; larger ones are not read."""
REPORTS = 10_000
"""Files with reports of a run."""
CUT_SHORT = "The tests ended before all of them had run, with exit code 0, as if one of them had called exit"
_REPORTERS = Path(__file__).with_name("reporters")
_NOT_FOUND = 127
"""The exit code with which the shell says that there is no such program."""


class RunCommand(Protocol):
    async def __call__(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float
    ) -> ProgramResult: ...


_NO_FILES = {
    "COVERAGE_FILE": "{scratch}/coverage",
    "HYPOTHESIS_STORAGE_DIRECTORY": "{scratch}/hypothesis",
    "NODE_V8_COVERAGE": "",
    "PYTHONDONTWRITEBYTECODE": "1",
}
_WATCHERS = frozenset({"jest", "vitest", "ava", "npm"})
"""Runners that watch files and write missing snapshots unless CI is set; other tests behave as for their author."""
_JOINED = {"PYTHONPATH": ":", "RUBYLIB": ":", "RUBYOPT": " ", "PYTEST_PLUGINS": ","}
"""Variables to which a value is added, with what separates their values."""


def only(suite: Suite, tests: Sequence[str]) -> Suite | None:
    """The suite restricted to the named tests, or nearly so, or None if its runner cannot be restricted."""
    runner = RUNNERS.get(suite.kind)
    possible = runner is not None and runner.restrict is not None and recognise(suite.command) is not None
    return msgspec.structs.replace(suite, tests=tuple(tests)) if possible and tests else None


async def measure(
    suite: Suite, root: Path, *, run: RunCommand, scratch: Path, env: Mapping[str, str], limit: float
) -> SuiteReport:
    """Runs the suite in root without leaving files there, and reads the runner's own report if it wrote one."""
    named, suite = suite.command, behind_npm(suite, root)
    call = recognise(suite.command)
    runner = RUNNERS.get(suite.kind) if call else None
    with _folder(scratch) as temporary:
        places = Run(root / suite.folder, Path(temporary), _build_folder(Path(temporary).parent, root, suite))
        command = _prepared(suite, call, runner, places) if call and runner else suite.command
        before = _times(runner, places)
        environment = _environment(suite, root, runner, places, env)
        finished = await run(("sh", "-c", command), cwd=str(places.folder), env=environment, limit=limit)
        temp = env.get("TMPDIR", "/tmp")  # noqa: S108 - where programs put their files by default
        named_suite = msgspec.structs.replace(suite, command=named)
        read = partial(_read, named_suite, finished, runner, places, before, root, temp)
        # Beside the event loop: a large report takes seconds, in which the user may stop the run.
        return await run_sync(read, abandon_on_cancel=True)


def _folder(scratch: Path) -> TemporaryDirectory[str]:
    scratch.mkdir(parents=True, exist_ok=True)
    return TemporaryDirectory(dir=scratch.resolve(), prefix="tests-")


def behind_npm(suite: Suite, root: Path) -> Suite:
    """The commands of the package's own script, so that its runner can be asked for a report."""
    match = NPM.fullmatch(suite.command)
    script = node.test_script(root / suite.folder, match["script"] or "test", match["arguments"] or "") if match else ""
    call = recognise(script)
    return msgspec.structs.replace(suite, command=script, kind=call.kind) if call else suite


def _build_folder(scratch: Path, root: Path, suite: Suite) -> Path:
    source = f"{root.resolve()}/{suite.folder}/{suite.kind}"
    return scratch / f"build-{hashlib.sha256(source.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


def _prepared(suite: Suite, call: Invocation, runner: Runner, places: Run) -> str:
    for name in runner.reporters:
        shutil.copy(_REPORTERS / name, places.scratch)
    if suite.tests and runner.restrict:
        places.selection.write_bytes(msgspec.json.encode(_selectable(suite.tests)))
        call = runner.restrict(call, suite.tests)
    return runner.ask(call, places)


def _selectable(tests: Sequence[str]) -> list[str]:
    """A test whose name has an address is selected by its function, with all of its parameters.

    Tests of the same name are all selected.
    """
    names = dict.fromkeys((*tests, *map(unnumbered, tests)))
    return [name.partition("[")[0] if "0x…" in name else name for name in names]


def _environment(
    suite: Suite, root: Path, runner: Runner | None, places: Run, env: Mapping[str, str]
) -> Mapping[str, str]:
    variables = {name: value.format(scratch=places.scratch) for name, value in _NO_FILES.items()}
    if suite.kind in _WATCHERS:
        variables["CI"] = "true"
    variables[BUILD] = str(places.scratch / "source" if suite.kind == "autotools" else places.build)
    if suite.kind == "cargo" and "target" not in read_text(root / ".gitignore"):
        variables["CARGO_TARGET_DIR"] = env.get("CARGO_TARGET_DIR", str(places.scratch.parent / "target"))
    if tools := _node_tools(root, suite.folder):
        variables["PATH"] = ":".join((*tools, env.get("PATH", "")))
    for name, value in (runner.environment(places) if runner else {}).items():
        given = env.get(name, "") if name in _JOINED else ""
        variables[name] = f"{value}{_JOINED[name]}{given}" if given else value
    return {**env, **variables}


def _node_tools(root: Path, folder: str) -> list[str]:
    """Where npm itself looks for the programs of a script."""
    tools = [str(root / folder / "node_modules/.bin")]
    while folder:
        folder = parent(folder)
        tools.append(str(root / folder / "node_modules/.bin"))
    return [path for path in tools if Path(path).is_dir()]


def _times(runner: Runner | None, places: Run) -> Mapping[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (runner.files(places) if runner else ()) if path.exists()}


def _read(
    suite: Suite,
    finished: ProgramResult,
    runner: Runner | None,
    places: Run,
    before: Mapping[Path, int],
    root: Path,
    temporary: str,
) -> SuiteReport:
    written = [path for path, time in _times(runner, places).items() if before.get(path) != time]
    size = sum(_size(path) for path in (places.report, *written))
    if size > REPORT_LIMIT or len(written) > REPORTS:
        much = f"its {len(written)} reports" if written else f"its report of {size // 2**20} MiB"
        note = f"iterdev: {much} cannot be read; {REPORT_LIMIT // 2**20} MiB in {REPORTS} files can"
        written, report = [], ""
    else:
        note, report = "", _report_text(places.report, places)
    results = Results(
        report=_relative(report, root, places.folder),
        stdout=finished.stdout.decode(errors="replace"),
        stderr=finished.stderr.decode(errors="replace"),
        files={_name(path, places): _relative(_report_text(path, places), root, places.folder) for path in written},
    )
    return _report(suite, finished, runner, results, note, temporary)


def _report_text(path: Path, places: Run) -> str:
    """The text of a report; tests can put anything in its place."""
    scratch = places.scratch.parent
    root = scratch if path.is_relative_to(scratch) else None
    return untrusted_files.read_or_empty(path, root=root, most=REPORT_LIMIT).decode("utf-8", "replace")


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _name(path: Path, places: Run) -> str:
    for top in (places.scratch / "source", places.scratch, places.build, places.folder):
        if path.is_relative_to(top):
            return str(path.relative_to(top))
    return path.name


def _relative(text: str, root: Path, folder: Path) -> str:
    """Makes paths relative to the suite, because the same tests run in several worktrees."""
    for top in (folder.absolute(), folder.resolve(), root.absolute(), root.resolve()):
        text = text.replace(f"{top}/", "")
    return text


def _without_temporary_names(results: Results, folder: str) -> Results:
    """The same for every run: some tests are named after their temporary files."""
    name = re.compile(rf"{re.escape(folder.rstrip('/'))}/[\w.+-]+")
    return Results(
        report=name.sub("$TMPDIR/…", results.report),
        stdout=name.sub("$TMPDIR/…", results.stdout),
        stderr=name.sub("$TMPDIR/…", results.stderr),
        files={file: name.sub("$TMPDIR/…", text) for file, text in results.files.items()},
    )


def _report(
    suite: Suite, finished: ProgramResult, runner: Runner | None, results: Results, note: str, temporary: str
) -> SuiteReport:
    tally = None
    if not finished.timed_out:
        named = _without_temporary_names(results, temporary)
        tally = runner.read(named) if runner else tap(named.stdout)
    counts = tally or Tally()
    captured = runner.output(results.report) if runner and runner.captures else ""
    well = finished.code == 0 and not finished.timed_out
    return SuiteReport(
        command=suite.command,
        folder=suite.folder,
        exit_code=finished.code,
        timed_out=finished.timed_out,
        passed=counts.passed,
        failed=counts.failed,
        skipped=counts.skipped,
        counted=tally is not None,
        hung=runner.running(results.report) if runner and finished.timed_out else (),
        doubt=CUT_SHORT if runner and well and runner.cut_short(results.report) else "",
        missing_program="" if tally else _missing(finished.code, results.stderr + captured[-READ_LIMIT:]),
        output=excerpt(results.stdout, results.stderr, captured, note),
    )


_NO_PROGRAM = re.compile(
    r"^[^:\n]{0,500}: (?:line )?(?:\d{1,9}: )?([^:\n]{1,200}): (?:command )?not found$"
    r"|^/?\S{0,100}env: .([^:\n]{1,200}).: No such file or directory$",
    re.MULTILINE,
)
_NO_MODULE = re.compile(r"^\S{0,500}python\S{0,100}: No module named '?([\w.]+)", re.MULTILINE)


def _missing(code: int, errors: str) -> str:
    """The program or the module without which the suite could not start."""
    found = _NO_PROGRAM.search(errors) if code == _NOT_FOUND else _NO_MODULE.search(errors) if code else None
    return (
        (found[1] or found[found.lastindex or 0])
        if found
        else "a program that the test command starts"
        if code == _NOT_FOUND
        else ""
    )
