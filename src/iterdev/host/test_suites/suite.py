"""A test suite, and which runner it is for."""

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

Kind = Literal[
    "pytest",
    "unittest",
    "mocha",
    "jest",
    "vitest",
    "ava",
    "uvu",
    "node",
    "jasmine",
    "bun",
    "deno",
    "tap",
    "npm",
    "go",
    "cargo",
    "nextest",
    "maven",
    "gradle",
    "ctest",
    "meson",
    "autotools",
    "rspec",
    "minitest",
    "phpunit",
    "swift",
    "dotnet",
    "prove",
    "make",
    "custom",
]
"""The runner, or `tap` for a program that prints TAP, and for the last two a program of which only that is known."""


class Suite(Struct, frozen=True, kw_only=True):
    command: str
    """Text for `sh -c`."""
    kind: Kind
    folder: str = ""
    """Where the command runs, relative to the top of the tree."""
    tests: tuple[str, ...] = ()
    """The only tests to run, named as in a report; without any, all of them."""


Works = Callable[[Sequence[str]], bool]
"""Whether a command, run at the top of the project, succeeds."""
