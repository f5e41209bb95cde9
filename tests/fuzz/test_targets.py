"""Whatever a parser is given, it is read or refused, in bounded time and memory; `make fuzz` is the long form."""

import pytest
from tests.fuzz import found
from tests.fuzz.explore import Fault, faults, generated, isolated
from tests.fuzz.targets import TARGETS

INPUTS = 10_000
"""Of all targets together."""
LIMIT = 300.0
"""Seconds for the inputs of one target, on a machine with other things to do."""


def described(faults: list[Fault]) -> str:
    return "\n".join(f"{fault.place} with {fault.data[:500]!r}\n{fault.error}" for fault in faults)


@pytest.mark.parametrize("name", TARGETS)
def test_whatever_is_given_to_a_parser_is_read_or_refused(name: str) -> None:
    target = TARGETS[name]
    inputs = generated(target, -(-INPUTS // len(TARGETS)), seed="tests")

    wrong = isolated(lambda: faults(target, inputs), limit=LIMIT)

    assert not wrong, described(wrong)


@pytest.mark.parametrize("name", [path.name for path in sorted(found.FOUND.iterdir())])
def test_what_was_found_once_stays_fixed(name: str) -> None:
    target = TARGETS[name.replace("-", " ")]

    wrong = isolated(lambda: faults(target, found.inputs(target.name).values()), limit=LIMIT)

    assert not wrong, described(wrong)


@pytest.mark.parametrize("data", [b"", b"short \xff", b"a" + b"xyz" * 50_000 + b"b", b"[" * 100_000])
def test_an_input_is_kept_as_it_is_and_short(data: bytes) -> None:
    assert found.decoded(found.encoded(data)) == data
    assert sum(len(str(text)) for text, _ in found.encoded(data)) < 1_000
