"""A part of the state while events are folded into it.

A map is copied before its first change and then changed in place, so that folding a whole journal takes time in
proportion to its length, and folding one event touches little.
"""

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

StructPart = TypeVar("StructPart", bound=Struct)
Key = TypeVar("Key")
Value = TypeVar("Value")


def without(mapping: Mapping[Key, Value], *keys: Key) -> Mapping[Key, Value]:
    return {key: value for key, value in mapping.items() if key not in keys} if mapping else mapping


def differing(now: Mapping[Key, object], then: Mapping[Key, object]) -> set[Key]:
    """The keys that were added or removed, or have another value; nothing is changed in place, so no value is read."""
    if now is then:
        return set()
    return {key for key, value in now.items() if then.get(key) is not value} | (then.keys() - now.keys())


class Folding(Protocol):
    @property
    def part(self) -> object: ...

    def apply(self, event: object, at: float, seq: int) -> None: ...


class OwnMap(Generic[Key, Value]):
    """A map of the part that a draft may change: its own copy, made when it is first asked for."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name, self.field = name, name.removeprefix("_")

    def __get__(self, draft: "Draft[StructPart]", _: type) -> dict[Key, Value]:
        own: dict[Key, Value] = dict(getattr(draft.part, self.field))
        draft.set(**{self.field: own})
        # An attribute of the object goes before one of its class that cannot be set.
        setattr(draft, self._name, own)
        return own


class Draft(Generic[StructPart]):
    """A map is changed through an `OwnMap` attribute, and read from `part`, which is free."""

    def __init__(self, part: StructPart) -> None:
        self.part = part

    def set(self, **fields: object) -> None:
        self.part = replace(self.part, **fields)
