"""Writes what the program itself knows best: the pages about configuration and commands, and the plugins."""
# ruff: noqa: INP001 - a script, not a part of a package

import ast
import inspect
import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import click
from msgspec import Struct

from iterdev.app.clients.plugins import plugin_files
from iterdev.core import settings
from iterdev.core.settings import OnRejection, RemoteEngine
from iterdev.core.types import CompletionAction, ConflictStrategy, Severity
from iterdev.surfaces.cli.app import ALIASES, app

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
LAST = 180
REQUIREMENTS = [f"R{number}" for number in range(1, LAST + 1)]
WIDTH = 100
NAMED = {"roles": "ROLE", "agents": "NAME"}
"""What stands in the header of a table that can occur several times."""
TYPES = {
    "str": "text",
    "bool": "true or false",
    "int": "whole number",
    "float": "number",
    "tuple[str, ...]": "list of texts",
    "tuple[iterdev.core.types.NotificationKind, ...]": "list of kinds",
    "CompletionAction": f"one of {', '.join(CompletionAction)}",
    "iterdev.core.types.Severity": f"one of {', '.join(Severity)}",
    "OnRejection": f"one of {', '.join(OnRejection)}",
    "iterdev.core.settings.RemoteEngine": f"one of {', '.join(RemoteEngine)}",
    "ConflictStrategy": ", ".join(f"`{word}`" for word in ConflictStrategy),
}

REQUIREMENTS_PAGE = """\
# Requirements

<!-- Written by docs/generate.py from the marks of the tests; run `make docs` after changing one. -->

What iterdev has to do is numbered: R1 to R143 is about the development team and what all teams share, R144 to R161 is
about the issue team, R179 and R180 are about the web page, and the others are details of both teams, of the message bus
and of the issue tracker. Each number is named by the tests that show it; a test fails when a number has none.
"""

CONFIGURATION = """\
# Configuration

<!-- Written by docs/generate.py from src/iterdev/core/settings.py; change that file, then run `make docs`. -->

The file `iterdev.toml` at the top of the repository. It may be absent: every key has a default. An unknown key is an
error that suggests the nearest name, and all errors are reported at once.
"""

ENVIRONMENT = """\
## Environment

| Variable | Does |
|---|---|
| `ITERDEV_WEBHOOK_SECRET` | signs the messages to the webhook of `[notify]`; see [notifications](notifications.md) |
| `ITERDEV_HOME` | iterdev's state folder; by default `iterdev` in `XDG_STATE_HOME` or `~/.local/state` |
| `NO_COLOR`, `CI` | plain lines instead of the live display, as in a pipe |
"""

COMMANDS = """\
# Commands

<!-- Written by docs/generate.py from src/iterdev/surfaces/cli/commands; change it there, then run `make docs`. -->

What `iterdev COMMAND --help` prints. A session is named by its id or the beginning of it, as the first argument or with
`--session-id`; without one, the session that was last active is used. With `--json` a command prints one JSON document
on standard output and nothing else. See [exit codes](exit-codes.md) for how commands end.
"""


def pages() -> dict[Path, str]:
    return {
        HERE / "configuration.md": configuration(),
        HERE / "commands.md": commands(),
        HERE / "requirements.md": requirements(),
    }


def configuration() -> str:
    explained = dict(_explanations())
    tables = (_table(name, kind, explained) for name, kind in get_type_hints(settings.Settings).items())
    return "\n".join([CONFIGURATION, *tables, ENVIRONMENT])


def _table(name: str, kind: type, explained: Mapping[tuple[str, str], str]) -> str:
    header = name
    if get_origin(kind) is not None:
        header, kind = f"{name}.{NAMED[name]}", get_args(kind)[1]
    defaults = kind()
    hints = inspect.get_annotations(kind)
    rows = "".join(
        f"| `{field}` | {_type(hints[field])} | {_default(defaults, field)} | {explained[kind.__name__, field]} |\n"
        for field in defaults.__struct_fields__
    )
    return f"## `[{header}]`\n\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n{rows}"


def _type(hint: object) -> str:
    text = hint.__name__ if isinstance(hint, type) and get_origin(hint) is None else str(hint)
    return TYPES[text.removesuffix(" | None")]


def _default(defaults: Struct, field: str) -> str:
    value = getattr(defaults, field)
    return "none" if value is None else f"`{json.dumps(value)}`"


def _explanations() -> Iterator[tuple[tuple[str, str], str]]:
    """The string under each field, by class and field."""
    classes = (node for node in ast.parse(inspect.getsource(settings)).body if isinstance(node, ast.ClassDef))
    for kind in classes:
        for field, below in pairwise(kind.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    yield (kind.name, name), " ".join(text.split())
                case _:
                    pass


def commands() -> str:
    root = click.Context(app, info_name="iterdev", terminal_width=WIDTH, **app.context_settings)
    parts = [_help("iterdev", app, root)]
    parts += _helps(app, root)
    aliases = "".join(f"| `iterdev {alias}` | `iterdev {name}` |\n" for alias, name in sorted(ALIASES.items()))
    return "\n".join([COMMANDS, *parts, f"## Aliases\n\n| Name | Same as |\n|---|---|\n{aliases}"])


def _helps(group: click.Group, above: click.Context) -> Iterator[str]:
    """Each command of a group, and of the groups in it."""
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        if command is not None:
            context = click.Context(command, info_name=name, parent=above)
            yield _help(context.command_path, command, context)
            if isinstance(command, click.Group):
                yield from _helps(command, context)


def _help(title: str, command: click.Command, context: click.Context) -> str:
    return f"## {title}\n\n```text\n{command.get_help(context)}\n```\n"


def requirements() -> str:
    """Every requirement with the tests that name it; one that has none is left out."""
    shown: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for test, names in _marked(ast.parse(path.read_text(encoding="utf-8"))):
            for name in names:
                link = f"[{test.removeprefix('test_').replace('_', ' ')}](../{path.relative_to(TESTS.parent)})"
                shown.setdefault(name, []).append(link)
    rows = "".join(f"| {name} | {'<br>'.join(shown[name])} |\n" for name in REQUIREMENTS if name in shown)
    return f"{REQUIREMENTS_PAGE}\n| Requirement | Shown by |\n|---|---|\n{rows}"


def _marked(module: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """The tests of a module that name requirements."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            marks = (mark for mark in node.decorator_list if ast.unparse(mark).startswith("pytest.mark.requirement("))
            names = [ast.literal_eval(word) for mark in marks if isinstance(mark, ast.Call) for word in mark.args]
            if names:
                yield node.name, names


def plugins() -> dict[Path, str]:
    """The marketplace with the plugins for Claude Code and Codex."""
    return {HERE.parent / "marketplace" / path: text for path, text in plugin_files().items()}


def main() -> None:
    for path, text in (pages() | plugins()).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
