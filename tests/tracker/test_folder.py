import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.tracker.conftest import BEGIN, Story

from iterdev.tracker import folder
from iterdev.tracker.events import TrackerEntry
from iterdev.tracker.folder import ISSUES, FolderNews
from iterdev.tracker.issues import IssueStatus
from iterdev.tracker.rules import moved
from iterdev.tracker.state import Tracker, evolve

FIELDS = [
    *("id", "title", "status", "priority", "context", "tags", "feedback", "bound_solution_id", "created_at", "tasks"),
    *("files", "solutions", "item_id", "issue_id", "solution_id", "depends_on", "execution_groups", "active_queue_id"),
    *("failure_details", "is_bound", "queues", "comments", "score", "dependencies", "active_queue_ids", "result"),
]
NAMES = ["issues.jsonl", "issue-history.jsonl", "solutions/GH-1.jsonl", "queues/QUE-1.json", "queues/index.json"]


def taken_over(found: FolderNews, tracker: Tracker | None = None) -> Tracker:
    before = tracker or Tracker()
    return evolve(before, [TrackerEntry(seq, BEGIN, event) for seq, event in enumerate(found.events, before.seq + 1)])


@pytest.fixture
def full(story: Story) -> Story:
    """A tracker in which something of everything has happened."""
    story.planned("GH-1", "a.py")
    story.planned("GH-2", "a.py", priority=5)
    story.planned("GH-3", "b.py", after=["GH-1"])
    story.issue("GH-4")
    story.formed("GH-1", "GH-2", "GH-3")
    story.done("S-1")
    story.failed("S-2")
    return story


def test_what_is_written_is_read_back_as_no_change(full: Story) -> None:
    files = dict(folder.texts(full.tracker))

    assert folder.read_back(files, full.tracker, full.at) == FolderNews()


def test_a_tracker_can_be_made_again_from_its_files(full: Story) -> None:
    files = dict(folder.texts(full.tracker))

    again = taken_over(folder.read_back(files, Tracker(), full.at))

    assert dict(folder.texts(again)).keys() == files.keys()
    assert {name: issue.status for name, issue in again.issues.items()} == {
        name: issue.status for name, issue in full.tracker.issues.items()
    }
    assert [item.status for item in again.items[full.queue.id].values()] == [
        item.status for item in full.items.values()
    ]
    assert again.active == full.tracker.active


@pytest.mark.requirement("R173")
def test_a_completed_issue_is_in_the_history_file_and_in_no_other(full: Story) -> None:
    files = dict(folder.texts(full.tracker))

    assert [json.loads(line)["id"] for line in files[folder.HISTORY].splitlines()] == ["GH-2"]
    assert "GH-2" not in [json.loads(line)["id"] for line in files[ISSUES].splitlines()]


def test_what_somebody_changed_in_a_file_wins(story: Story) -> None:
    story.issue("GH-1")
    document = json.loads(dict(folder.texts(story.tracker))[ISSUES])
    said = {"type": "clarification", "stage": "new", "content": "only on Mondays", "created_at": "2026-03-08T12:00:00Z"}
    changed = {**document, "title": "Another", "status": "paused", "feedback": [said]}

    tracker = taken_over(folder.read_back({ISSUES: json.dumps(changed)}, story.tracker, story.at), story.tracker)

    issue = tracker.issues["GH-1"]
    assert (issue.description.title, issue.status, issue.feedback[0].content) == (
        "Another",
        "paused",
        "only on Mondays",
    )


def test_what_cannot_be_read_is_left_out_and_named_with_its_line(story: Story) -> None:
    lines = [
        '{"id": "GH-1", "title": "Good"}',
        "nonsense",
        '{"id": "../x", "title": "t"}',
        '{"id": "GH-2", "status": "odd"}',
        "[]",
    ]

    found = folder.read_back({ISSUES: "\n".join(lines)}, story.tracker, story.at)

    assert list(taken_over(found).issues) == ["GH-1"]
    assert [note.split(" is left out")[0] for note in found.notes] == [f"{ISSUES}, line {n}" for n in (2, 3, 4, 5)]
    assert found.incomplete == (ISSUES,)


def test_a_folder_of_claude_code_workflow_is_taken_over_with_all_its_fields() -> None:
    issue = {
        "id": "ISS-20251229-001",
        "title": "Slow start",
        "status": "queued",
        "priority": 9,
        "context": "It takes 4 s",
        "bound_solution_id": "SOL-ISS-20251229-001-1",
        "extended_context": {"location": "boot"},
        "created_at": "2025-12-29T08:00:00.000Z",
        "updated_at": "2025-12-29T09:00:00.000Z",
    }
    task = {"id": "T1", "title": "Cache", "modification_points": [{"file": "boot.ts", "target": "load", "change": "x"}]}
    solution = {
        "id": "SOL-ISS-20251229-001-1",
        "tasks": [task],
        "is_bound": True,
        "created_at": "2025-12-29T08:30:00.000Z",
    }
    item = {"item_id": "S-1", "issue_id": issue["id"], "solution_id": solution["id"], "status": "blocked"}
    files = {
        ISSUES: json.dumps(issue),
        f"solutions/{issue['id']}.jsonl": json.dumps(solution),
        "queues/QUE-20251229083500.json": json.dumps(
            {"id": "QUE-20251229083500", "status": "active", "solutions": [item]}
        ),
        "queues/index.json": json.dumps({"active_queue_id": "QUE-20251229083500", "queues": []}),
    }

    found = folder.read_back(files, Tracker(), BEGIN)

    tracker = taken_over(found)
    known = tracker.issues["ISS-20251229-001"]
    assert found.notes == ()
    assert (known.status, known.description.priority, known.description.extra) == (
        "queued",
        5,
        {"extended_context": {"location": "boot"}},
    )
    assert tracker.items["QUE-20251229083500"]["S-1"].place.files_touched == ("boot.ts",)
    assert tracker.active == ("QUE-20251229083500",)
    assert tracker.queues["QUE-20251229083500"].created_at == 1766997300


def test_only_what_was_touched_is_written_again(full: Story) -> None:
    events = moved(full.tracker, "GH-4", IssueStatus.paused)

    names = [name for name, _ in folder.texts(full.tracker, folder.touched(events))]

    assert names == [folder.ISSUES, folder.HISTORY, folder.INDEX]


JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**80), 2**80) | some.floats() | some.text(max_size=8),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=12,
)


DOCUMENTS = some.dictionaries(some.sampled_from(FIELDS), JSON, max_size=8)
LINES = DOCUMENTS.map(lambda found: json.dumps({"id": "GH-1", **found}))


@given(some.dictionaries(some.sampled_from(NAMES), LINES | JSON.map(json.dumps) | some.text(max_size=20), max_size=5))
def test_whatever_is_in_the_files_is_taken_over_or_reported(files: dict[str, str]) -> None:
    found = folder.read_back(files, Tracker(), BEGIN)

    again = taken_over(found)
    assert dict(folder.texts(again))
    assert msgspec.json.encode(found.events)
    assert not found.notes or found.incomplete
