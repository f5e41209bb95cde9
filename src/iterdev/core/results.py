"""Results of agents: the fields that every role's result has, and the decoding, which says what does not fit.

The results of a team's roles are in the team. An agent's numbers are taken only where they cannot be measured.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from iterdev.core.types import TaskId

FINDINGS_LIMIT = 500
"""Longer findings are cut: the table is for people to read."""
MOST_LEVELS = 64
"""How deeply the lists and objects of a result may be nested in each other."""
MOST_ITEMS = 1_000
"""Items of one list of a result; further ones are dropped."""
MOST_BY_NAME = {
    **dict.fromkeys(("discoveries", "tech_debt", "learnings", "decisions", "conventions"), 200),
    **dict.fromkeys(("changed_files", "files", "related_files"), 10_000),
}
"""The same for certain lists: remarks, which are shown and passed on one by one, and names of files."""

MOST_USED = 10**15
"""Tokens or dollars."""

_NESTING = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


S = TypeVar("S", bound=Struct)


class Misfit(ValueError):
    """A result that does not fit its schema; the text says where and why."""


class Usage(Struct, frozen=True, kw_only=True, gc=False):
    """What was used. Agents report it themselves: a negative number counts as none, and a sum stays finite."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    def __post_init__(self) -> None:
        for name in ("input_tokens", "output_tokens", "cost_usd"):
            value = getattr(self, name)
            if not 0 <= value <= MOST_USED:
                force_setattr(self, name, MOST_USED if value > 0 else 0)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
        )


NO_USAGE = Usage()


class Discovery(Struct, frozen=True):
    type: str
    data: dict[str, object]


class LearnedTexts(Struct, frozen=True, kw_only=True, gc=False):
    learnings: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    conventions: tuple[str, ...] = ()
    issues: tuple[str, ...] = ()


class TechDebt(Struct, frozen=True, kw_only=True):
    """A shortcut of the work; a bare sentence is one too."""

    description: str
    category: str = "code"
    severity: str = "medium"
    estimated_effort: str = ""
    priority: str = "medium"
    owner: str = ""
    resolution_plan: str = ""
    related_files: tuple[str, ...] = ()


class Dependency(Struct, frozen=True, kw_only=True):
    """An external package that the work needs."""

    name: str
    version_range: str = ""
    source: str = "unknown"


class Result(Struct, frozen=True, kw_only=True):
    """The fields that the result of every role has."""

    id: str
    status: Literal["completed", "failed"]
    findings: str = ""
    error: str = ""
    discoveries: tuple[Discovery, ...] = ()
    artifact_path: str | None = None
    changed_files: tuple[str, ...] | None = None
    """What the agent says it changed; an empty list says that nothing had to be."""
    usage: Usage = Usage()
    tech_debt: tuple[TechDebt | str, ...] = ()
    wisdom: LearnedTexts = LearnedTexts()

    @property
    def omissions(self) -> str:
        """What the result lacks of the schema, although it can be used without it; it is requested again."""
        return ""


def schema(kind: type[Result]) -> dict[str, object]:
    """The JSON Schema of a result, for the agent to read."""
    return msgspec.json.schema(kind, schema_hook=_any_value)


def _any_value(_kind: type) -> dict[str, object]:
    return {"title": "any JSON value"}


@cache
def field_names(kind: type[Result]) -> frozenset[str]:
    """The names of all fields of a result, including those of the values in it."""
    _, defined = msgspec.json.schema_components([kind], schema_hook=_any_value)
    return frozenset(name for struct in defined.values() for name in struct.get("properties", {}))


def decode(body: bytes | str, *, kind: type[Result], task: TaskId) -> Result:
    """The result as a value; a misfit says where it does not fit."""
    if not body.strip():
        raise Misfit("the result is empty")
    if nesting(body) > MOST_LEVELS:
        raise Misfit(f"the result is nested too deeply, more than {MOST_LEVELS} levels")
    try:
        result = _decoded(body, Result if _says_failed(body) else kind)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Misfit(str(error)) from error
    if result.id != task:
        raise Misfit(f'"id" is "{result.id}", expected "{task}"')
    if result.status == "failed" and not (result.error or result.findings):
        raise Misfit('"status" is "failed", but "error" does not say why')
    dropped: list[str] = []
    kept = _bounded(result, dropped)
    note = f" (only {'; '.join(dropped)} are kept)" if dropped else ""
    return replace(kept, findings=shortened(result.findings, FINDINGS_LIMIT - len(note)) + note)


def _decoded(body: bytes | str, kind: type[Result]) -> Result:
    """Agents also write an optional member that they have nothing for as null."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        document = msgspec.json.decode(body)
        optional = {field.encode_name for field in msgspec.structs.fields(kind) if not field.required}
        if not isinstance(document, dict) or None not in map(document.get, optional & document.keys()):
            raise
        given = {name: value for name, value in document.items() if value is not None or name not in optional}
        return msgspec.convert(given, kind)


def nesting(body: bytes | str) -> int:
    """How deeply the lists and objects of a JSON text are nested."""
    text = body if isinstance(body, str) else body.decode("utf-8", "replace")
    deepest = level = 0
    for token in _NESTING.finditer(text):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        deepest = max(deepest, level)
    return deepest


def _bounded(value: S, dropped: list[str]) -> S:
    """The value with lists of at most so many items; what is left of longer ones is added to `dropped`."""
    changed: dict[str, object] = {}
    for name in value.__struct_fields__:
        match getattr(value, name):
            case tuple() as items:
                most = MOST_BY_NAME.get(name, MOST_ITEMS)
                if len(items) > most:
                    dropped.append(f"the first {most} of {len(items)} {name}")
                changed[name] = tuple(
                    _bounded(one, dropped) if isinstance(one, Struct) else one for one in items[:most]
                )
            case Struct() as part:
                changed[name] = _bounded(part, dropped)
            case _:
                pass
    return replace(value, **changed) if changed else value


def shortened(text: str, limit: int = FINDINGS_LIMIT) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _says_failed(body: bytes | str) -> bool:
    """Whether the agent says it failed: then only the common fields are asked of it."""
    try:
        document = json.loads(body)
    except ValueError:
        return False
    return isinstance(document, Mapping) and document.get("status") == "failed"
