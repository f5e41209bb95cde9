"""What can be checked about a change without running it: syntax, planned files, imports of our own modules."""

import ast
import json
import re
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

WITH_COMMENTS = re.compile(r"(.*/)?(\.vscode/.+|[jt]sconfig[^/]*|\.eslintrc|\.?devcontainer)\.json")
"""JSON files in which comments are allowed."""


def problems(root: Path, changed: Iterable[str], planned: Iterable[str]) -> list[str]:
    """One sentence per problem, in the order of the files."""
    found = [problem for name in changed for problem in _in_file(root, name)]
    return found + [f"{name} was planned and does not exist" for name in planned if not (root / name).exists()]


def _in_file(root: Path, name: str) -> Iterator[str]:
    path = root / name
    if not path.is_file():
        return
    match path.suffix:
        case ".py":
            yield from _in_python(root, name, path.read_bytes())
        case ".json" if not WITH_COMMENTS.fullmatch(name):
            yield from _unparsable(name, lambda: json.loads(path.read_bytes()))
        case ".toml":
            yield from _unparsable(name, lambda: tomllib.loads(path.read_text(encoding="utf-8")))
        case _:
            pass


def _unparsable(name: str, parse: Callable[[], object]) -> Iterator[str]:
    try:
        parse()
    except (ValueError, RecursionError) as error:
        yield f"{name}: {error}"


def _in_python(root: Path, name: str, source: bytes) -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source, name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        yield f"{name}{f':{line}' if line else ''}: {getattr(error, 'msg', error)}"
        return
    for node in ast.walk(tree):
        for module in _imported(node):
            if not _resolves(root, root / name, module):
                yield f"{name}:{getattr(node, 'lineno', 0)}: the module {module} does not exist"


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=aliases):
            return [alias.name for alias in aliases]
        case ast.ImportFrom(module=module, level=level):
            return ["." * level + (module or "")]
        case _:
            return []


def _resolves(root: Path, file: Path, module: str) -> bool:
    """Only modules that must be the project's own can be checked; any other one counts as present."""
    dots = len(module) - len(module.lstrip("."))
    parts = [part for part in module[dots:].split(".") if part]
    if dots:
        return not parts or _is_module(file.parents[min(dots, len(file.parents)) - 1], parts)
    homes = [home for home in (root, root / "src", file.parent) if _is_module(home, parts[:1])]
    # A folder without __init__.py may share its name with an installed package: such imports are not checked.
    owned = [home for home in homes if (home / parts[0] / "__init__.py").exists() or len(parts) == 1]
    return not owned or any(_is_module(home, parts) for home in owned)


def _is_module(home: Path, parts: list[str]) -> bool:
    path = home.joinpath(*parts)
    return path.is_dir() or path.with_name(f"{path.name}.py").is_file() or any(path.parent.glob(f"{path.name}.*"))
