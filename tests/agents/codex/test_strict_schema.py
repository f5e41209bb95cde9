import json
from collections.abc import Iterator, Mapping

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterdev.agents.codex.strict_schema import to_ordinary, to_strict
from iterdev.core.results import decode
from iterdev.core.types import TaskId
from iterdev.teams.development.roles import Role
from iterdev.teams.development.team import DEVELOPMENT

UNKNOWN = {"default", "allOf", "oneOf", "not", "patternProperties", "prefixItems", "minLength", "maxLength"}
SCALARS: Mapping[str, st.SearchStrategy[object]] = {
    "string": st.text(max_size=5),
    "integer": st.integers(0, 9),
    "number": st.integers(1, 10),
    "boolean": st.booleans(),
    "null": st.none(),
}


def parts(part: object) -> Iterator[dict[str, object]]:
    """Every schema inside of a schema."""
    match part:
        case dict():
            yield part
            for value in part.values():
                yield from parts(value)
        case list():
            for value in part:
                yield from parts(value)
        case _:
            pass


def answers(part: dict[str, object], definitions: dict[str, dict[str, object]]) -> st.SearchStrategy[object]:
    """What a provider lets a model say under a strict schema."""
    match part:
        case {"$ref": str(name)}:
            return answers(definitions[name.removeprefix("#/$defs/")], definitions)
        case {"anyOf": list(choices)}:
            return st.one_of([answers(choice, definitions) for choice in choices])
        case {"enum": list(values)}:
            return st.sampled_from(values)
        case {"properties": {"as_json": _}}:
            return st.just({"as_json": '{"any": [1, null]}'})
        case {"properties": dict(members)}:
            return st.fixed_dictionaries({name: answers(member, definitions) for name, member in members.items()})
        case {"items": dict(items)}:
            return st.lists(answers(items, definitions), min_size=int(str(part.get("minItems", 0))), max_size=2)
        case {"type": str(kind)}:
            return SCALARS[kind]
        case _:
            raise AssertionError(part)


@pytest.mark.parametrize("role", list(DEVELOPMENT.roles))
def test_the_schema_of_every_role_keeps_the_rules_of_the_strict_dialect(role: str) -> None:
    found = to_strict(DEVELOPMENT.result_schema(role))

    assert found["type"] == "object"
    for part in parts(found):
        if "properties" in part and isinstance(part["properties"], dict) and part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
        assert part.get("type") != "object" or "properties" in part
        assert "properties" not in part or not UNKNOWN & part.keys()


@pytest.mark.parametrize("role", [role for role in DEVELOPMENT.roles if role != Role.reviewer])
@settings(max_examples=25)
@given(data=st.data())
def test_every_answer_that_a_strict_schema_allows_decodes(role: str, data: st.DataObject) -> None:
    found = msgspec.convert(to_strict(DEVELOPMENT.result_schema(role)), dict[str, object])
    said = data.draw(answers(found, msgspec.convert(found["$defs"], dict[str, dict[str, object]])))
    document = msgspec.convert(said, dict[str, object]) | {"id": "DEV-001", "status": "completed"}

    result = decode(
        to_ordinary(json.dumps(document).encode()), kind=DEVELOPMENT.roles[role].result, task=TaskId("DEV-001")
    )

    assert all(discovery.data == {"any": [1, None]} for discovery in result.discoveries)


def test_a_review_in_the_strict_form_decodes() -> None:
    issue = {"severity": "high", "description": "d", "file": None, "line": None, "dimension": None, "suggestion": None}
    scores = dict.fromkeys(("correctness", "completeness", "maintainability", "security"), 7)
    review = {"id": "GC-001", "status": "completed", "error": None, "scores": scores, "issues": [issue], "usage": None}

    result = decode(
        to_ordinary(json.dumps(review).encode()), kind=DEVELOPMENT.roles[Role.reviewer].result, task=TaskId("GC-001")
    )

    assert result.error == ""


def test_a_member_that_may_be_left_out_may_be_null_once() -> None:
    members = {"a": {"type": "string", "default": ""}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}}

    found = to_strict({"type": "object", "properties": members})

    null = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert found == {
        "type": "object",
        "properties": {"a": null, "b": null},
        "required": ["a", "b"],
        "additionalProperties": False,
    }


def test_nulls_are_removed_from_objects_at_any_depth_and_stay_in_lists() -> None:
    assert to_ordinary(b'{"a": null, "b": [{"c": null}, null]}') == b'{"b": [{}, null]}'


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('{"a": {"b": null}}', {"a": {"b": None}}),
        ("no JSON", {"text": "no JSON"}),
        ("[1]", {"text": [1]}),
        (7, {"text": 7}),
    ],
)
def test_an_object_with_free_keys_is_what_its_text_says(said: object, meant: object) -> None:
    assert json.loads(to_ordinary(json.dumps({"x": [{"as_json": said}]}).encode())) == {"x": [meant]}


@pytest.mark.parametrize("body", [b"", b"no JSON", b"\xff", b"[" * 100_000])
def test_text_that_is_not_json_is_returned_unchanged(body: bytes) -> None:
    assert to_ordinary(body) == body
