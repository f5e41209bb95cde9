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
from iterdev.host.test_suites.reports.events import cut_short, events, unfinished
from iterdev.host.test_suites.reports.tally import Tally, unnumbered
from iterdev.host.test_suites.reports.tap import harness, tap, tap_output
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


def _never(_: str) -> bool:
    return False


def _no_files(_: Run) -> Iterable[Path]:
    return ()


Ask = Callable[[Invocation, Run], str]
Restrict = Callable[[Invocation, tuple[str, ...]], Invocation]


class Runner(Struct, frozen=True, kw_only=True):
    ask: Ask
    """The command with which the runner writes its report."""
    read: Callable[[Results], Tally | None]
    restrict: Restrict | None = None
    environment: Callable[[Run], Mapping[str, str]] = _nothing
    files: Callable[[Run], Iterable[Path]] = _no_files
    """Further reports; those that the run did not write are not read."""
    running: Callable[[str], tuple[str, ...]] = _none
    """The tests that were running when the report was cut."""
    cut_short: Callable[[str], bool] = _never
    """Whether the run ended, by itself, before all tests had run."""
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


def _asked(
    *flags: str,
    drop: str = "",
    drop_value: str = "",
    first: bool = False,
    capture: str = "",
    settings: tuple[str, str] | None = None,
) -> Ask:
    """Asks by flags, in which {report}, {scratch} and {settings} are places of the run.

    `capture` is the redirection of an output that is the report, `settings` the name and text of a file.
    """

    def ask(call: Invocation, run: Run) -> str:
        name, content = settings or ("", "")
        if settings:
            (run.scratch / name).write_text(content.replace("{report}", str(run.report)), encoding="utf-8")
        paths = {"report": run.report, "scratch": run.scratch, "settings": run.scratch / name}
        places = {place: _quoted(path) for place, path in paths.items()}
        words = (flag.format(**places) for flag in flags)
        return _flagged(call, *words, drop=drop, drop_value=drop_value, first=first).text() + capture.format(**places)

    return ask


OUTPUT, ALL_OUTPUT = " > {report}", " > {report} 2>&1"


def _plain(call: Invocation, _: Run) -> str:
    return call.text()


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _matching(
    flag: str, pattern: str, name: Callable[[str], str], *, drop: str = "", drop_value: str = "", first: bool = False
) -> Restrict:
    """Restricts by a flag with a regular expression for all the names."""

    def restrict(call: Invocation, tests: tuple[str, ...]) -> Invocation:
        expression = shlex.quote(pattern.format(_alternatives(map(name, tests))))
        return _flagged(call, f"{flag}{expression}", drop=drop, drop_value=drop_value, first=first)

    return restrict


def _naming(flag: str, name: Callable[[str], str], *more: str, glue: str = "", drop_value: str = "") -> Restrict:
    """Restricts by the flag for each name, or for all of them if they can be glued together."""

    def restrict(call: Invocation, tests: tuple[str, ...]) -> Invocation:
        names = list(dict.fromkeys(map(name, tests)))
        values = [glue.join(names)] if glue else names
        return _flagged(call, *(f"{flag}{shlex.quote(value)}" for value in values), *more, drop_value=drop_value)

    return restrict


def _alternatives(names: Iterable[str]) -> str:
    """A regular expression for any of the names, that Python, JavaScript, Go, Ruby and PHP read alike."""
    return "|".join(re.sub(r"([\\^$.|?*+()\[\]{}/])", r"\\\1", name) for name in dict.fromkeys(names))


def _title(test: str) -> str:
    """The titles in a name such as `file::outer > inner`."""
    return unnumbered(test).partition("::")[2] or unnumbered(test)


def _spaced_title(test: str) -> str:
    return _title(test).replace(" > ", " ")


_PARAMETERS = re.compile(r"[\[({ ]")


def _method(separator: str, template: str = "{}") -> Callable[[str], str]:
    """A parameterised test is run with all of its parameters."""
    return lambda test: template.format(_PARAMETERS.split(unnumbered(test).replace("::", separator))[0])


_by_title = _matching("-t ", "^({})$", _spaced_title, drop_value="-t --testNamePattern")


def _events(results: Results) -> Tally | None:
    return events(results.report)


def _event_file(run: Run) -> Mapping[str, str]:
    return {"ITERDEV_TEST_EVENTS": str(run.report)}


def _junit(results: Results) -> Tally | None:
    return xml.junit(results.report)


def _jest(results: Results) -> Tally | None:
    return json.jest(results.report)


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


_ask_pytest = _asked(
    "-p iterdev_pytest_events",
    "--maxfail=0",  # a rate needs every test, so a limit of failures in the project's settings is lifted
    "--continue-on-collection-errors",
    "-o cache_dir={scratch}/cache",
    drop_value="--junitxml --junit-xml",
)


def _pytest(call: Invocation, run: Run) -> str:
    return _ask_pytest(_python_path(call, run), run)


def _unittest(call: Invocation, run: Run) -> str:
    launcher = _quoted(run.scratch / "iterdev_unittest_events.py")
    adapted = _python_path(call, run)
    return msgspec.structs.replace(adapted, program=(*adapted.program, launcher)).text()


_AVA_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "


def _tap(call: Invocation, run: Run) -> str:
    if program_name(call.program[-1]) != "tap":
        return _asked(capture=OUTPUT)(call, run)
    flags = ("--reporter=tap", *_no_coverage(run.folder))
    return _asked(*flags, drop_value="-R --reporter", capture=OUTPUT)(call, run)


def _no_coverage(folder: Path) -> tuple[str, ...]:
    """node-tap fails if not every line is covered."""
    for top in (folder, *folder.parents):
        if version := re.search(r'"version": *"(\d{1,4})\.', read_text(top / "node_modules/tap/package.json")):
            return ("--disable-coverage", "--allow-empty-coverage") if int(version[1]) >= 18 else ("--no-coverage",)
    return ()


def _cargo_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    """The name of the binary comes first; a filter is any part of a name."""
    filters = dict.fromkeys(shlex.quote(_title(test)) for test in tests)
    glue = () if "--" in call.arguments else ("--",)
    return msgspec.structs.replace(call, arguments=(*call.arguments, *glue, *filters))


_NEXTEST = '[profile.default.junit]\npath = "{report}"\n'
_GRADLE = """\
allprojects {
    tasks.withType(Test) {
        testLogging.exceptionFormat = 'full'
        filter.failOnNoMatchingTests = false
        // A module that did not change would be skipped, and write no report.
        outputs.upToDateWhen { false }
    }
}
"""


def _written(*patterns: str) -> Callable[[Run], Iterable[Path]]:
    return lambda run: (path for pattern in patterns for path in sorted(run.folder.glob(pattern)))


def _xml_files(results: Results) -> Tally | None:
    return xml.junit(*results.files.values())


def _meson_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    names = dict.fromkeys(unnumbered(test).rpartition(" / ")[2] for test in tests)
    return msgspec.structs.replace(call, arguments=(*call.arguments, *map(shlex.quote, names)))


def _meson_log(run: Run) -> Iterable[Path]:
    return (run.build / "meson-logs/testlog.json",)


def _meson_results(results: Results) -> Tally | None:
    return json.meson(next(iter(results.files.values()), ""), results.stdout)


def _trs(run: Run) -> Iterable[Path]:
    return sorted((run.scratch / "source").rglob("*.trs"))


def _ruby_environment(run: Run) -> Mapping[str, str]:
    return {**_event_file(run), "RUBYLIB": str(run.scratch), "RUBYOPT": "-riterdev_ruby_events"}


def _minitest_only(call: Invocation, tests: tuple[str, ...]) -> Invocation:
    methods = (unnumbered(test).rpartition("::")[2] for test in tests)
    option = f"--name=/^({_alternatives(methods)})$/"
    if call.program[0].endswith("ruby"):
        return msgspec.structs.replace(call, arguments=(*call.arguments, "--", shlex.quote(option)))
    return _flagged(call, shlex.quote(f"TESTOPTS={shlex.quote(option)}"))


def _junit_and_unloaded(unloaded: re.Pattern[str]) -> Callable[[Results], Tally | None]:
    """A file that cannot be loaded is in the output only; its name stands for its tests."""

    def read(results: Results) -> Tally | None:
        files = dict.fromkeys(unloaded.findall(f"{results.stdout}\n{results.stderr}"[-200_000:]))
        found = xml.junit(results.report) or (Tally() if files else None)
        return found and msgspec.structs.replace(found, failed=(*found.failed, *files))

    return read


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
        cut_short=cut_short,
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
        ask=_asked(
            "--reporter {scratch}/mocha_events.cjs",
            drop="-b --bail -w --watch",
            drop_value="-R --reporter -O --reporter-option --reporter-options",
        ),
        read=_events,
        restrict=_matching("--grep ", "/^({})$/", _spaced_title, drop="-i --invert", drop_value="-g --grep -f --fgrep"),
        environment=_event_file,
        running=unfinished,
        cut_short=cut_short,
        reporters=("mocha_events.cjs", "event_file.cjs"),
    ),
    "jest": Runner(
        ask=_asked(
            *("--json", "--outputFile={report}", "--coverage=false", "--bail=0"),
            drop="--watch --watchAll --coverage --bail -b",
            drop_value="--outputFile",
        ),
        read=_jest,
        restrict=_by_title,
    ),
    "vitest": Runner(
        ask=_asked(
            *("--run --reporter=default --reporter=json", "--outputFile.json={report}"),
            *("--coverage.enabled=false", "--bail=0"),
            drop="watch dev --watch -w --coverage",
            drop_value="--reporter --bail",
        ),
        read=_jest,
        restrict=_by_title,
    ),
    "ava": Runner(
        ask=_asked("--tap", drop="-t --tap -v --verbose -w --watch --fail-fast", capture=OUTPUT),
        read=lambda results: tap(results.report),
        restrict=_naming(
            "--match=", lambda test: unnumbered(test).rpartition(_AVA_SEPARATOR)[2], drop_value="-m --match"
        ),
        output=tap_output,
        captures=True,
    ),
    "uvu": Runner(
        ask=_asked(capture=OUTPUT),
        read=lambda results: text.uvu(results.report),
        environment=lambda _: {"FORCE_COLOR": "0", "NO_COLOR": "1"},
        captures=True,
    ),
    "node": Runner(
        ask=_asked(
            *("--test-reporter={scratch}/node_events.mjs", "--test-reporter-destination=stdout"),
            drop="--watch --experimental-test-coverage",
            drop_value="--test-reporter --test-reporter-destination",
            first=True,
        ),
        read=_events,
        restrict=_matching(
            "--test-name-pattern=",
            "^({})$",
            lambda test: _title(test).rpartition(" > ")[2],
            drop_value="--test-name-pattern",
            first=True,
        ),
        environment=_event_file,
        running=unfinished,
        cut_short=cut_short,
        reporters=("node_events.mjs",),
    ),
    "jasmine": Runner(
        ask=_asked("--reporter={scratch}/jasmine_events.cjs", drop="--fail-fast", drop_value="--reporter"),
        read=_events,
        environment=_event_file,
        running=unfinished,
        cut_short=cut_short,
        reporters=("jasmine_events.cjs", "event_file.cjs"),
    ),
    "bun": Runner(
        ask=_asked("--reporter=junit --reporter-outfile={report}", drop="--bail"),
        read=_junit_and_unloaded(re.compile(r"^(\S+):\n\n# Unhandled error between tests$", re.MULTILINE)),
        # The pattern is looked for in the titles around a test and its own, which comes last.
        restrict=_matching("-t ", "(^| )({})$", _title, drop_value="-t --test-name-pattern"),
    ),
    "deno": Runner(
        ask=_asked("--junit-path={report}", drop="--fail-fast"),
        read=_junit_and_unloaded(re.compile(r"^(\S+) \(uncaught error\)$", re.MULTILINE)),
        # A step is run with its test.
        restrict=_matching(
            "--filter ", "/^({})$/", lambda test: _title(test).partition(" > ")[0], drop_value="--filter"
        ),
        environment=lambda _: {"NO_COLOR": "1"},
    ),
    "tap": Runner(ask=_tap, read=lambda results: tap(results.report, comments=True), output=tap_output, captures=True),
    "go": Runner(
        ask=_asked("-json", drop="-json -failfast -v", first=True, capture=OUTPUT),
        read=lambda results: json.go(results.report),
        restrict=_matching(
            "-run ", "^({})$", lambda test: _title(test).partition("/")[0], drop_value="-run", first=True
        ),
        running=json.go_unfinished,
        output=json.go_output,
        captures=True,
    ),
    "cargo": Runner(
        ask=_asked("--no-fail-fast", drop="--no-fail-fast -q --quiet", capture=ALL_OUTPUT),
        read=lambda results: text.cargo(results.report),
        restrict=_cargo_only,
        running=text.cargo_unfinished,
        captures=True,
    ),
    "nextest": Runner(
        ask=_asked(
            *("--no-fail-fast", "--tool-config-file iterdev:{settings}"),
            drop="--no-fail-fast",
            settings=("nextest.toml", _NEXTEST),
        ),
        read=_junit,
    ),
    "maven": Runner(
        ask=_asked("-B", "-fae", drop="-ff --fail-fast -q"),
        read=_xml_files,
        restrict=_naming(
            "-Dtest=", _method("#"), "-Dsurefire.failIfNoSpecifiedTests=false", "-DfailIfNoTests=false", glue=","
        ),
        files=_written("**/target/surefire-reports/TEST-*.xml", "**/target/failsafe-reports/TEST-*.xml"),
    ),
    "gradle": Runner(
        # The daemon would run the tests outside of our process tree, and outlive them.
        ask=_asked(
            *("--continue", "--no-build-cache", "--no-daemon", "--init-script {settings}"),
            drop="--continue --daemon --no-daemon",
            settings=("iterdev.gradle", _GRADLE),
        ),
        read=_xml_files,
        restrict=_naming("--tests ", _method(".")),
        files=_written("**/build/test-results/**/*.xml"),
    ),
    "ctest": Runner(
        ask=_asked("--output-junit {report}", "--output-on-failure", drop="--stop-on-failure"),
        read=_junit,
        restrict=_matching("-R ", "^({})$", unnumbered, drop_value="-R"),
    ),
    "meson": Runner(
        ask=_asked("--print-errorlogs", drop_value="--maxfail"),
        read=_meson_results,
        restrict=_meson_only,
        files=_meson_log,
    ),
    "autotools": Runner(ask=_plain, read=lambda results: text.automake(results.files, results.stdout), files=_trs),
    "rspec": Runner(
        ask=_asked(
            *("--format json --out {report} --format progress", "--no-fail-fast", "--no-color"),
            drop="--fail-fast",
            drop_value="-f --format -o --out",
        ),
        read=lambda results: json.rspec(results.report),
        restrict=_naming("-e ", _title),
    ),
    "minitest": Runner(
        ask=_plain,
        read=_events,
        restrict=_minitest_only,
        environment=_ruby_environment,
        running=unfinished,
        reporters=("iterdev_ruby_events.rb",),
    ),
    "phpunit": Runner(
        ask=_asked(
            *("--log-junit {report}", "--no-coverage", "--do-not-cache-result"),
            drop="--stop-on-failure --stop-on-error --stop-on-defect --no-coverage --do-not-cache-result",
            drop_value="--log-junit",
        ),
        read=_junit,
        restrict=_matching(
            "--filter ", "/::({})( |$)/", lambda test: _title(test).split(" with data set ")[0], drop_value="--filter"
        ),
    ),
    "swift": Runner(
        ask=_asked("--parallel --xunit-output {report}"),
        read=_junit,
        restrict=_naming("--filter ", _method("."), glue="|"),
    ),
    "dotnet": Runner(
        ask=_asked("--logger trx", "--results-directory {scratch}"),
        read=lambda results: xml.trx(*results.files.values()),
        restrict=_naming("--filter ", _method(".", "FullyQualifiedName~{}"), glue="|"),
        files=lambda run: sorted(run.scratch.glob("*.trx")),
    ),
    "prove": Runner(ask=_plain, read=_prove, restrict=_prove_only, environment=_perl_environment, files=_perl_files),
    "make": Runner(ask=_plain, read=lambda results: tap(results.stdout)),
}
"""A kind that is not here is known by its exit code only."""
