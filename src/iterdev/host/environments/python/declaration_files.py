"""Reads the files in which Python projects declare things; what cannot be read is empty. No program is run."""

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from iterdev.host import python_source, toml_text, untrusted_files

DEEPEST = 5
"""Requirements files that include each other."""


INCLUDED = re.compile(r"(?:-r|--requirement[ =])\s*(\S+)")
INCLUDED_OR_CONSTRAINTS = re.compile(r"(?:-[rc]|--(?:requirement|constraint)[ =])\s*(\S+)")


def read_toml(path: Path) -> dict[str, object]:
    try:
        return toml_text.parse(read_text(path))
    except ValueError:
        return {}


def read_text(path: Path) -> str:
    return read_bytes(path).decode("utf-8", "replace")


def read_bytes(path: Path) -> bytes:
    return untrusted_files.read_or_empty(path)


def lines_of(text: str) -> Iterator[str]:
    for raw in text.splitlines():
        line = re.sub(r"(?:^|\s)#.*", "", raw).strip()
        if line:
            yield line


def requirement_lines(path: Path) -> Iterator[str]:
    """The requirements of a requirements file, and of those that it includes."""
    for line in lines_with_options(path, INCLUDED):
        if not line.startswith("-"):
            yield line.partition(" --hash")[0].rstrip("\\ ")


def lines_with_options(
    path: Path, included: re.Pattern[str], depth: int = 0, root: Path | None = None
) -> Iterator[str]:
    """All lines of a requirements file; those of the files that it includes by such an option are in their places."""
    root = root or untrusted_files.root_of(path)
    for line in lines_of(untrusted_files.read_or_empty(path, root=root).decode("utf-8", "replace")):
        if not (match := included.match(line)):
            yield line
        elif depth < DEEPEST:
            yield from lines_with_options(path.parent / match[1], included, depth + 1, root)


def setup_arguments(text: str) -> dict[str, object]:
    """The arguments of `setup()` that are literals, or made of names of literals."""
    module, literals, found = _parsed(text), _Literals(), dict[str, object]()
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            literals.known.setdefault(node.targets[0].id, node.value)
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and (getattr(node.func, "id", "") or getattr(node.func, "attr", "")) == "setup":
            for keyword in node.keywords:
                with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                    found[keyword.arg or ""] = ast.literal_eval(literals.visit(keyword.value))
    return found


class _Literals(ast.NodeTransformer):
    """Puts the value of a variable in the place of its name."""

    def __init__(self) -> None:
        self.known: dict[str, ast.expr] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.known.get(node.id, node)


def functions(text: str) -> Iterator[ast.FunctionDef]:
    yield from (node for node in _parsed(text).body if isinstance(node, ast.FunctionDef))


def session_installs(function: ast.FunctionDef) -> Iterator[str]:
    """The words of `session.install(...)`; an option with its file becomes one line."""
    for node in ast.walk(function):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "install"):
            continue
        words = [
            argument.value
            for argument in node.args
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
        ]
        for index, word in enumerate(words):
            if word == "-r" and index + 1 < len(words):
                yield f"-r {words[index + 1]}"
            elif index == 0 or words[index - 1] not in {"-r", "-c", "-e"}:
                yield word


def _parsed(text: str) -> ast.Module:
    try:
        return python_source.parsed(text)
    except python_source.UNREADABLE:
        return ast.Module(body=[], type_ignores=[])


def subtable(document: object, *names: str) -> Mapping[str, object]:
    """The table at the end of the names, empty if there is none."""
    found = document
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def as_tables(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def as_strings(value: object) -> list[str]:
    if isinstance(value, str):
        return list(lines_of(value))
    return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else []


def string_values(table: Mapping[str, object]) -> list[str]:
    return [value for value in table.values() if isinstance(value, str)]


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""
