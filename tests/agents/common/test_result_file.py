"""Finding the result of an agent in its output."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterdev.agents.common.result_file import last_json_object

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("no object at all } here", None),
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": 1}\n{"b": 2}\n', '{"b": 2}'),
        ('{"a": {"b": 2}}', '{"a": {"b": 2}}'),
        ('log: {"a": "}{"} {later}', '{"a": "}{"}'),
        ('if (x) {\n{"a": 1}\n}', '{"a": 1}'),
        ('say "{ \n{"a": 1}', '{"a": 1}'),
        ('[{"a": 1}, {"b": 2}]', '{"b": 2}'),
        ('{"a": 1}\n{"cut off": {"b": 2}', '{"a": 1}'),
        ('{"usage": {"input_tokens": 1},}', None),
        ('{"n": ' + "9" * 5000 + "}", '{"n": ' + "9" * 5000 + "}"),
        ("{" + '"a": {' * 5000 + "\n" + '{"b": 2}', '{"b": 2}'),
    ],
)
def test_the_last_json_object_is_found(text: str, expected: str | None) -> None:
    found = last_json_object(text.encode())

    assert found == (expected.encode() if expected is not None else None)


@pytest.mark.parametrize(
    "piece", ["{", '{"', '{"a":', '{"a":\n', '{"a":[', '{"\\"', '"{"', '{"a":{},"a":', "{\n", "[{"]
)
def test_a_hostile_text_does_not_hide_the_object_after_it(piece: str) -> None:
    text = piece * (256 * 1024 // len(piece)) + '\n"}\n{"a": 1}'

    assert last_json_object(text.encode()) == b'{"a": 1}'


@settings(deadline=None, max_examples=50)
@given(
    before=st.text("ab[]:,é \n"),
    value=st.dictionaries(st.text('a"{}\\\n'), st.lists(st.none() | st.text('a"{}\\\n') | st.integers())),
    after=st.text('ab]}:,"é \n'),
)
def test_any_object_survives_the_text_around_it(before: str, value: dict[str, object], after: str) -> None:
    encoded = json.dumps(value).encode()

    assert last_json_object(before.encode() + encoded + after.encode()) == encoded


def test_bytes_that_are_no_text_do_not_hide_an_object() -> None:
    assert last_json_object(b'\xff\xfe{"a": 1}\x80') == b'{"a": 1}'
