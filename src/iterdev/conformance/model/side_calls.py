"""Answers to side calls (titles, routers, summaries), which no script describes but which may have a schema."""

import json

from iterdev.conformance.model.messages import Json

ANSWER = "scripted"

_PLAIN: Json = {"object": {}, "array": [], "integer": 1, "number": 1, "boolean": False, "null": None}


def answer(schema: Json | None) -> str:
    return ANSWER if schema is None else json.dumps(smallest(schema))


def smallest(schema: Json) -> object:
    """A small value that matches a JSON Schema, as far as the schemas of side calls go."""
    match schema:
        case {"const": value} | {"enum": [value, *_]}:
            return value
        case {"anyOf": [dict(first), *_]} | {"oneOf": [dict(first), *_]}:
            return smallest(first)
        case {"properties": dict(properties)}:
            return {name: smallest(inner) for name, inner in properties.items()}
        case {"type": "array" | "ARRAY", "minItems": int(count), "items": dict(items)}:
            return [smallest(items)] * count
        case {"minimum": int(least)}:
            return least
        case {"type": str(kind)} | {"type": [str(kind), *_]}:
            return _PLAIN.get(kind.lower(), ANSWER)
        case _:
            return ANSWER
