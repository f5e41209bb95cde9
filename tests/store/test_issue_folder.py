"""The files of the tracker on a disk."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from iterdev.store.issue_folder import IssueFolder
from iterdev.store.journal import NAME, Journal
from iterdev.store.tracker_log import TrackerLog
from iterdev.tracker import rules
from iterdev.tracker.issues import Description
from iterdev.tracker.solutions import Solution


class Place:
    def __init__(self, path: Path) -> None:
        self.journal = Journal(path / NAME)
        self.log = TrackerLog(self.journal, now=lambda: 1_772_000_000.0)
        self.folder = IssueFolder(path / "issues", self.journal)

    def create(self, name: str) -> tuple[str, ...]:
        """As a command does it."""
        with self.folder.held():
            notes = self.folder.read_back(self.log)
            self.log.transact(lambda tracker, at: rules.created(tracker, Description(title=name), at, name=name))
            self.folder.write(self.log.tracker)
        return notes

    def solve(self, name: str) -> None:
        with self.folder.held():
            self.log.transact(lambda tracker, at: rules.solved(tracker, name, Solution(id=""), at))
            self.folder.write(self.log.tracker)

    def ids(self) -> list[str]:
        lines = (self.folder.path / "issues.jsonl").read_text().splitlines()
        return [json.loads(line)["id"] for line in lines]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.journal.close()


def test_every_change_is_in_the_files(place: Place) -> None:
    place.create("GH-1")
    place.create("GH-2")
    place.solve("GH-2")

    assert place.ids() == ["GH-1", "GH-2"]
    assert json.loads((place.folder.path / "solutions" / "GH-2.jsonl").read_text())["id"] == "SOL-GH-2-1"


def test_what_another_tool_added_is_kept(place: Place) -> None:
    place.create("GH-1")
    with (place.folder.path / "issues.jsonl").open("a") as file:
        file.write('{"id": "GH-7", "title": "Theirs"}\n')

    assert "GH-7" in place.folder.seen(place.log.tracker, 0).issues
    assert place.create("GH-2") == ()

    assert place.ids() == ["GH-1", "GH-7", "GH-2"]


def test_a_file_that_cannot_be_read_in_full_is_kept_beside_the_new_one(place: Place) -> None:
    place.create("GH-1")
    edited = place.folder.path / "issues.jsonl"
    edited.write_text('{"id": "GH-7", "title": "Theirs"}\nhalf a li')

    notes = place.create("GH-2")

    assert "issues.jsonl, line 2 is left out: it is not JSON" in notes
    assert (place.folder.path / "issues.jsonl.unread").read_text().endswith("half a li")
    assert place.ids() == ["GH-1", "GH-7", "GH-2"]
    assert place.create("GH-3") == ()


@pytest.mark.parametrize("text", ["nonsense", "", None])
def test_a_file_that_others_spoilt_or_deleted_is_written_again(place: Place, text: str | None) -> None:
    place.create("GH-1")
    place.solve("GH-1")
    solutions = place.folder.path / "solutions" / "GH-1.jsonl"
    before = solutions.read_text()
    solutions.unlink() if text is None else solutions.write_text(text)

    place.create("GH-2")

    assert solutions.read_text() == before


def test_a_process_that_was_killed_before_it_wrote_the_files_is_made_up_for(place: Place) -> None:
    place.create("GH-1")
    place.log.transact(lambda tracker, at: rules.created(tracker, Description(title="x"), at, name="GH-2"))
    place.log.transact(lambda tracker, at: rules.solved(tracker, "GH-2", Solution(id=""), at))

    place.create("GH-3")

    assert place.ids() == ["GH-1", "GH-2", "GH-3"]
    assert (place.folder.path / "solutions" / "GH-2.jsonl").exists()


def test_a_lost_journal_is_made_again_from_the_files(place: Place, tmp_path: Path) -> None:
    place.create("GH-1")
    place.solve("GH-1")
    (tmp_path / "new").mkdir()
    other = Place(tmp_path / "new")
    other.folder.path = place.folder.path

    other.create("GH-2")

    assert list(other.log.tracker.issues) == ["GH-1", "GH-2"]
    assert list(other.log.tracker.solutions["GH-1"]) == ["SOL-GH-1-1"]
    other.journal.close()


def test_a_file_that_is_up_to_date_is_not_written(place: Place) -> None:
    place.create("GH-1")
    place.solve("GH-1")
    solutions = place.folder.path / "solutions" / "GH-1.jsonl"
    before = solutions.stat().st_mtime_ns

    place.create("GH-2")

    assert solutions.stat().st_mtime_ns == before


def test_a_link_in_the_place_of_the_lock_harms_no_file(place: Place, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("of the user\n", encoding="utf-8")
    place.folder.path.mkdir()
    (place.folder.path / ".lock").symlink_to(precious)

    place.create("GH-1")

    assert precious.read_text(encoding="utf-8") == "of the user\n"
    assert place.ids() == ["GH-1"]
