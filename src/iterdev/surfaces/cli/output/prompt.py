"""Questions to the user in a terminal."""

import os
import sys

import anyio

from iterdev.core.views.gates import GateView
from iterdev.surfaces.cli.output.console import print_prompt, print_text

LATER = ("q", "quit")
"""The words with which a question stays open."""


def is_terminal() -> bool:
    """A person is looking, and has not asked for plain output."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not os.environ.get("CI")


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


async def ask(gate: GateView) -> str | None:
    """Asks on the terminal until one of the options fits.

    There is no answer without a terminal, at the end of the input, and if the user wants to answer later.
    """
    if not can_ask():
        return None
    print_text("\n".join(question_lines(gate)))
    while True:
        print_prompt(f"{gate.id} [{gate.choices[0]}]: ")
        await anyio.wait_readable(sys.stdin)
        line = sys.stdin.readline()
        if not line:
            print_text("")
            return None
        word = line.strip() or gate.choices[0]
        if word in LATER:
            return None
        if option := gate.meant(word):
            return option
        print_text(f'"{word}" is not one of {", ".join(gate.options)} (q to answer later)')


def question_lines(gate: GateView) -> list[str]:
    """The question with what it is about, and a line for each option."""
    lines = [gate.question, *(f"  {line}" for line in gate.details)]
    for number, option in enumerate(gate.options, 1):
        mark = " (Recommended)" if gate.recommended and option == gate.choices[0] else ""
        described = gate.descriptions.get(option, "")
        lines.append(f"  {number}. {option}{mark}{f': {described}' if described else ''}")
    return lines
