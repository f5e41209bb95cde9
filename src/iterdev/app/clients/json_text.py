"""Changes single entries of a JSON text, and leaves every other byte as it is: comments, order, commas, indentation.

Settings of coding agents are written by people, often with comments and commas at the end of lists.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_WORD = re.compile(r"[^\s,\]}/]+")
DEEPEST = 200


class NotJson(Exception):
    """The text is not JSON, not even with comments."""


class Node(Struct, frozen=True, kw_only=True):
    """A value of the text, from `start` to `end`."""

    start: int
    end: int
    value: object = None
    members: dict[str, tuple[int, "Node"]] | None = None
    """The members of an object, each with the place of its name."""
    items: tuple["Node", ...] | None = None


class Insertion(Struct, frozen=True, kw_only=True):
    text: str
    """The whole text with what was put in."""
    inserted: str


def parse(text: str) -> Node:
    node = _value(text, _skip(text, 0), 0)
    if _skip(text, node.end) != len(text):
        raise NotJson(f"there is more after the end, in line {_line(text, node.end)}")
    return node


def find(text: str, keys: Sequence[str]) -> Node | None:
    """The value at a path of names."""
    node = parse(text)
    for key in keys:
        if node.members is None or key not in node.members:
            return None
        node = node.members[key][1]
    return node


def with_member(text: str, keys: Sequence[str], value: object) -> Insertion:
    """The text with a value at a path of names, where none is; objects on the way are made."""
    if not text.strip("\ufeff \t\r\n"):
        inserted = json.dumps(_nested(keys, value), indent=2) + "\n"
        return Insertion(text=text + inserted, inserted=inserted)
    node = parse(text)
    for depth, key in enumerate(keys):
        if node.members is None:
            raise NotJson(f"{'.'.join(keys[:depth]) or 'the whole'} is not an object")
        if key not in node.members:
            written = partial(_member, {key: _nested(keys[depth + 1 :], value)})
            last = [end.end for _, end in node.members.values()]
            first = min((start for start, _ in node.members.values()), default=None)
            return _put(text, node, first, max(last, default=None), written)
        node = node.members[key][1]
    raise NotJson(f"{'.'.join(keys)} is there already")


def with_items(text: str, keys: Sequence[str], items: Sequence[str]) -> Insertion:
    """The text with further items at the end of a list, which is made if it is missing."""
    node = find(text, keys) if text.strip("\ufeff \t\r\n") else None
    if node is None:
        return with_member(text, keys, list(items))
    if node.items is None:
        raise NotJson(f"{'.'.join(keys)} is not a list")
    first, last = (node.items[0].start, node.items[-1].end) if node.items else (None, None)
    return _put(text, node, first, last, lambda pad: f",{pad or ' '}".join(map(json.dumps, items)))


def without_member(text: str, keys: Sequence[str]) -> str:
    """The text without the value at a path of names."""
    parent, node = find(text, keys[:-1]), find(text, keys)
    if node is None or parent is None or parent.members is None:
        return text
    return _cut(text, parent.members[keys[-1]][0], node.end)


def without_items(text: str, keys: Sequence[str], items: Sequence[str]) -> str:
    for item in items:
        node = find(text, keys)
        found = next((one for one in (node.items or ()) if one.value == item), None) if node else None
        text = _cut(text, found.start, found.end) if found else text
    return text


def _put(text: str, node: Node, first: int | None, last: int | None, written: Callable[[str], str]) -> Insertion:
    """Puts something at the end of an object or a list, in the way in which the rest of it is written."""
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent(text, node.start)
    if first is None or last is None:
        pad = f"{newline}{outer}{_unit(text)}"
        inner = text[node.start + 1 : node.end - 1]
        inserted = pad + written(pad) + ("" if "\n" in inner else f"{newline}{outer}")
        return _inserted(text, node.start + 1, inserted)
    own_line = text[:first].rpartition("\n")[2].strip() == ""
    pad = f"{newline}{_indent(text, first)}" if own_line else ""
    after = _skip(text, last)
    if text[after] == ",":
        return _inserted(text, after + 1, f"{pad or ' '}{written(pad)},")
    return _inserted(text, last, f",{pad or ' '}{written(pad)}")


def _inserted(text: str, place: int, inserted: str) -> Insertion:
    return Insertion(text=text[:place] + inserted + text[place:], inserted=inserted)


def _cut(text: str, start: int, end: int) -> str:
    """Without a member or an item, the space before it, and one comma beside it."""
    before = len(text[:start].rstrip(" \t\r\n"))
    after = _skip(text, end)
    if text[after] == ",":
        return text[:before] + text[end:after] + text[after + 1 :]
    if text[before - 1] == ",":
        return text[: before - 1] + text[end:]
    return text[:before] + text[end:]


def _nested(keys: Sequence[str], value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _member(member: dict[str, object], pad: str) -> str:
    ((key, value),) = member.items()
    if not pad:
        return f"{json.dumps(key)}: {json.dumps(value)}"
    unit = pad.lstrip("\r\n")
    step = "\t" if unit.startswith("\t") else " " * min(len(unit) or 2, 4)
    return f"{json.dumps(key)}: {json.dumps(value, indent=step)}".replace("\n", pad)


def _unit(text: str) -> str:
    """One level of indentation, as the text has it."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


def _indent(text: str, place: int) -> str:
    line = text[:place].rpartition("\n")[2].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip())]


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _value(text: str, place: int, depth: int) -> Node:
    if depth > DEEPEST:
        raise NotJson("it is nested too deeply")
    match text[place : place + 1]:
        case "{":
            return _object(text, place, depth)
        case "[":
            return _array(text, place, depth)
        case _:
            found = _STRING.match(text, place) or _WORD.match(text, place)
            try:
                if found:
                    return Node(start=place, end=found.end(), value=json.loads(found[0]))
            except ValueError:
                pass
            raise NotJson(f"there is no value in line {_line(text, place)}")


def _object(text: str, start: int, depth: int) -> Node:
    members: dict[str, tuple[int, Node]] = {}
    place = _skip(text, start + 1)
    while text[place : place + 1] != "}":
        name = _STRING.match(text, place)
        colon = _skip(text, name.end()) if name else place
        if name is None or text[colon : colon + 1] != ":":
            raise NotJson(f"there is no name in line {_line(text, place)}")
        node = _value(text, _skip(text, colon + 1), depth + 1)
        members[_unquoted(text, place, name[0])] = place, node
        place = _next(text, node.end, "}")
    values = {key: node.value for key, (_, node) in members.items()}
    return Node(start=start, end=place + 1, value=values, members=members)


def _unquoted(text: str, place: int, name: str) -> str:
    try:
        return str(json.loads(name))
    except ValueError as error:
        raise NotJson(f"the name in line {_line(text, place)} is not text") from error


def _array(text: str, start: int, depth: int) -> Node:
    items: list[Node] = []
    place = _skip(text, start + 1)
    while text[place : place + 1] != "]":
        items.append(_value(text, place, depth + 1))
        place = _next(text, items[-1].end, "]")
    return Node(start=start, end=place + 1, value=[item.value for item in items], items=tuple(items))


def _next(text: str, end: int, closing: str) -> int:
    """Where the next member begins, or the end is."""
    place = _skip(text, end)
    if text[place : place + 1] == ",":
        return _skip(text, place + 1)
    if text[place : place + 1] != closing:
        raise NotJson(f"a comma is missing in line {_line(text, place)}")
    return place
