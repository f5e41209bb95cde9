"""What a report says, whatever the runner."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Outcome = Literal["passed", "failed", "skipped"]

TESTS = 500_000
"""Tests of a report; the journal keeps their names."""
CHARACTERS = 20_000_000
"""Characters of the names of all tests."""
NAME_LIMIT = 1_000
"""Characters of a name; the rest is cut."""

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")


class Tally(Struct, frozen=True, kw_only=True):
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: int = 0


def tally(outcomes: Iterable[tuple[str, Outcome]]) -> Tally | None:
    """Numbers tests of the same name, so that a failed one is not taken for one that passed.

    None if there are more tests, or longer names, than a test suite has.
    """
    seen, room = Counter[str](), CHARACTERS
    names: dict[Outcome, list[str]] = {"passed": [], "failed": [], "skipped": []}
    for given, outcome in outcomes:
        name = stable(given)
        seen[name] += 1
        room -= max(len(name), CHARACTERS // TESTS)
        if room < 0:
            return None
        names[outcome].append(name if seen[name] == 1 else f"{name} [{seen[name]}]")
    return Tally(passed=tuple(names["passed"]), failed=tuple(names["failed"]), skipped=len(names["skipped"]))


def cut(name: str) -> str:
    return name if len(name) <= NAME_LIMIT else f"{name[:NAME_LIMIT]}…"


def stable(name: str) -> str:
    """The name without what differs in every run, such as addresses in memory, and without a very long rest."""
    return _ADDRESS.sub("0x…", cut(name))


def unnumbered(name: str) -> str:
    """The name as its runner gave it."""
    return re.sub(r" \[\d{1,9}\]$", "", name)
