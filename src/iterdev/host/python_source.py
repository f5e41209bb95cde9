"""What an interpreter says of Python files: whether it can read them, and which modules they import.

This file is also run by the interpreter of the project (`python -c`), which may be older or newer than iterdev's; it
therefore needs nothing but the standard library of Python 3.6.
"""

import ast
import json
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What the parser raises."""


def read(source: bytes, name: str) -> "dict[str, object]":
    """The error with its line, and the imports that must not fail, with their lines."""
    try:
        tree = parsed(source, name)
    except UNREADABLE as error:
        return {"error": str(getattr(error, "msg", error)), "line": getattr(error, "lineno", None) or 0, "imports": []}
    return {"error": "", "line": 0, "imports": list(_imports(tree))}


def parsed(source: "str | bytes", name: str = "<unknown>") -> ast.Module:
    """Without warnings: those about the code of a project are not for the user of iterdev."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, name)


def _imports(tree: ast.AST) -> "Iterator[list[str | int]]":
    """Leaves out what is inside of `try`, `if` and `with`: such imports may fail, or are not executed at all."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield [alias.name, node.lineno]
        elif isinstance(node, ast.ImportFrom):
            yield ["." * node.level + (node.module or ""), node.lineno]
        elif not isinstance(node, (ast.Try, ast.If, ast.With)):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def main(given: str, answer: str) -> None:
    """Reads files that are given as `[name, path]`, and writes the answers, with the version of the interpreter."""
    with open(given, encoding="utf-8") as file:  # noqa: PTH123
        listed = json.load(file)
    found = {}
    for name, path in listed:
        with open(path, "rb") as file:  # noqa: PTH123
            found[path] = read(file.read(), name)
    with open(answer, "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump({"version": sys.version_info[:2], "files": found}, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
