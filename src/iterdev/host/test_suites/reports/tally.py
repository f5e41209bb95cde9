"""What a report says, whatever the runner."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Outcome = Literal["passed", "failed", "skipped"]

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")


class Tally(Struct, frozen=True, kw_only=True):
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    skipped: int = 0


def tally(outcomes: Iterable[tuple[str, Outcome]]) -> Tally:
    """Numbers tests of the same name, so that a failed one is not taken for one that passed."""
    seen = Counter[str]()
    names: dict[Outcome, list[str]] = {"passed": [], "failed": [], "skipped": []}
    for given, outcome in outcomes:
        name = stable(given)
        seen[name] += 1
        names[outcome].append(name if seen[name] == 1 else f"{name} [{seen[name]}]")
    return Tally(passed=tuple(names["passed"]), failed=tuple(names["failed"]), skipped=len(names["skipped"]))


def stable(name: str) -> str:
    """The name without addresses in memory, which differ in every run."""
    return _ADDRESS.sub("0x…", name)


def unnumbered(name: str) -> str:
    """The name as its runner gave it."""
    return re.sub(r" \[\d{1,9}\]$", "", name)
