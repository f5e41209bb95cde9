"""Questions to the user in a terminal."""

import os
import sys

import anyio

from iterdev.core.views.session import GateView
from iterdev.surfaces.cli.output.console import print_prompt, print_text


def is_terminal() -> bool:
    """A person is looking, and has not asked for plain output."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not os.environ.get("CI")


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


async def ask(gate: GateView) -> str | None:
    """Asks on the terminal until an answer fits; without a terminal, or at the end of the input, there is no answer."""
    if not can_ask():
        return None
    print_text(gate.question)
    for number, choice in enumerate(gate.choices, 1):
        print_text(f"  {number}. {choice}")
    while True:
        print_prompt(f"{gate.id} [{gate.choices[0]}]: ")
        await anyio.wait_readable(sys.stdin)
        line = sys.stdin.readline()
        if not line:
            print_text("")
            return None
        word = line.strip() or gate.choices[0]
        if word.isdigit() and 0 < int(word) <= len(gate.choices):
            return gate.choices[int(word) - 1]
        if word in gate.choices:
            return word
        print_text(f'"{word}" is not one of {", ".join(gate.choices)}')
