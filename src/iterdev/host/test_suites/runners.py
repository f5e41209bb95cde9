"""How each runner is asked for a report, how the report is read, and how the runner is restricted to some tests."""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.host.test_suites.invocations import Invocation, program_name
from iterdev.host.test_suites.projects.files import read_text
from iterdev.host.test_suites.reports import json, text, xml
from iterdev.host.test_suites.reports.events import events, unfinished
from iterdev.host.test_suites.reports.tally import Tally, unnumbered
from iterdev.host.test_suites.reports.tap import harness, tap
from iterdev.host.test_suites.suite import Kind

BUILD = "ITERDEV_BUILD"
"""The variable that names the folder for what is built, in commands that build outside of the tree."""


class Run(Struct, frozen=True):
    """The places of one run."""

    folder: Path
    """Where the command runs."""
    scratch: Path
    """Empty before the run, and deleted after it."""
    build: Path
    """Kept for the next run."""

    @property
    def report(self) -> Path:
        return self.scratch / "report"

    @property
    def selection(self) -> Path:
        return self.scratch / "selection.json"


class Results(Struct, frozen=True):
    """What a run left."""

    report: str
    stdout: str
    stderr: str
    files: Mapping[str, str] = {}
    """Reports by their names, where the runner writes several."""


def _nothing(_: Run) -> Mapping[str, str]:
    return {}


def _none(_: str) -> tuple[str, ...]:
    return ()


def _no_files(_: Run) -> Iterable[Path]:
    return ()


class Runner(Struct, frozen=True, kw_only=True):
    ask: Callable[[Invocation, Run], str]
    """The command with which the runner writes its report."""
    read: Callable[[Results], Tally | None]
    restrict: Callable[[Invocation, tuple[str, ...]], Invocation] | None = None
    environment: Callable[[Run], Mapping[str, str]] = _nothing
    files: Callable[[Run], Iterable[Path]] = _no_files
    """Further reports; those that the run did not write are not read."""
    running: Callable[[str], tuple[str, ...]] = _none
    """The tests that were running when the report was cut."""
    output: Callable[[str], str] = str
    """What a user would have seen, of a report that took the place of the output."""
    reporters: tuple[str, ...] = ()
    """Programs that run inside of the tests."""
    captures: bool = False
    """Whether the report is the standard output."""


def _flagged(call: Invocation, *flags: str, drop: str = "", drop_value: str = "", first: bool = False) -> Invocation:
    """Adds flags for the report, and drops those of the command that are against it.

    `drop` are flags without a value, `drop_value` flags with one, as the next word or behind an equals sign.
    """
    arguments = _without(call.arguments, frozenset(drop.split()), frozenset(drop_value.split()))
    cut = 0 if first else arguments.index("--") if "--" in arguments else len(arguments)
    return msgspec.structs.replace(call, arguments=(*arguments[:cut], *flags, *arguments[cut:]))


def _without(arguments: tuple[str, ...], plain: frozenset[str], valued: frozenset[str]) -> tuple[str, ...]:
    """What follows a -- is not the runner's."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept: list[str] = []
    skip = False
    for word in arguments[:end]:
        name, equals, _ = word.partition("=")
        if skip:
            skip = False
        elif name in valued:
            skip = not equals
        elif name not in plain:
            kept.append(word)
    return (*kept, *arguments[end:])


def _captured(call: Invocation, run: Run, *, errors: bool = False) -> str:
    return f"{call.text()} > {_quoted(run.report)}{' 2>&1' if errors else ''}"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _alternatives(names: Iterable[str]) -> str:
    """A regular expression for any of the names, that Python, JavaScript, Go, Ruby and PHP read alike."""
    return "|".join(re.sub(r"([\\^$.|?*+()\[\]{}/])", r"\\\1", name) for name in dict.fromkeys(names))


def _titles(tests: Iterable[str]) -> list[str]:
    """The titles in names such as `file::outer > inner`."""
    return [unnumbered(test).partition("::")[2] or unnumbered(test) for test in tests]


def _events(results: Results) -> Tally | None:
    return events(results.report)


def _event_file(run: Run) -> Mapping[str, str]:
    return {"ITERDEV_TEST_EVENTS": str(run.report)}


def _python_environment(run: Run) -> Mapping[str, str]:
    selection = {"ITERDEV_TEST_SELECTION": str(run.selection)} if run.selection.exists() else {}
    return {**_event_file(run), **selection, "PYTHONPATH": str(run.scratch)}


def _selected(call: Invocation, _: tuple[str, ...]) -> Invocation:
    return call  # the reporter reads the selection from a file


_PYTHONPATH = re.compile(r"(?<!\S)(PYTHONPATH=\S*)")


def _python_path(call: Invocation, run: Run) -> Invocation:
    """The reporter is found even if the command sets the path."""
    path = _quoted(run.scratch)
    return msgspec.structs.replace(call, before=_PYTHONPATH.sub(lambda match: f"{match[1]}:{path}", call.before))


def _pytest(call: Invocation, run: Run) -> str:
    flags = (
        "-p iterdev_pytest_events",
        "--maxfail=0",  # a rate needs every test, so a limit of failures in the project's settings is lifted
        "--continue-on-collection-errors",
        f"-o cache_dir={_quoted(run.scratch / 'cache')}",
    )
    return _flagged(_python_path(call, run), *flags, drop_value="--junitxml --junit-xml").text()


def _unittest(call: Invocation, run: Run) -> str:
    launcher = _quoted(run.scratch / "iterdev_unittest_events.py")
    adapted = _python_path(call, run)
    return msgspec.structs.replace(adapted, program=(*adapted.program, launcher)).text()


def _mocha(call: Invocation, run: Run) -> str:
    reporter = _quoted(run.scratch / "mocha_events.cjs")
    drop_value = "-R --reporter -O --reporter-option --reporter-options"
    return _flagged(call, f"--reporter {reporter}", drop="-b --bail -w --watch", drop_value=drop_value).text()


def _mocha_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    titles = (title.replace(" > ", " ") for title in _titles(tests))
    pattern = shlex.quote(f"/^({_alternatives(titles)})$/")
    return _flagged(call, f"--grep {pattern}", drop="-i --invert", drop_value="-g --grep -f --fgrep")


def _jest(call: Invocation, run: Run) -> str:
    flags = ("--json", f"--outputFile={_quoted(run.report)}", "--coverage=false", "--bail=0")
    return _flagged(call, *flags, drop="--watch --watchAll --coverage --bail -b", drop_value="--outputFile").text()


def _by_title(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    titles = (title.replace(" > ", " ") for title in _titles(tests))
    pattern = shlex.quote(f"^({_alternatives(titles)})$")
    return _flagged(call, f"-t {pattern}", drop_value="-t --testNamePattern")


def _vitest(call: Invocation, run: Run) -> str:
    flags = (
        "--run --reporter=default --reporter=json",
        f"--outputFile.json={_quoted(run.report)}",
        "--coverage.enabled=false",
        "--bail=0",
    )
    return _flagged(call, *flags, drop="watch dev --watch -w --coverage", drop_value="--reporter --bail").text()


def _ava(call: Invocation, run: Run) -> str:
    return _captured(_flagged(call, "--tap", drop="-t --tap -v --verbose -w --watch --fail-fast"), run)


_AVA_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "


def _ava_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    titles = dict.fromkeys(unnumbered(test).rpartition(_AVA_SEPARATOR)[2] for test in tests)
    return _flagged(call, *(f"--match={shlex.quote(title)}" for title in titles), drop_value="-m --match")


_TAP_VALUES = "-R --reporter"


def _tap(call: Invocation, run: Run) -> str:
    if program_name(call.program[-1]) != "tap":
        return _captured(call, run)
    return _captured(_flagged(call, "--reporter=tap", *_no_coverage(run.folder), drop_value=_TAP_VALUES), run)


def _no_coverage(folder: Path) -> tuple[str, ...]:
    """node-tap fails if not every line is covered."""
    for top in (folder, *folder.parents):
        if version := re.search(r'"version": *"(\d{1,4})\.', read_text(top / "node_modules/tap/package.json")):
            return ("--disable-coverage", "--allow-empty-coverage") if int(version[1]) >= 18 else ("--no-coverage",)
    return ()


def _node(call: Invocation, run: Run) -> str:
    reporter = _quoted(run.scratch / "node_events.mjs")
    flags = (f"--test-reporter={reporter}", "--test-reporter-destination=stdout")
    drop_value = "--test-reporter --test-reporter-destination"
    drop = "--watch --experimental-test-coverage"
    return _flagged(call, *flags, drop=drop, drop_value=drop_value, first=True).text()


def _node_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    pattern = f"^({_alternatives(title.rpartition(' > ')[2] for title in _titles(tests))})$"
    return _flagged(call, shlex.quote(f"--test-name-pattern={pattern}"), drop_value="--test-name-pattern", first=True)


def _jasmine(call: Invocation, run: Run) -> str:
    reporter = _quoted(run.scratch / "jasmine_events.cjs")
    return _flagged(call, f"--reporter={reporter}", drop="--fail-fast", drop_value="--reporter").text()


def _go(call: Invocation, run: Run) -> str:
    return _captured(_flagged(call, "-json", drop="-json -failfast -v", first=True), run)


def _go_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    functions = (title.partition("/")[0] for title in _titles(tests))
    return _flagged(call, f"-run {shlex.quote(f'^({_alternatives(functions)})$')}", drop_value="-run", first=True)


def _cargo(call: Invocation, run: Run) -> str:
    return _captured(_flagged(call, "--no-fail-fast", drop="--no-fail-fast -q --quiet"), run, errors=True)


def _cargo_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    """The name of the binary comes first; a filter is any part of a name."""
    filters = dict.fromkeys(shlex.quote(title) for title in _titles(tests))
    glue = () if "--" in call.arguments else ("--",)
    return msgspec.structs.replace(call, arguments=(*call.arguments, *glue, *filters))


_NEXTEST = '[profile.default.junit]\npath = "{report}"\n'


def _nextest(call: Invocation, run: Run) -> str:
    settings = run.scratch / "nextest.toml"
    settings.write_text(_NEXTEST.format(report=run.report), encoding="utf-8")
    return _flagged(
        call, "--no-fail-fast", f"--tool-config-file iterdev:{_quoted(settings)}", drop="--no-fail-fast"
    ).text()


def _written(*patterns: str) -> Callable[[Run], Iterable[Path]]:
    return lambda run: (path for pattern in patterns for path in sorted(run.folder.glob(pattern)))


def _maven(call: Invocation, _: Run) -> str:
    return _flagged(call, "-B", "-fae", drop="-ff --fail-fast -q").text()


_PARAMETERS = re.compile(r"[\[({ ]")


def _maven_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    """A parameterised test is run with all of its parameters."""
    wanted = dict.fromkeys(_PARAMETERS.split(unnumbered(test).replace("::", "#", 1))[0] for test in tests)
    ignored = ("-Dsurefire.failIfNoSpecifiedTests=false", "-DfailIfNoTests=false")
    return _flagged(call, shlex.quote(f"-Dtest={','.join(wanted)}"), *ignored)


def _gradle(call: Invocation, _: Run) -> str:
    return _flagged(call, "--continue", "--no-build-cache", drop="--continue").text()


def _gradle_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    names = (unnumbered(test).replace("::", ".") for test in tests)
    wanted = dict.fromkeys(_PARAMETERS.split(name)[0] for name in names)
    return _flagged(call, *(f"--tests {shlex.quote(name)}" for name in wanted))


def _xml_files(results: Results) -> Tally | None:
    return xml.junit(*results.files.values())


def _ctest(call: Invocation, run: Run) -> str:
    return _flagged(
        call, f"--output-junit {_quoted(run.report)}", "--output-on-failure", drop="--stop-on-failure"
    ).text()


def _ctest_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    return _flagged(call, f"-R {shlex.quote(f'^({_alternatives(map(unnumbered, tests))})$')}", drop_value="-R")


def _meson(call: Invocation, _: Run) -> str:
    return _flagged(call, "--print-errorlogs", drop_value="--maxfail").text()


def _meson_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    names = dict.fromkeys(unnumbered(test).rpartition(" / ")[2] for test in tests)
    return msgspec.structs.replace(call, arguments=(*call.arguments, *map(shlex.quote, names)))


def _meson_log(run: Run) -> Iterable[Path]:
    return (run.build / "meson-logs/testlog.json",)


def _meson_results(results: Results) -> Tally | None:
    return json.meson(next(iter(results.files.values()), ""), results.stdout)


def _plain(call: Invocation, _: Run) -> str:
    return call.text()


def _trs(run: Run) -> Iterable[Path]:
    return sorted((run.scratch / "source").rglob("*.trs"))


def _rspec(call: Invocation, run: Run) -> str:
    flags = (f"--format json --out {_quoted(run.report)} --format progress", "--no-fail-fast", "--no-color")
    return _flagged(call, *flags, drop="--fail-fast", drop_value="-f --format -o --out").text()


def _rspec_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    return _flagged(call, *(f"-e {shlex.quote(title)}" for title in dict.fromkeys(_titles(tests))))


def _ruby_environment(run: Run) -> Mapping[str, str]:
    return {**_event_file(run), "RUBYLIB": str(run.scratch), "RUBYOPT": "-riterdev_ruby_events"}


def _minitest_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    methods = (unnumbered(test).rpartition("::")[2] for test in tests)
    option = f"--name=/^({_alternatives(methods)})$/"
    if call.program[0].endswith("ruby"):
        return msgspec.structs.replace(call, arguments=(*call.arguments, "--", shlex.quote(option)))
    return _flagged(call, shlex.quote(f"TESTOPTS={shlex.quote(option)}"))


def _phpunit(call: Invocation, run: Run) -> str:
    flags = (f"--log-junit {_quoted(run.report)}", "--no-coverage", "--do-not-cache-result")
    drop = "--stop-on-failure --stop-on-error --stop-on-defect --no-coverage --do-not-cache-result"
    return _flagged(call, *flags, drop=drop, drop_value="--log-junit").text()


def _phpunit_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    methods = (re.split(r" with data set ", title)[0] for title in _titles(tests))
    return _flagged(call, f"--filter {shlex.quote(f'/::({_alternatives(methods)})( |$)/')}", drop_value="--filter")


def _flags(flags: str, drop: str = "") -> Callable[[Invocation, Run], str]:
    return lambda call, run: _flagged(call, flags.format(report=_quoted(run.report)), drop=drop).text()


def _junit_and_unloaded(unloaded: re.Pattern[str]) -> Callable[[Results], Tally | None]:
    """A file that cannot be loaded is in the output only; its name stands for its tests."""

    def read(results: Results) -> Tally | None:
        files = dict.fromkeys(unloaded.findall(f"{results.stdout}\n{results.stderr}"[-200_000:]))
        found = xml.junit(results.report) or (Tally() if files else None)
        return found and msgspec.structs.replace(found, failed=(*found.failed, *files))

    return read


def _bun_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    """The pattern is looked for in the titles around a test and its own, which comes last."""
    pattern = shlex.quote(f"(^| )({_alternatives(_titles(tests))})$")
    return _flagged(call, f"-t {pattern}", drop_value="-t --test-name-pattern")


def _deno_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    """A step is run with its test."""
    names = (title.partition(" > ")[0] for title in _titles(tests))
    return _flagged(call, f"--filter {shlex.quote(f'/^({_alternatives(names)})$/')}", drop_value="--filter")


def _filter_only(template: str, glue: str) -> Callable[[Invocation, tuple[str, ...]], Invocation]:
    def restrict(call: Invocation, tests: tuple[str, ...]) -> Invocation:
        names = dict.fromkeys(_PARAMETERS.split(unnumbered(test).replace("::", "."))[0] for test in tests)
        return _flagged(call, f"--filter {shlex.quote(glue.join(template.format(name) for name in names))}")

    return restrict


def _perl_environment(run: Run) -> Mapping[str, str]:
    return {"PERL_TEST_HARNESS_DUMP_TAP": str(run.scratch / "tap"), "HARNESS_NOTTY": "1"}


def _perl_files(run: Run) -> Iterable[Path]:
    return sorted(path for path in (run.scratch / "tap").rglob("*") if path.is_file())


_PROVE_FAILED = re.compile(r"^(\S+)\s+\(Wstat: \d{1,9}.* Tests: \d{1,9} Failed: \d{1,9}\)$", re.MULTILINE)


def _prove(results: Results) -> Tally | None:
    failed = frozenset(_PROVE_FAILED.findall(results.stdout[-200_000:]))
    streams = {name.removeprefix("tap/"): stream for name, stream in results.files.items()}
    return harness(streams, failed) if streams or failed else None


def _prove_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    programs = dict.fromkeys(unnumbered(test).partition(" > ")[0] for test in tests)
    options = tuple(word for word in call.arguments if word.startswith("-"))
    return msgspec.structs.replace(call, arguments=(*options, *map(shlex.quote, programs)))


RUNNERS: Mapping[Kind, Runner] = {
    "pytest": Runner(
        ask=_pytest,
        read=_events,
        restrict=_selected,
        environment=_python_environment,
        running=unfinished,
        reporters=("iterdev_pytest_events.py",),
    ),
    "unittest": Runner(
        ask=_unittest,
        read=_events,
        restrict=_selected,
        environment=lambda run: {**_python_environment(run), "PYTEST_PLUGINS": "iterdev_pytest_events"},
        running=unfinished,
        reporters=("iterdev_unittest_events.py", "iterdev_pytest_events.py"),
    ),
    "mocha": Runner(
        ask=_mocha,
        read=_events,
        restrict=_mocha_only,
        environment=_event_file,
        running=unfinished,
        reporters=("mocha_events.cjs",),
    ),
    "jest": Runner(ask=_jest, read=lambda results: json.jest(results.report), restrict=_by_title),
    "vitest": Runner(ask=_vitest, read=lambda results: json.jest(results.report), restrict=_by_title),
    "ava": Runner(ask=_ava, read=lambda results: tap(results.report), restrict=_ava_only, captures=True),
    "uvu": Runner(
        ask=_captured,
        read=lambda results: text.uvu(results.report),
        environment=lambda _: {"FORCE_COLOR": "0", "NO_COLOR": "1"},
        captures=True,
    ),
    "node": Runner(
        ask=_node,
        read=_events,
        restrict=_node_only,
        environment=_event_file,
        running=unfinished,
        reporters=("node_events.mjs",),
    ),
    "jasmine": Runner(
        ask=_jasmine, read=_events, environment=_event_file, running=unfinished, reporters=("jasmine_events.cjs",)
    ),
    "bun": Runner(
        ask=_flags("--reporter=junit --reporter-outfile={report}", "--bail"),
        read=_junit_and_unloaded(re.compile(r"^(\S+):\n\n# Unhandled error between tests$", re.MULTILINE)),
        restrict=_bun_only,
    ),
    "deno": Runner(
        ask=_flags("--junit-path={report}", "--fail-fast"),
        read=_junit_and_unloaded(re.compile(r"^(\S+) \(uncaught error\)$", re.MULTILINE)),
        restrict=_deno_only,
        environment=lambda _: {"NO_COLOR": "1"},
    ),
    "tap": Runner(ask=_tap, read=lambda results: tap(results.report, comments=True), captures=True),
    "go": Runner(
        ask=_go,
        read=lambda results: json.go(results.report),
        restrict=_go_only,
        running=json.go_unfinished,
        output=json.go_output,
        captures=True,
    ),
    "cargo": Runner(
        ask=_cargo,
        read=lambda results: text.cargo(results.report),
        restrict=_cargo_only,
        running=text.cargo_unfinished,
        captures=True,
    ),
    "nextest": Runner(ask=_nextest, read=lambda results: xml.junit(results.report)),
    "maven": Runner(
        ask=_maven,
        read=_xml_files,
        restrict=_maven_only,
        files=_written("**/target/surefire-reports/TEST-*.xml", "**/target/failsafe-reports/TEST-*.xml"),
    ),
    "gradle": Runner(
        ask=_gradle, read=_xml_files, restrict=_gradle_only, files=_written("**/build/test-results/**/*.xml")
    ),
    "ctest": Runner(ask=_ctest, read=lambda results: xml.junit(results.report), restrict=_ctest_only),
    "meson": Runner(ask=_meson, read=_meson_results, restrict=_meson_only, files=_meson_log),
    "autotools": Runner(ask=_plain, read=lambda results: text.automake(results.files, results.stdout), files=_trs),
    "rspec": Runner(ask=_rspec, read=lambda results: json.rspec(results.report), restrict=_rspec_only),
    "minitest": Runner(
        ask=_plain,
        read=_events,
        restrict=_minitest_only,
        environment=_ruby_environment,
        running=unfinished,
        reporters=("iterdev_ruby_events.rb",),
    ),
    "phpunit": Runner(ask=_phpunit, read=lambda results: xml.junit(results.report), restrict=_phpunit_only),
    "swift": Runner(
        ask=_flags("--parallel --xunit-output {report}"),
        read=lambda results: xml.junit(results.report),
        restrict=_filter_only("{}", "|"),
    ),
    "dotnet": Runner(
        ask=lambda call, run: _flagged(call, "--logger trx", f"--results-directory {_quoted(run.scratch)}").text(),
        read=lambda results: xml.trx(*results.files.values()),
        restrict=_filter_only("FullyQualifiedName~{}", "|"),
        files=lambda run: sorted(run.scratch.glob("*.trx")),
    ),
    "prove": Runner(ask=_plain, read=_prove, restrict=_prove_only, environment=_perl_environment, files=_perl_files),
    "make": Runner(ask=_plain, read=lambda results: tap(results.stdout)),
}
"""A kind that is not here is known by its exit code only."""
