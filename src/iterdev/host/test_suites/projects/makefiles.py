"""Finds the tests that a Makefile runs, and the runner behind them if the recipe is one command."""

import re
from collections.abc import Iterator

from iterdev.host.test_suites.invocations import recognise
from iterdev.host.test_suites.projects.files import ProjectFiles
from iterdev.host.test_suites.suite import Suite

_NAMES = ("GNUmakefile", "makefile", "Makefile")
_TARGETS = ("test", "check", "tests")
_LINTS = frozenset({"lint", "fmt", "format", "vet", "clean"})


def find(files: ProjectFiles) -> Iterator[Suite]:
    """A target of the Makefile at the top; only for projects in which nothing else was found."""
    text = next((files.text("", name) for name in _NAMES if name in files.folders.get("", ())), "")
    for target in _TARGETS:
        rule = re.search(
            rf"^{target}[ \t]*::?(?!=)(.*)\n((?:\t.*\n?|[ \t]*#.*\n|[ \t]*\n)*)", f"{text}\n", re.MULTILINE
        )
        if rule:
            yield _behind(rule[1], rule[2]) or Suite(command=f"make {target}", kind="make")
            return


def _behind(prerequisites: str, recipe: str) -> Suite | None:
    """The command of a recipe of one line that needs nothing to be built before."""
    lines = [
        line.strip().lstrip("@-+ ") for line in recipe.splitlines() if line.strip() and not line.strip().startswith("#")
    ]
    needed = [name for name in prerequisites.split("#", maxsplit=1)[0].split() if name not in _LINTS]
    if len(lines) != 1 or needed:
        return None
    command = re.sub(r"\$\((?:PYTHON|PY|PYTHON3)\)", "python3", lines[0])
    if "$" in command.replace("$$", ""):
        return None  # a variable of make
    command = command.replace("$$", "$")
    call = recognise(command)
    return Suite(command=command, kind=call.kind) if call and call.kind != "make" else None
