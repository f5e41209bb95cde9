"""Recognises which test runner a command calls, behind variables, coverage tools and package managers."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from iterdev.host.test_suites import shell
from iterdev.host.test_suites.suite import Kind, Suite


class Invocation(Struct, frozen=True, kw_only=True):
    """The call of a runner; the parts are as they are written in the command."""

    kind: Kind
    before: str = ""
    """Everything before the program: other commands, variables, wrappers."""
    program: tuple[str, ...]
    """The words up to the runner's arguments."""
    arguments: tuple[str, ...] = ()

    def text(self) -> str:
        return self.before + " ".join((*self.program, *self.arguments))


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"python(?:\d(?:\.\d{1,2})?)?|pypy\d?|py")
_SCRIPT_SUFFIX = re.compile(r"\.(?:js|cjs|mjs|cmd|phar)$")

_PREFIXES = frozenset({"cross-env", "cross-env-shell", "env", "time", "command", "exec", "nice", "catchsegv"})
_COVERAGE = frozenset({"nyc", "c8", "dotenv", "xvfb-run", "istanbul"})
_EXECUTORS: Mapping[str, tuple[str, ...]] = {
    "uv": ("run",),
    "poetry": ("run",),
    "pdm": ("run",),
    "pipenv": ("run",),
    "hatch": ("run",),
    "rye": ("run",),
    "pixi": ("run",),
    "bundle": ("exec",),
    "npm": ("exec", "x"),
    "yarn": ("exec", "run", "dlx"),
    "pnpm": ("exec", "dlx"),
    "npx": (),
    "pnpx": (),
    "bunx": (),
    "yarnpkg": ("exec", "run"),
}
_NODE_PROGRAMS = frozenset({"node", "nodejs", "tsx", "ts-node", "ts-node-esm", "babel-node", "esmo", "bare-node"})
_NODE_VALUES = frozenset(
    {"-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions", "-P", "-T", "--env-file"}
)
_PYTHON_VALUES = frozenset({"-W", "-X"})
_UNITTEST_MODULES = frozenset({"unittest", "zope.testrunner", "twisted.trial", "django", "nose2"})

_RUNNERS: Mapping[str, Kind] = {
    "pytest": "pytest",
    "py.test": "pytest",
    "mocha": "mocha",
    "_mocha": "mocha",
    "electron-mocha": "custom",
    "jest": "jest",
    "vitest": "vitest",
    "ava": "ava",
    "uvu": "uvu",
    "jasmine": "jasmine",
    "tape": "tap",
    "tap": "tap",
    "qunit": "tap",
    "ctest": "ctest",
    "rspec": "rspec",
    "phpunit": "phpunit",
    "prove": "prove",
}
_SUBCOMMANDS: Mapping[tuple[str, str], Kind] = {
    ("go", "test"): "go",
    ("cargo", "test"): "cargo",
    ("cargo", "t"): "cargo",
    ("meson", "test"): "meson",
    ("swift", "test"): "swift",
    ("dotnet", "test"): "dotnet",
    ("bun", "test"): "bun",
    ("deno", "test"): "deno",
    ("rake", "test"): "minitest",
    ("rails", "test"): "minitest",
}
_BUILDS: Mapping[str, Kind] = {"mvn": "maven", "mvnw": "maven", "gradle": "gradle", "gradlew": "gradle"}
_BUILD_TASKS = frozenset({"test", "verify", "check", "build", "install", "package"})

LEFT_OUT = frozenset(
    {"karma", "playwright", "cypress", "cypress-run", "wdio", "testcafe", "nightwatch", "protractor", "ng", "detox"}
)
"""Runners that need a browser or a device."""


class _Found(Struct):
    kind: Kind
    program: int
    """The word with which the program starts, behind its wrappers."""
    arguments: int


def recognise(text: str) -> Invocation | None:
    """The runner that the last of the commands joined by && calls; only its tests are counted."""
    commands = shell.steps(text)
    if not commands or any(step.after not in {"", "&&"} for step in commands):
        return None
    words = commands[-1].words
    found = runner([word.text for word in words])
    if found is None:
        return None
    raw = [text[word.start : word.end] for word in words]
    return Invocation(
        kind=found.kind,
        before=text[: words[found.program].start],
        program=tuple(raw[found.program : found.arguments]),
        arguments=tuple(raw[found.arguments :]),
    )


def configured(text: str) -> Suite:
    """The suite that the user named; the runner is recognised if it is called directly."""
    call = recognise(text)
    return Suite(command=text, kind=call.kind if call else "npm" if NPM.fullmatch(text) else "custom")


NPM = re.compile(
    r"\s*(?:(?:npm|pnpm|yarn) +(?:-s +|--silent +)?(?:test|t)|"
    r"(?:npm|pnpm|yarn|bun) +run +(?:-s +|--silent +)?(?P<script>[\w:.-]{0,50}test[\w:.-]{0,50}))"
    r"(?: +-- (?P<arguments>.*))?\s*"
)
"""A script of the package that runs tests. `bun test` is none, but a runner."""


def runner(words: Sequence[str]) -> _Found | None:
    position = unwrapped(words)
    if position >= len(words):
        return None
    name = program_name(words[position])
    rest = words[position + 1 :]
    if _PYTHON.fullmatch(name) or name == "coverage":
        return _python(words, position)
    if name in _NODE_PROGRAMS:
        return _node(words, position)
    if name in _RUNNERS:
        return _Found(_RUNNERS[name], position, position + 1)
    if name in _BUILDS and any(word in _BUILD_TASKS for word in rest):
        return _Found(_BUILDS[name], position, position + 1)
    if name in {"make", "gmake"} and not {"test", "tests", "check"}.isdisjoint(rest):
        return _Found("make", position, position + 1)
    if name == "ruby" and any("test" in word for word in rest):
        return _Found("minitest", position, position + 1)
    return _subcommand(words, position, name)


def _subcommand(words: Sequence[str], position: int, name: str) -> _Found | None:
    at = position + 1
    while at < len(words) and words[at].startswith("+"):
        at += 1  # cargo's toolchain
    second = words[at] if at < len(words) else ""
    if (name, second) == ("cargo", "nextest") and words[at + 1 : at + 2] == ["run"]:
        return _Found("nextest", position, at + 2)
    kind = _SUBCOMMANDS.get((name, second))
    return _Found(kind, position, at + 1) if kind else None


def unwrapped(words: Sequence[str]) -> int:
    """Where the program starts that the wrappers run."""
    position = 0
    while position < len(words):
        word, name = words[position], program_name(words[position])
        following = words[position + 1] if position + 1 < len(words) else ""
        if _ASSIGNMENT.match(word):
            position += 1
        elif name in _PREFIXES:
            position = _after_options(words, position + 1, lambda _: False)
        elif name in _COVERAGE or (name in _EXECUTORS and not _EXECUTORS[name]):
            position = _after_options(words, position + 1, _is_program)
        elif name in _EXECUTORS and following in _EXECUTORS[name]:
            position = _after_options(words, position + 2, _is_program)
        elif name in {"yarn", "pnpm"} and program_name(following) in _RUNNERS:
            position += 1
        else:
            break
    return position


def _after_options(words: Sequence[str], position: int, is_program: Callable[[str], bool]) -> int:
    """Skips the options of a wrapper; one without = has the next word as its value, unless that is a program."""
    while position < len(words) and words[position].startswith("-"):
        option = words[position]
        position += 1
        if option == "--":
            break
        follows = words[position : position + 2]
        takes_value = len(follows) == 2 and not follows[0].startswith("-") and not is_program(follows[0])
        if is_program is _is_program and "=" not in option and takes_value:
            position += 1
    return position


def _is_program(word: str) -> bool:
    name = program_name(word)
    return (
        name in _RUNNERS
        or name in _NODE_PROGRAMS
        or name in _COVERAGE
        or name in _PREFIXES
        or name in _EXECUTORS
        or bool(_PYTHON.fullmatch(name))
        or bool(_ASSIGNMENT.match(word))
    )


def program_name(word: str) -> str:
    return _SCRIPT_SUFFIX.sub("", PurePosixPath(word).name)


def _python(words: Sequence[str], program: int) -> _Found | None:
    """`python -m module`, `python script`, and both behind `coverage run`."""
    position = program + 1
    if program_name(words[program]) == "coverage":
        if words[position : position + 1] != ["run"]:
            return None
        position += 1
    while position < len(words) and words[position].startswith("-") and words[position] != "-m":
        if words[position].startswith(("-I", "-E", "-c")):
            return None  # the reporter could not be loaded
        position += 2 if words[position] in _PYTHON_VALUES else 1
    if position >= len(words):
        return None
    if words[position] != "-m":
        return _python_script(words, program, position)
    module = words[position + 1] if position + 1 < len(words) else ""
    if module == "coverage" and words[position + 2 : position + 3] == ["run"]:
        inner = _python([*words[: position + 1], "coverage", *words[position + 2 :]], position + 1)
        return inner and _Found(inner.kind, program, inner.arguments)
    if module in {"pytest", "py.test"}:
        return _Found("pytest", program, position + 2)
    return _Found("unittest", program, position) if module in _UNITTEST_MODULES else None


_TEST_SCRIPT = re.compile(r"(?:.*/)?(?:run_?tests?|tests?|test_\w+|\w+_test|test_?all|test_?suite|alltests)\.py")


def _python_script(words: Sequence[str], program: int, script: int) -> _Found | None:
    """For a script the arguments start with it, because the reporter runs it."""
    name, following = PurePosixPath(words[script]).name, words[script + 1 : script + 2]
    runs_tests = following == ["test"] if name in {"manage.py", "setup.py"} else _TEST_SCRIPT.fullmatch(words[script])
    return _Found("unittest", program, script) if runs_tests else None


def _node(words: Sequence[str], program: int) -> _Found | None:
    """`node --test`, a runner's script, or a script that may print TAP."""
    position = program + 1
    while position < len(words) and words[position].startswith("-"):
        if words[position] == "--test":
            return _Found("node", program, program + 1)
        position += 2 if words[position] in _NODE_VALUES else 1
    if position >= len(words):
        return None
    if "--test" in words[position:]:
        return None
    kind = _RUNNERS.get(program_name(words[position]), "tap")
    return _Found(kind, program, position + 1)
