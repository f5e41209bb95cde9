"""The test commands that a Python project declares for tox, nox, hatch, pdm and other task runners."""

import ast
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from iterdev.host import ini_text, python_source
from iterdev.host.test_suites.projects.files import ProjectFiles, table

_TEST_NAMES = re.compile(r"(?:unit|py|tests?|pytest|python|default|coverage|cov)(?:[-_\d.:{(].*)?")
_FACTOR = re.compile(r"^(?:!?[\w.{},!-]+): +")
_POSARGS = re.compile(r"\{(?:posargs|args)(?::((?:[^{}]|\{[^{}]*\})*))?\}|\[\]")
_TOP = re.compile(r"\{(?:toxinidir|tox_root|root|toxworkdir/\.\.)\}/?")
_PYTHON = re.compile(r"\{(?:envpython|env_python|envbindir\}/python\S*)\}?")
_UNKNOWN = re.compile(r"\{(?:\[[^][]*\])?[a-z_]+[:}]")
"""What only tox knows: one of its folders, a variable of the environment, or a part of another section."""
_VALUED = frozenset(
    {
        *("--basetemp", "--rootdir", "--confcutdir", "--log-file", "--html", "--junitxml", "--junit-xml"),
        *(
            "--cov",
            "--cov-config",
            "--cov-report",
            "-c",
            "--config-file",
            "-o",
            "--override-ini",
            "-k",
            "-m",
            "-n",
            "-p",
        ),
    }
)
"""Options whose value is the next word; without it, another word would be taken for the value."""
_SETTINGS_TASKS = (
    ("tool", "pdm", "scripts"),
    ("tool", "poe", "tasks"),
    ("tool", "taskipy", "tasks"),
    ("tool", "rye", "scripts"),
)


class DeclaredCommand(Struct, frozen=True):
    words: tuple[str, ...]
    folder: str = ""
    """Where it runs, relative to the project."""
    variables: tuple[str, ...] = ()
    """Assignments for the command's environment."""
    environment: str = ""
    """What the tool runs the command for, with others of the same name."""


def declared(files: ProjectFiles, folder: str) -> Iterator[DeclaredCommand]:
    """The commands, most authoritative first; those that cannot be read are left out."""
    settings = files.toml(folder, "pyproject.toml")
    yield from _tox_ini(files.text(folder, "tox.ini"))
    yield from _tox_ini(str(table(settings, "tool", "tox").get("legacy_tox_ini", "")))
    yield from _tox_toml(files.toml(folder, "tox.toml"))
    yield from _tox_toml(table(settings, "tool", "tox"))
    yield from _tox_ini(files.text(folder, "setup.cfg"), prefix="tox:")
    yield from _nox(files.text(folder, "noxfile.py"))
    yield from _tasks(settings, files.toml(folder, "hatch.toml"))


def _tox_ini(text: str, prefix: str = "") -> Iterator[DeclaredCommand]:
    parser = ini_text.parse(text)
    environments = [name for name in parser.sections() if name.startswith(f"{prefix}testenv")]
    for name in sorted(environments, key=len):
        label = name.removeprefix(f"{prefix}testenv").removeprefix(":")
        if label and not _TEST_NAMES.fullmatch(label):
            continue
        section = parser[name]
        changed = section.get("changedir", section.get("change_dir", ""))
        variables = tuple(_variables(section.get("setenv", section.get("set_env", ""))))
        for line in _lines(section.get("commands", "")):
            if words := substituted(line):
                yield DeclaredCommand(tuple(words), _changed_folder(changed), variables, name)


def _lines(text: str) -> Iterator[str]:
    joined = text.replace("\\\n", " ")
    for line in joined.splitlines():
        command = _FACTOR.sub("", line.strip()).lstrip("-@ ")
        if command and not command.startswith("#"):
            yield command


def substituted(line: str) -> list[str]:
    """The words of a command, with what tox would fill in; empty if its first words are known only to tox."""
    try:
        return _known(shlex.split(_filled(line)))
    except ValueError:
        return []


def _filled(text: str) -> str:
    return _PYTHON.sub("python", _POSARGS.sub(lambda match: match[1] or "", text))


def _known(words: Iterable[str]) -> list[str]:
    filled = [(_TOP.sub("", word) or ".") if _TOP.search(word) else word for word in words]
    if any(map(_UNKNOWN.search, filled[:3])):
        return []
    kept: list[str] = []
    for word in filled:
        if not _UNKNOWN.search(word):
            kept.append(word)
        elif kept and kept[-1] in _VALUED:
            kept.pop()
    return kept


def _changed_folder(text: str) -> str:
    folder = _TOP.sub("", text.strip()).strip("/")
    return "" if "{" in folder or folder in {".", ".."} or folder.startswith("/") else folder


def _variables(text: str) -> Iterator[str]:
    """Assignments that hold in every environment, and that name nothing that only tox knows."""
    for line in text.splitlines():
        name, equals, value = (part.strip() for part in line.partition("="))
        value = (_TOP.sub("", value) or ".") if _TOP.search(value) else value
        if equals and re.fullmatch(r"[A-Za-z_]\w*", name) and "{" not in value and "coverage" not in name.lower():
            yield f"{name}={shlex.quote(value)}"


def _tox_toml(settings: Mapping[str, Any]) -> Iterator[DeclaredCommand]:
    environments = [("", table(settings, "env_run_base"))]
    environments += [(name, table(settings, "env", name)) for name in table(settings, "env")]
    for name, environment in environments:
        if name and not _TEST_NAMES.fullmatch(name):
            continue
        commands = environment.get("commands")
        for command in commands if isinstance(commands, list) else ():
            if isinstance(command, list) and (words := _known(_toml_words(command))):
                folder = _changed_folder(str(environment.get("change_dir", "")))
                yield DeclaredCommand(tuple(words), folder, environment=f"tox.toml {name}")


def _toml_words(command: Iterable[Any]) -> Iterator[str]:
    for word in command:
        if isinstance(word, str):
            yield from filter(None, (_filled(word),))
        elif isinstance(word, Mapping) and word.get("replace") == "posargs":
            default = word.get("default")
            yield from (str(part) for part in (default if isinstance(default, list) else ()))


def _nox(text: str) -> Iterator[DeclaredCommand]:
    try:
        module = python_source.parsed(text)
    except python_source.UNREADABLE:
        return
    sessions = [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef) and any(map(_names_session, node.decorator_list))
    ]
    for session in sorted(sessions, key=lambda node: not _TEST_NAMES.fullmatch(node.name)):
        if "lint" in session.name or "doc" in session.name:
            continue
        for node in ast.walk(session):
            match node:
                case ast.Call(ast.Attribute(ast.Name("session"), "run"), arguments) if words := _constants(arguments):
                    yield DeclaredCommand(tuple(words), environment=f"nox {session.name}")
                case _:
                    pass


def _names_session(decorator: ast.expr) -> bool:
    parts = (getattr(node, "id", "") or getattr(node, "attr", "") for node in ast.walk(decorator))
    return any("session" in part for part in parts)


def _constants(arguments: list[ast.expr]) -> list[str]:
    """The words that are written in the call; only what the user would add may be left out."""
    words: list[str] = []
    for argument in arguments:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            words.append(argument.value)
        elif not isinstance(argument, ast.Starred):
            if not words:
                return []
            if words[-1] in _VALUED:
                words.pop()
    return words


def _tasks(settings: Mapping[str, Any], hatch: Mapping[str, Any]) -> Iterator[DeclaredCommand]:
    tables = [table(settings, *keys) for keys in _SETTINGS_TASKS]
    for environments in (table(settings, "tool", "hatch", "envs"), table(hatch, "envs")):
        tables += [table(environments, name, "scripts") for name in environments]
    for tasks in tables:
        for name in ("test", "tests", "unit", "test-unit", "run"):
            for line in _commands(tasks.get(name)):
                if words := substituted(line):
                    yield DeclaredCommand(tuple(words), environment=f"task {name}")


def _commands(task: Any) -> Iterator[str]:  # noqa: ANN401 - whatever is in the project's settings
    match task:
        case str():
            yield task
        case list():
            yield from (part for part in task if isinstance(part, str))
        case {"cmd": str(text)} | {"shell": str(text)}:
            yield text
        case _:
            pass
