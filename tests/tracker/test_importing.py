import json

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.tracker.conftest import BEGIN

from iterdev.core.errors import UserError
from iterdev.tracker import importing
from iterdev.tracker.state import Tracker

FIELDS = [
    *("id", "title", "status", "priority", "issue_type", "labels", "dependencies", "comments", "created_at", "tasks"),
    *("subtasks", "master", "depends_on_id", "type", "text", "closed_at", "description", "details", "context"),
]
JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**80), 2**80) | some.floats() | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("path", "text", "tool"),
    [
        ("tasks.csv", "id,description\nA,b\n", "Claude-Code-Workflow"),
        ("specs/001/tasks.md", "- [ ] T001 Do it\n", "spec-kit"),
        ("tasks.json", '{"tasks": [{"id": 1, "title": "x"}]}', "task-master"),
        (".beads/issues.jsonl", '{"id": "bd-1", "title": "x", "priority": 1, "status": "open"}\n', "beads"),
        ("issues.jsonl", '{"id": "GH-1", "title": "x", "context": ""}\n{"id": "GH-2"}\n', "Claude-Code-Workflow"),
    ],
)
def test_a_file_is_known_by_its_content(path: str, text: str, tool: str) -> None:
    assert importing.read(text, path, ("id", "description"), BEGIN).tool == tool


@given(some.sampled_from(["x.jsonl", "x.json", "x.md", "x.csv"]), some.lists(JSON, max_size=3), some.text(max_size=20))
def test_whatever_is_in_a_file_is_read_or_refused(path: str, documents: list[object], text: str) -> None:
    lines = [json.dumps({"id": "bd-1", **one} if isinstance(one, dict) else one) for one in documents]
    try:
        found = importing.read("\n".join([*lines, *([text] if text else [])]), path, ("id", "description"), BEGIN)
    except UserError:
        return

    assert len(list(importing.imported(Tracker(), found))) >= len(found.issues)
