"""What can be checked about a change without running it: syntax, planned files, imports.

Only what the change broke for certain is a fault. Everything else is a doubt: templates, files that are invalid on
purpose, and modules that a build generates look like errors as well.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from iterdev.host import toml_text

WITH_COMMENTS = re.compile(r"(.*/)?(\.vscode/.+|[jt]sconfig[^/]*|\.eslintrc|\.?devcontainer)\.json")
"""JSON files in which comments are allowed."""
STRING = r'("(?:[^"\\]|\\.)*+"?)'
LENIENT = [
    re.compile(rf"{STRING}|{extra}", re.DOTALL)
    for extra in (r"//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?", r",(?=\s*[]}}])")
]
"""Strings, which stay as they are, and what some readers of JSON allow: comments, then a comma at the end."""


NAME_MAX = 240
"""Characters of a module's name: a file's may have 255 bytes with its ending."""


class PythonFile(Struct, frozen=True):
    error: str
    line: int = 0
    imports: tuple[tuple[str, int], ...] = ()
    """The modules whose import must not fail, with the lines."""


class ChangedFile(Struct, frozen=True, kw_only=True):
    before: bytes | None
    """None for a new file."""
    after: bytes | None
    """None for a file that was deleted, or is no plain file."""
    python_before: PythonFile | None = None
    python_after: PythonFile | None = None


class Checked(Struct, frozen=True):
    faults: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    syntax_clean: bool = True


def check(
    root: Path,
    changed: Mapping[str, ChangedFile],
    planned: Iterable[str],
    ignored: Callable[[Sequence[str]], set[str]],
) -> Checked:
    """One sentence per problem, in the order of the files; `ignored` are the paths that git ignores."""
    faults: list[str] = []
    doubts: list[str] = []
    unclean = False
    for name, file in changed.items():
        if file.after is None:
            continue
        if error := _syntax_error(name, file):
            unclean = True
            certain = _parsed_before(name, file) and not (name.endswith(".json") and is_lenient_json(file.after))
            (faults if certain else doubts).append(error)
    doubts += _missing_modules(root, changed, ignored)
    doubts += [f"{name} was planned and does not exist" for name in planned if not (root / name).exists()]
    return Checked(tuple(faults), tuple(doubts), not unclean)


def _syntax_error(name: str, file: ChangedFile) -> str:
    """The error of a file that is new, or had none before; a template or an example of an error had it before too."""
    if file.before is not None and not _parsed_before(name, file):
        return ""
    return _error(name, file.after or b"", file.python_after)


def _parsed_before(name: str, file: ChangedFile) -> bool:
    return file.before is not None and not _error(name, file.before, file.python_before)


def _error(name: str, content: bytes, python: PythonFile | None) -> str:
    match Path(name).suffix:
        case ".py" if python and python.error:
            return f"{name}{f':{python.line}' if python.line else ''}: {python.error}"
        case ".json" if not WITH_COMMENTS.fullmatch(name):
            return _parse_error(name, lambda: json.loads(content))
        case ".toml":
            return _parse_error(name, lambda: toml_text.parse(content.decode("utf-8")))
        case _:
            return ""


def _parse_error(name: str, parse: Callable[[], object]) -> str:
    try:
        parse()
    except (ValueError, RecursionError) as error:
        return f"{name}: {error}"
    return ""


def is_lenient_json(content: bytes) -> bool:
    """Whether only comments and commas at the end keep a text from being JSON."""
    text = content.decode("utf-8", "replace")
    for allowed in LENIENT:
        text = allowed.sub(lambda found: found[1] or "", text)
    return not _parse_error("", lambda: json.loads(text))


def _missing_modules(
    root: Path, changed: Mapping[str, ChangedFile], ignored: Callable[[Sequence[str]], set[str]]
) -> Iterator[str]:
    """Imports of the project's own modules that the change added, and that lead nowhere."""
    missing = {
        f"{name}:{line}: the module {module} does not exist": candidates
        for name, file in changed.items()
        if file.python_after
        for module, line in file.python_after.imports
        if module not in {known for known, _ in (file.python_before.imports if file.python_before else ())}
        and (candidates := _unresolved(root, root / name, module))
    }
    generated = ignored([path for paths in missing.values() for path in paths]) if missing else set()
    yield from (text for text, paths in missing.items() if generated.isdisjoint(paths))


def _unresolved(root: Path, file: Path, module: str) -> list[str]:
    """Where a module could be that does not exist; nothing for one that exists, or need not be the project's own."""
    dots = len(module) - len(module.lstrip("."))
    parts = [part for part in module[dots:].split(".") if part]
    if dots:
        homes = [file.parents[min(dots, len(file.parents)) - 1]] if parts else []
    else:
        homes = [home for home in (root, root / "src", file.parent) if _is_module(home, parts[:1])]
        # A folder without __init__.py may share its name with an installed package: such imports are not checked.
        homes = [home for home in homes if (home / parts[0] / "__init__.py").exists() or len(parts) == 1]
    if not homes or any(_is_module(home, parts) for home in homes):
        return []
    paths = [home.joinpath(*parts) for home in homes if home.is_relative_to(root)]
    return [str(path.relative_to(root)) + suffix for path in paths for suffix in (".py", "")] or [module]


def _is_module(home: Path, parts: list[str]) -> bool:
    path = home.joinpath(*parts)
    if len(path.name) > NAME_MAX:
        return False
    return path.is_dir() or path.with_name(f"{path.name}.py").is_file() or any(path.parent.glob(f"{path.name}.*"))
