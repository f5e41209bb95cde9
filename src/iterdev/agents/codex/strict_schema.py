"""Strict JSON Schemas, which providers enforce, and the conversion of strict answers back to the ordinary form.

The strict form has no optional members and no objects with free keys. An optional member becomes nullable, and an
object with free keys becomes a string that contains JSON.
"""

import json
from collections.abc import Mapping, Sequence

FREE = "as_json"
"""The only member of the object that represents an object with free keys."""

_KEPT = frozenset(
    {"type", "title", "description", "enum", "const", "pattern", "format"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"}
)
"""Keywords that the strict form shares; the provider rejects a schema with any other keyword."""

_NULL: Mapping[str, object] = {"type": "null"}
_FREE_OBJECT: Mapping[str, object] = {
    "type": "object",
    "properties": {FREE: {"type": "string", "description": "the object, written as JSON"}},
    "required": [FREE],
    "additionalProperties": False,
}


def to_strict(schema: Mapping[str, object]) -> dict[str, object]:
    """The strict form of a schema; its root must not be a reference, because it has to be an object."""
    definitions = _mapping(schema.get("$defs"))
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    root = _strict(_mapping(definitions.get(name)) or schema)
    named = {name: _strict(_mapping(part)) for name, part in definitions.items()}
    return {**root, "$defs": named} if named else root


def _strict(schema: Mapping[str, object]) -> dict[str, object]:
    match schema:
        case {"$ref": reference}:
            return {"$ref": reference}
        case {"anyOf": Sequence() as choices}:
            return {**_kept(schema), "anyOf": [_strict(_mapping(choice)) for choice in choices]}
        case {"properties": Mapping() as members}:
            required = schema.get("required")
            needed = set(required) if isinstance(required, Sequence) else set()
            parts = {name: _strict(_mapping(part)) for name, part in members.items()}
            properties = {name: part if name in needed else _nullable(part) for name, part in parts.items()}
            closed = {"properties": properties, "required": list(properties), "additionalProperties": False}
            return {**_kept(schema), **closed}
        case {"type": "object"}:
            return {**_kept(schema), **_FREE_OBJECT}
        case {"items": Mapping() as items}:
            return {**_kept(schema), "items": _strict(items)}
        case {"enum": [str(), *_]}:
            return {"type": "string", **_kept(schema)}
        case _:
            return _kept(schema)


def _kept(schema: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in schema.items() if name in _KEPT}


def _nullable(schema: dict[str, object]) -> dict[str, object]:
    match schema:
        case {"anyOf": Sequence() as choices}:
            return schema if _NULL in choices else {**schema, "anyOf": [*choices, _NULL]}
        case _:
            return {"anyOf": [schema, _NULL]}


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def to_ordinary(body: bytes) -> bytes:
    """The ordinary form of an answer; anything but JSON is returned unchanged."""
    try:
        return json.dumps(_ordinary(json.loads(body)), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return body


def _ordinary(value: object) -> object:
    match value:
        case dict():
            # A member that is null represents an absent one.
            members = {name: member for name, member in value.items() if member is not None}
            if members.keys() == {FREE}:
                return _free_object(members[FREE])
            return {name: _ordinary(member) for name, member in members.items()}
        case list():
            return [_ordinary(item) for item in value]
        case _:
            return value


def _free_object(text: object) -> dict[str, object]:
    """The object in a text; any other text is kept as a member."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        found = text
    return found if isinstance(found, dict) else {"text": found}
