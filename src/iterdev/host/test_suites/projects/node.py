"""Finds the test suites of Node packages: the runner behind the script `test`, without the linters around it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from iterdev.host.test_suites import shell
from iterdev.host.test_suites.invocations import LEFT_OUT, program_name, recognise, runner, unwrapped
from iterdev.host.test_suites.projects.files import ProjectFiles, is_inside, read_text
from iterdev.host.test_suites.suite import Kind, Suite

NESTING = 8
"""Scripts that run scripts."""
STEPS = 100
"""Commands behind one script."""

_PLACEHOLDER = "no test specified"
_ALTERNATIVES = ("test:unit", "unit", "unit-test", "tests-only", "test:node", "test:ci", "mocha", "jest", "vitest")
"""Scripts to look at when `test` has no runner."""
_WITHOUT_SCRIPT = ("vitest run", "jest", "mocha", "ava")

_LINTERS = frozenset(
    {
        *(
            "eslint",
            "standard",
            "xo",
            "prettier",
            "tslint",
            "tsd",
            "dtslint",
            "publint",
            "size-limit",
            "knip",
            "oxlint",
        ),
        *("biome", "semistandard", "snazzy", "jshint", "jscs", "stylelint", "markdownlint", "markdownlint-cli2"),
        *("remark", "cspell", "commitlint", "attw", "check-dts", "vue-tsc", "flow", "madge", "depcheck", "codecov"),
        *("coveralls", "echo", "ec", "editorconfig-checker", "eclint", "aud", "installed-check", "dependency-check"),
        *("type-coverage", "lint-staged", "npmPkgJsonLint", "ls-lint", "bundlesize", "sort-package-json", "evalmd"),
    }
)
_LINTER_NAME = re.compile(r"(?:.*[-_])?(?:lint|eslint|prettier|standard)(?:[-_].*)?")
_LINT_SCRIPT = re.compile(
    r"(?:.*:)?(?:lint|format|fmt|prettier|eslint|typecheck|type-check|types|tsd|coverage)(?:[:.-].*)?"
)
_PRETTY_PRINTER = re.compile(r"tap-.+|faucet|tnyan|snazzy|pino-pretty|bunyan|tee")
_COVERAGE_TOOLS = frozenset({"nyc", "c8", "istanbul"})
_NEEDED_WRAPPERS = frozenset({"dotenv", "xvfb-run"})
"""Tests fail without the variables or the display that these give them."""
_TEST_SCRIPT_FILE = re.compile(r"(?:^|[/._-])(?:tests?|specs?|__tests__)(?:[/._-]|$)", re.IGNORECASE)
_DENO_TEST = re.compile(r"(?:.*[._])?test\.(?:ts|tsx|mts|js|jsx|mjs)")
_MANAGERS = frozenset({"npm", "pnpm", "yarn", "bun"})
_RECURSIVE = frozenset(
    {
        "-r",
        "--recursive",
        "--workspaces",
        "-ws",
        "--ws",
        "workspaces",
        "workspace",
        "-w",
        "--workspace",
        "--filter",
        "-F",
    }
)
_DELEGATES = frozenset({"lerna", "turbo", "nx", "rush", "wsrun", "ultra", "oao", "bolt", "wireit", "moon"})
_ASIDE = frozenset(
    {
        *("examples", "example", "docs", "doc", "website", "site", "benchmarks", "benchmark", "bench", "e2e", "demo"),
        *("demos", "templates", "template", "test", "tests", "__tests__", "playground", "sandbox"),
    }
)
"""Folders whose packages are not part of what is tested."""

Role = Literal["tests", "lint", "left out", "delegates", "other"]


class _Step(Struct, frozen=True):
    text: str
    role: Role
    kind: Kind = "custom"


class _Package(Struct, rename="camel"):
    scripts: Mapping[str, str] = {}
    dev_dependencies: Mapping[str, str] = {}


class _DenoSettings(Struct):
    tasks: Mapping[str, object] = {}


def _package(text: str) -> _Package:
    try:
        return msgspec.json.decode(text, type=_Package)
    except (msgspec.MsgspecError, RecursionError):
        return _Package()


def find(files: ProjectFiles) -> Iterator[Suite]:
    yield from _packages(files)
    yield from _deno(files)


def _deno(files: ProjectFiles) -> Iterator[Suite]:
    """The outermost folders with settings of Deno, whose tests are found below them."""
    known: list[str] = []
    for folder in files.with_file("deno.json", "deno.jsonc"):
        if any(part in _ASIDE for part in folder.split("/")) or any(is_inside(folder, outer) for outer in known):
            continue
        if any(_DENO_TEST.fullmatch(name) for where in files.below(folder) for name in files.folders[where]):
            known.append(folder)
            yield Suite(command=_deno_command(files, folder), kind="deno", folder=folder)


def _deno_command(files: ProjectFiles, folder: str) -> str:
    """The project's own task, which has its permissions; without one, everything is allowed."""
    try:
        task = msgspec.json.decode(files.text(folder, "deno.json"), type=_DenoSettings).tasks.get("test")
    except (msgspec.MsgspecError, RecursionError):
        task = None
    call = recognise(task) if isinstance(task, str) else None
    return str(task) if call and call.kind == "deno" else "deno test --allow-all"


def _packages(files: ProjectFiles) -> Iterator[Suite]:
    found: list[Suite] = []
    for folder in files.with_file("package.json"):
        if folder.split("/")[-1] in _ASIDE or any(part in _ASIDE for part in folder.split("/")[:-1]):
            continue
        own = list(_suites(folder, _package(files.text(folder, "package.json"))))
        found += (suite for suite in own if not any(_covers(outer, suite) for outer in found))
    yield from found


def _covers(outer: Suite, inner: Suite) -> bool:
    """Whether the outer suite runs the inner one's tests too."""
    if outer.folder == inner.folder or not is_inside(inner.folder, outer.folder):
        return False
    call = recognise(outer.command)
    where = inner.folder.removeprefix(f"{outer.folder}/").split("/")[0]
    named = any(word.strip("'\"./").startswith(f"{where}/") for word in (call.arguments if call else ()))
    return named or (outer.kind == inner.kind and outer.kind in {"jest", "vitest"})


def _suites(folder: str, package: _Package) -> Iterator[Suite]:
    script = package.scripts.get("test", "")
    if not script or _PLACEHOLDER in script:
        yield from _without_script(folder, package)
        return
    steps = _steps_of(package, "test")
    for name in _ALTERNATIVES:
        if _has(steps, "tests"):
            break
        if name in package.scripts and not _has(steps, "delegates"):
            further = _steps_of(package, name)
            steps = further if _has(further, "tests") else steps
    if _has(steps, "tests"):
        yield from _with_preparation(folder, steps)
    elif not steps or all(step.role == "other" for step in steps) or _is_opaque(steps):
        yield Suite(command="npm test", kind="npm", folder=folder)


def _is_opaque(steps: Sequence[_Step]) -> bool:
    """Whether something is run that is neither a linter nor left out; it may be tests."""
    return _has(steps, "other") and not _has(steps, "delegates") and not _has(steps, "left out")


def _has(steps: Iterable[_Step], role: Role) -> bool:
    return any(step.role == role for step in steps)


def _without_script(folder: str, package: _Package) -> Iterator[Suite]:
    for command in _WITHOUT_SCRIPT:
        if command.split()[0] in package.dev_dependencies and (call := recognise(command)):
            yield Suite(command=command, kind=call.kind, folder=folder)
            return


def _with_preparation(folder: str, steps: Sequence[_Step]) -> Iterator[Suite]:
    """Each runner on its own, after what is built for it."""
    preparation: list[str] = []
    for step in steps:
        if step.role == "other":
            preparation.append(step.text)
        elif step.role == "tests":
            yield Suite(command=" && ".join((*preparation, step.text)), kind=step.kind, folder=folder)


def test_script(folder: Path, name: str, arguments: str) -> str:
    """What `npm run NAME` runs in a folder, as one command; empty if the script is not understood."""
    package = _package(read_text(folder / "package.json"))
    steps = _steps_of(package, name)
    texts = [step.text for step in steps]
    if not steps or steps[-1].role != "tests" or any(step.role == "delegates" for step in steps):
        return ""
    return " && ".join((*texts[:-1], f"{texts[-1]} {arguments}".rstrip()))


class _Opaque(Exception):
    """A script uses more of the shell than is understood."""


def _steps_of(package: _Package, name: str) -> tuple[_Step, ...]:
    try:
        return tuple(_script(package, name, ()))
    except _Opaque:
        return ()


def _script(package: _Package, name: str, outer: tuple[str, ...]) -> list[_Step]:
    if name in outer or len(outer) > NESTING or name not in package.scripts:
        raise _Opaque
    before = [f"pre{name}"] if f"pre{name}" in package.scripts else []
    steps: list[_Step] = []
    for script in (*before, name):
        if script != name and _LINT_SCRIPT.fullmatch(name):
            continue
        try:
            steps += _line(package, package.scripts[script], (*outer, name, script)[-NESTING - 2 :])
        except _Opaque:
            if script == name:
                raise
            steps.append(_Step(f"npm run {script}", "other"))
        if len(steps) > STEPS:
            raise _Opaque
    return steps


def _line(package: _Package, text: str, outer: tuple[str, ...]) -> list[_Step]:
    commands = shell.steps(text)
    if commands is None:
        raise _Opaque
    steps: list[_Step] = []
    for command in commands:
        words = [word.text for word in command.words]
        if command.after == "|" and steps and _is_pretty_printer(words):
            continue
        if command.after not in {"", "&&", ";"}:
            raise _Opaque
        raw = [text[word.start : word.end] for word in command.words]
        steps += _expanded(package, words, raw, outer)
    return steps


def _is_pretty_printer(words: list[str]) -> bool:
    names = map(program_name, words[unwrapped(words) :][:1])
    return any(_PRETTY_PRINTER.fullmatch(name) for name in names)


def _expanded(package: _Package, words: list[str], raw: list[str], outer: tuple[str, ...]) -> list[_Step]:
    start = unwrapped(words)
    if start >= len(words):
        return [_Step(" ".join(raw), "other")]
    name, rest = program_name(words[start]), words[start + 1 :]
    # `bun test` is a runner, whatever the script of that name says.
    if name in _MANAGERS and (name, *rest[:1]) != ("bun", "test"):
        return _managed(package, words[start:], raw, outer)
    if name in {"run-s", "run-p", "npm-run-all", "npm-run-all2"}:
        return [step for script in _matching(package, rest) for step in _lint_aside(package, script, outer)]
    if name == "concurrently":
        commands = [word for word in rest if not word.startswith("-")]
        texts = [f"npm run {word.removeprefix('npm:')}" if word.startswith("npm:") else word for word in commands]
        return [step for text in texts for step in _line(package, text, outer)]
    return [_classified(words, raw, start)]


def _managed(package: _Package, words: list[str], raw: list[str], outer: tuple[str, ...]) -> list[_Step]:
    """A script that a package manager runs, here or in all packages of the workspace."""
    rest = words[1:]
    options = rest[: rest.index("--")] if "--" in rest else rest
    if any(word.partition("=")[0] in _RECURSIVE for word in options):
        return [_Step(" ".join(raw), "delegates")]
    names = [word for word in options if not word.startswith("-")]
    if names[:1] and names[0] in {"run", "run-script"}:
        names = names[1:]
    script = {"t": "test", "tst": "test"}.get(names[0], names[0]) if names else ""
    if script not in package.scripts:
        harmless = script in {"audit", "ls", "outdated"} or _LINT_SCRIPT.fullmatch(script)
        return [_Step(" ".join(raw), "lint" if harmless else "other")]
    steps = _lint_aside(package, script, outer)
    extra = raw[raw.index("--") + 1 :] if "--" in raw else []
    if extra and steps:
        last = steps[-1]
        steps[-1] = _Step(f"{last.text} {' '.join(extra)}", last.role, last.kind)
    return steps


def _lint_aside(package: _Package, script: str, outer: tuple[str, ...]) -> list[_Step]:
    if _LINT_SCRIPT.fullmatch(script):
        return [_Step(f"npm run {script}", "lint")]
    return _script(package, script, outer)


def _matching(package: _Package, words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if word.startswith("-"):
            continue
        pattern = word.split(" ")[0]
        if "*" not in pattern:
            yield pattern
            continue
        yield from (
            name
            for name in package.scripts
            if fnmatchcase(name, pattern) and ("**" in pattern or name.count(":") == pattern.count(":"))
        )


def _classified(words: list[str], raw: list[str], start: int) -> _Step:
    """Leaves coverage tools out, which write into the tree and fail for another reason than a test."""
    name = program_name(words[start])
    kept = next((at for at in range(start) if program_name(words[at]) in _NEEDED_WRAPPERS), start)
    end = next((at for at in range(kept, start) if program_name(words[at]) in _COVERAGE_TOOLS), start)
    # What a wrapper starts is a program, so that an assignment is no part of what it is told.
    variables = (raw[at] for at in range(start) if not kept <= at < end and re.match(r"[A-Za-z_]\w*=", words[at]))
    text = " ".join((*variables, *raw[kept:end], *raw[start:]))
    if name in LEFT_OUT:
        return _Step(text, "left out")
    if name in _DELEGATES:
        return _Step(text, "delegates")
    wraps_report = words[start - 1 : start] in (["nyc"], ["c8"]) and name in {"report", "check-coverage"}
    if name in _LINTERS or _LINTER_NAME.fullmatch(name) or wraps_report or (name == "tsc" and "--noEmit" in words):
        return _Step(text, "lint")
    found = runner(words)
    if found is None or (found.kind == "tap" and not _is_test(words, start)):
        return _Step(text, "other")
    return _Step(text, "tests", found.kind)


def _is_test(words: list[str], start: int) -> bool:
    """Whether a program that may print TAP is a test: node also runs the scripts that build a project."""
    if program_name(words[start]) in {"tape", "tap", "qunit"}:
        return True
    return any(_TEST_SCRIPT_FILE.search(word) for word in words[start + 1 :]) or any(
        program_name(word) in {"tape", "tap", "qunit"} for word in words[start + 1 :]
    )
