"""Answers to side calls, which have to match the schema in the request."""

import json

import pytest

from iterdev.conformance.model.playback import side_answer


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "scripted"),
        ({"type": "STRING"}, "scripted"),
        ({"type": ["integer", "null"]}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "string", "enum": ["flash", "pro"]}, "flash"),
        ({"const": 7}, 7),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, False),
        ({"oneOf": [{"type": "null"}]}, None),
        ({"type": "array", "items": {"type": "string"}}, []),
        ({"type": "array", "items": {"type": "number"}, "minItems": 2}, [1, 1]),
        ({"type": "object"}, {}),
        ({"properties": {"title": {"type": "string"}, "more": {"type": "array"}}}, {"title": "scripted", "more": []}),
        ({}, "scripted"),
    ],
)
def test_an_answer_matches_its_schema(schema: dict[str, object], value: object) -> None:
    assert json.loads(side_answer(schema)) == value


def test_without_a_schema_the_answer_is_a_word() -> None:
    assert side_answer(None) == "scripted"
