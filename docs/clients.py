"""Calls the team from inside of the coding agents of the tests, and writes the results into the page."""
# ruff: noqa: INP001 - a script, not a part of a package

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.clis import find_cli, find_optional_cli  # noqa: E402 - after its path is known
from tests.conformance.clients import (  # noqa: E402
    CASES,
    CLIENTS,
    DIALOG,
    PLUGIN,
    SKILL,
    called_by,
    end_processes,
    observe_offline,
)

PAGE = HERE / "clients.md"
BEGIN, END = "<!-- results: written by docs/clients.py; run `make conformance` -->\n", "<!-- end of the results -->\n"
BY_MODEL = 'the model calls `Skill(skill="team-iterdev", args="...")`'
WHERE = {DIALOG: " in a terminal", PLUGIN: " of the plugin"}
ASKED = {
    ("claude", DIALOG): "a dialog of the client",
    ("claude", PLUGIN): "a dialog of the client",
    ("codex", DIALOG): "a form of the client",
}
HEADER = "| Client | The team is called by | The question reaches the user as | Its answer and the end | Model calls |"


def table(rows: Sequence[tuple[str, str, str, Mapping[str, object]]]) -> Iterator[str]:
    yield HEADER
    yield "|---" * HEADER.count(" | ") + "|---|"
    for name, version, form, seen in rows:
        called = BY_MODEL if form == SKILL else f"`{called_by(CLIENTS[name], form)}`{WHERE.get(form, '')}"
        asked = ASKED.get((name, form), "a question of the model") if seen["asked"] else "**not**"
        works = seen["instructed"] and seen["ended"] and seen["standing"] == "completed, succeeded"
        calls = f"{seen['calls']} in all, {seen['while_working']} while the team worked"
        yield f"| {name} {version} | {called} | {asked} | {'ok' if works else '**failed**'} | {calls} |"


def played(name: str, form: str) -> Mapping[str, object]:
    with TemporaryDirectory(prefix="c") as folder:
        try:
            return observe_offline(name, form, Path(folder))[0]
        finally:
            end_processes(Path(folder))


def version(name: str) -> str:
    program = find_optional_cli(name) if name == "opencode" else find_cli(name)
    said = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=True).stdout
    return next(iter(re.findall(r"\d+\.\d+\.\d+", said)), "")


def with_results(page: str, lines: Iterator[str]) -> str:
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    results = [(name, version(name), form, played(name, form)) for name, form in CASES]
    PAGE.write_text(with_results(PAGE.read_text(encoding="utf-8"), table(results)), encoding="utf-8")
