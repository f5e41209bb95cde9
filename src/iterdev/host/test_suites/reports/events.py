"""Reads what the programs in `reporters/` write: a line of JSON when a test starts, when it ends, and at the end."""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from iterdev.host.test_suites.reports.tally import Outcome, Tally, stable, tally

_RANK: dict[str, int] = {"skipped": 0, "passed": 1, "failed": 2}


class _Event(Struct, forbid_unknown_fields=True):
    event: Literal["begin", "start", "passed", "failed", "skipped", "end"]
    test: str = ""


_DECODER = msgspec.json.Decoder(_Event)


def _events(text: str) -> Iterator[_Event]:
    for line in _lines(text):
        yield _DECODER.decode(line)


def _lines(text: str) -> list[str]:
    """Names may have characters that `splitlines` takes for the end of a line, such as U+2028."""
    return text.removesuffix("\n").split("\n") if text else []


def events(text: str) -> Tally | None:
    """A test with several outcomes, such as that of its teardown, has the worst of them.

    One test may have the same name as another; a new start tells them apart.
    """
    try:
        found = list(_events(text))
    except (msgspec.MsgspecError, RecursionError):
        return None
    # A run inside of the run, such as that of a plugin's own tests, begins and ends before the outer one.
    if not found or found[-1].event != "end":
        return None
    return tally(_outcomes(found))


def _outcomes(found: list[_Event]) -> Iterator[tuple[str, Outcome]]:
    numbers: dict[str, int] = {}
    outcomes: dict[tuple[str, int], Outcome] = {}
    for event in found:
        match event.event:
            case "begin" | "end":
                pass
            case "start":
                number = numbers.get(event.test, 0)
                numbers[event.test] = number + ((event.test, number) in outcomes)
            case outcome:
                key = (event.test, numbers.setdefault(event.test, 0))
                outcomes[key] = max(outcome, outcomes.get(key, "skipped"), key=_RANK.__getitem__)
    return ((name, outcome) for (name, _), outcome in outcomes.items())


def cut_short(text: str) -> bool:
    """Whether the report was begun and has no end."""
    try:
        return bool(text) and _DECODER.decode(_lines(text)[-1]).event != "end"
    except (msgspec.MsgspecError, RecursionError):
        return True


def unfinished(text: str) -> tuple[str, ...]:
    """The tests that were started and had not ended; the last line may be cut."""
    running: dict[str, None] = {}
    for line in _lines(text):
        try:
            event = _DECODER.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            continue
        if event.event == "start":
            running[event.test] = None
        else:
            running.pop(event.test, None)
    return tuple(map(stable, running))
