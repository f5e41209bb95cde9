"""A whole line of arguments from standard input, as a user types it after the name of a team.

A coding agent passes on what its user typed. In a shell line of the agent, quotes and `$(...)` of the user would be
interpreted by the shell; here they are only read.
"""

import shlex
from collections.abc import Callable, Sequence

import click

from iterdev.core.errors import UserError

OPTION = "--line"
STARTERS = frozenset({"run", "resolve"})
WORDS = frozenset({"check", "status", "resume", "continue"})
"""Commands that a line may consist of instead, as after `team-iterdev`."""
MOST = 100_000
"""Characters of a line."""

option = click.option(
    OPTION, type=click.Choice(["-"]), expose_value=False, help="Read further arguments from standard input, as one line"
)


def expanded(arguments: Sequence[str], read: Callable[[int], str]) -> list[str]:
    """A command and its arguments, with the words of the line in place of the option."""
    command, *rest = arguments
    own = rest[: rest.index("--")] if "--" in rest else rest
    for form in ([OPTION, "-"], [f"{OPTION}=-"]):
        for place in range(len(own)):
            if own[place : place + len(form)] == form:
                return _with_words(command, [*rest[:place], *rest[place + len(form) :]], words(read(MOST + 1)))
    return [command, *rest]


def words(line: str) -> list[str]:
    """The words by the rules of a shell; an apostrophe that closes nothing, as in a sentence, stands for itself."""
    if len(line) > MOST:
        raise UserError(f"The line has more than {MOST} characters", hint="iterdev run --file PATH")
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _with_words(command: str, rest: list[str], line: list[str]) -> list[str]:
    if len(line) == 1 and line[0] in WORDS:
        kept = {"--json", *(("--detach",) if line[0] in {"resume", "continue"} else ())}
        return [line[0], *(word for word in rest if word in kept)]
    return [command, *rest, *line]
