"""Entries of JSON texts are put in and taken out, and nothing else changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iterdev.app.clients.json_text import (
    NotJson,
    find,
    parse,
    with_items,
    with_member,
    without_items,
    without_member,
)

KEYS = ("mcpServers", "iterdev")
VALUE = {"command": "/usr/bin/iterdev", "args": ["mcp"]}
TEXTS = {
    "nothing": "",
    "an empty object": "{}",
    "an empty object over lines": "{\n}\n",
    "compact": '{"a":1,"mcpServers":{"x":{"command":"y"}}}',
    "indented by two": '{\n  "a": 1,\n  "mcpServers": {\n    "x": {}\n  }\n}\n',
    "indented by tabs": '{\n\t"mcpServers": {\n\t\t"x": {}\n\t}\n}',
    "comments": '// mine\n{\n  /* servers, "iterdev": {} */\n  "mcpServers": {\n    "x": {} // the "best"\n  }\n}\n',
    "commas at the end": '{\n  "mcpServers": {\n    "x": {},\n  },\n}\n',
    "lines of Windows": '{\r\n    "a": [1, 2],\r\n    "mcpServers": {}\r\n}\r\n',
    "an empty object with a comment": '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
    "odd": '{ "a" :1 ,\n\n\n "mcpServers"\n:\t{   } , "b": "}{\\" //" }   ',
    "a mark of the byte order": '\ufeff{"a": 1}',
    "no servers": '{\n    "theme": "dark"\n}\n',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_was_put_in_can_be_cut_out_again_to_the_byte(text: str) -> None:
    put = with_member(text, KEYS, VALUE)

    found, before = find(put.text, KEYS), parse(text).value if text else {}
    assert found
    assert found.value == VALUE
    rest = parse(without_member(put.text, KEYS)).value
    assert {**before, "mcpServers": before.get("mcpServers", {})} == {**rest, "mcpServers": rest.get("mcpServers", {})}
    assert put.text.count(put.inserted) == 1
    assert put.text.replace(put.inserted, "") == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"permissions": {"deny": ["x"]}}',
        '{\n  "permissions": {\n    "allow": [\n      "Bash(ls)"\n    ]\n  }\n}\n',
        '{"permissions": {"allow": []}}',
        '{"permissions": {"allow": ["a", "b",]}} // end',
    ],
)
def test_items_are_added_to_a_list_and_cut_out_again(text: str) -> None:
    keys, items = ("permissions", "allow"), ("mcp__iterdev__run", "mcp__iterdev__wait")

    put = with_items(text, keys, items)

    found = find(put.text, keys)
    assert found
    assert tuple(found.value[-2:]) == items
    assert put.text.replace(put.inserted, "") == text
    emptied = find(without_items(put.text, keys, items), keys)
    assert emptied is None or not set(items) & set(emptied.value)


@pytest.mark.parametrize(
    "text", ["[", '{"a"', '{"a": }', '{"a": 1 "b": 2}', "{} x", "nope", '{"a\\x": 1}', '{"a": [1 2]}', "[" * 500]
)
def test_a_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        parse(text)


def test_a_list_in_the_place_of_an_object_is_refused() -> None:
    with pytest.raises(NotJson, match="mcpServers is not an object"):
        with_member('{"mcpServers": []}', KEYS, VALUE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=3), st.sampled_from([None, 1, 2, "\t"]))
def test_any_json_is_read_as_it_is_meant_and_changed_only_where_it_should_be(
    document: dict[str, object], indent: int | str | None
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False)

    put = with_member(text, ("mcp servers", "iterdev"), VALUE)

    assert parse(text).value == document
    assert json.loads(put.text) == {**document, "mcp servers": {"iterdev": VALUE}}
    assert put.text.replace(put.inserted, "") == text
