import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.store.conftest import COMMIT, CRITICAL, Story, design, review, started, task

from iterdev.core.collaboration.messages import MessageDeleted, MessagesCleared
from iterdev.core.collaboration.wisdom import WisdomRejected, note
from iterdev.core.errors import HostError, UserError
from iterdev.core.results import Discovery, LearnedTexts
from iterdev.core.rules.outcomes import taken_over
from iterdev.core.session import events
from iterdev.core.types import Engine, Status, TaskId
from iterdev.store import atomic_files
from iterdev.store.session_folder import discoveries
from iterdev.store.session_folder.find import TABLE
from iterdev.store.session_folder.projector import Edited
from iterdev.store.session_folder.wisdom_files import WisdomReader
from iterdev.teams.development import critic
from iterdev.teams.development.roles import Pipeline

DEV = TaskId("DEV-001")
BASE = "b" * 40
HEADINGS = {
    "learnings.md": "# Learnings\n\n",
    "decisions.md": "# Decisions\n\n",
    "conventions.md": "# Conventions\n\n",
    "issues.md": "# Issues\n\n",
}


def entry(file: str, text: str) -> str:
    """The id of an entry of wisdom."""
    return note(file, text, session="", task="", commit="", at=0).id


def rows(story: Story) -> dict[str, dict[str, str]]:
    text = (story.folder / TABLE).read_text(encoding="utf-8")
    return {row["id"]: row for row in csv.DictReader(io.StringIO(text))}


def change(story: Story, old: str, new: str) -> None:
    """A person saves the table with one text in place of another."""
    path = story.folder / TABLE
    before = path.read_bytes().decode()
    assert old in before
    path.write_bytes(before.replace(old, new).encode())


def read_json(path: Path) -> dict[str, object]:
    document: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return document


def disk_takes_no_table(story: Story) -> None:
    """From now on tasks.csv cannot be written, as when the machine stops at that moment."""
    (story.folder / f"{TABLE}{atomic_files.SUFFIX}").mkdir()


def disk_takes_tables_again(story: Story) -> None:
    (story.folder / f"{TABLE}{atomic_files.SUFFIX}").rmdir()


@pytest.mark.requirement("R99")
def test_a_new_session_has_its_folders_and_the_four_wisdom_files_with_their_headings(story: Story) -> None:
    wanted = {"interactive", "wisdom", "design", "code", "verify", "review"}

    assert wanted <= {path.name for path in story.folder.iterdir() if path.is_dir()}
    assert {path.name: path.read_text() for path in (story.folder / "wisdom").iterdir()} == HEADINGS
    assert (story.folder / "discoveries.ndjson").read_bytes() == b""


@pytest.mark.requirement("R15")
def test_continuing_leaves_the_wisdom_files_and_the_board_as_they_are(story: Story) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001", wisdom=LearnedTexts(learnings=("tests are slow",)))
    story.project()
    written = {
        story.folder / "wisdom" / "learnings.md": "# Mine\n\nno list at all",
        story.folder / "wisdom" / "decisions.md": "",
        story.folder / "discoveries.ndjson": '{"half": ',
    }
    for path, text in written.items():
        path.write_text(text)

    story.restart()

    assert {path: path.read_text() for path in written} == written


def test_a_line_that_a_person_wrote_is_not_written_a_second_time(story: Story) -> None:
    path = story.folder / "wisdom" / "learnings.md"
    text = "# Learnings\n\n* tests  are slow (on a train)\nno list at all\n"
    path.write_text(text)

    found = WisdomReader(story.folder).changed()
    story.tell(*taken_over(story.state, found, 0))
    story.project()

    assert [note.text for note in story.state.wisdom.notes] == ["tests are slow (on a train)", "no list at all"]
    assert path.read_text() == text


def test_wisdom_files_are_read_again_only_after_a_change(story: Story) -> None:
    reader = WisdomReader(story.folder)
    (story.folder / "wisdom" / "issues.md").write_text("- slow\n")
    (story.folder / "discoveries.ndjson").write_text('{"type": "convention", "worker": 7, "data": {"name": "tabs"}}\n')

    first, second = reader.changed(), reader.changed()

    assert [(entry.file, entry.text) for entry in first] == [("issues", "slow"), ("conventions", "tabs")]
    assert second == []


def test_every_file_of_a_finished_session_is_made_again_from_the_journal(story: Story) -> None:
    story.add_pipeline()
    story.complete(
        "DESIGN-001", design=design(), wisdom=LearnedTexts(decisions=("JWT", "one file"), learnings=("slow",))
    )
    story.complete("DEV-001", commit=COMMIT, changed=("auth.py",))
    story.complete("VERIFY-001")
    story.complete("REVIEW-001", review=review(8, replace(CRITICAL, severity="low")))
    story.tell(events.Finished())
    story.project()
    whole = story.contents()
    assert {"tasks.csv", "results.csv", "context.md", "session.json", "design/design-001.md"} <= whole.keys()

    for name in whole:
        (story.folder / name).unlink()
        story.restart()
        story.project()

        assert story.contents() == whole, name


def test_a_deleted_folder_is_made_again_from_the_journal_in_the_middle_of_a_wave(story: Story) -> None:
    story.add_pipeline(Pipeline.multi_sprint)
    story.tell(events.WaveStarted(1))
    story.complete("DESIGN-001", design=design())
    story.project()
    whole = story.contents()
    assert {"wave-1.csv", "wave-1-results.csv"} <= whole.keys()

    story.folder.rename(story.folder.with_name("elsewhere"))
    story.restart()
    story.project()

    assert story.contents() == whole


@pytest.mark.requirement("R105")
@pytest.mark.parametrize("spoiled", [b"", b"{", b"\xff\xfe", b'{"tasks": []}'])
def test_a_corrupt_ledger_is_made_again_with_every_task_state(story: Story, spoiled: bytes) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001")
    story.fail("DEV-001")
    ledger = story.project() / "task-ledger.json"
    before = ledger.read_bytes()

    ledger.write_bytes(spoiled)
    story.restart()
    story.project()

    assert ledger.read_bytes() == before
    tasks = read_json(ledger)["tasks"]
    assert [(entry["id"], entry["status"]) for entry in tasks][:2] == [("DESIGN-001", "completed"), (DEV, "blocked")]


def test_a_file_whose_text_is_the_same_is_not_written_again(story: Story) -> None:
    story.add_pipeline()
    ledger = story.project() / "task-ledger.json"
    before = ledger.stat().st_ino

    story.tell(events.Warned("nothing about tasks"))
    story.project()

    assert ledger.stat().st_ino == before


@pytest.mark.requirement("R65")
def test_at_the_end_the_results_equal_the_table_with_its_interactive_rows(story: Story) -> None:
    story.add(task("REVIEW-001"), task("GC-CHECK-001", "REVIEW-001"))
    story.complete("REVIEW-001", review=review(9))
    story.decide("GC-CHECK-001")
    early = (story.project() / "results.csv").exists()

    story.tell(events.Finished())
    story.project()

    assert not early
    assert (story.folder / "results.csv").read_bytes() == (story.folder / TABLE).read_bytes()
    assert [row["exec_mode"] for row in rows(story).values()] == ["csv-wave", "interactive"]


@pytest.mark.requirement("R55")
def test_the_files_of_a_wave_are_deleted_when_it_is_merged(story: Story) -> None:
    story.add_pipeline()
    story.tell(events.WaveStarted(1))
    story.complete("DESIGN-001")
    story.project()
    during = sorted(path.name for path in story.folder.glob("wave-*"))

    story.tell(events.WaveMerged(1))
    story.project()

    assert during == ["wave-1-results.csv", "wave-1.csv"]
    assert list(story.folder.glob("wave-*")) == []


@pytest.mark.requirement("R55")
def test_the_files_of_a_wave_that_a_killed_engine_left_are_removed(story: Story) -> None:
    story.add_pipeline()
    story.tell(events.WaveStarted(1))
    story.project()
    story.complete("DESIGN-001")
    story.tell(events.WaveMerged(1), events.WaveStarted(2))

    story.restart()
    story.project()

    assert [path.name for path in story.folder.glob("wave-*")] == ["wave-2.csv"]


def test_the_beat_engine_has_no_wave_files(tmp_path: Path) -> None:
    story = Story(tmp_path, started("IDS-demo-2026-02-25", Engine.beat))
    story.add_pipeline()
    story.complete("DESIGN-001")
    story.project()

    assert story.folder == tmp_path / ".workflow" / ".team" / "IDS-demo-2026-02-25"
    assert (story.folder / TABLE).exists()
    assert list(story.folder.glob("wave-*")) == []
    story.journal.close()


@pytest.mark.requirement("R62", "R77")
def test_an_interactive_task_leaves_its_result_with_decision_round_and_time(story: Story) -> None:
    story.add(task("REVIEW-001"), task("GC-CHECK-001", "REVIEW-001"))
    story.complete("REVIEW-001", review=review(9))
    story.decide("GC-CHECK-001")

    result = read_json(story.project() / "interactive" / "GC-CHECK-001-result.json")

    assert (result["task_id"], result["status"]) == ("GC-CHECK-001", "completed")
    assert (result["gc_decision"], result["gc_round"]) == ("CONVERGE", 0)
    assert str(result["timestamp"]).endswith("+08:00")
    assert rows(story)["GC-CHECK-001"]["findings"] == "GC decision: CONVERGE (round 0)"


@pytest.mark.requirement("R62")
def test_an_interactive_task_that_failed_leaves_its_result_too(story: Story) -> None:
    story.add(task("GC-CHECK-001"))
    story.tell(events.TaskFailed(TaskId("GC-CHECK-001"), "nobody answered"))

    result = read_json(story.project() / "interactive" / "GC-CHECK-001-result.json")

    assert (result["status"], result["error"]) == ("failed", "nobody answered")


@pytest.mark.requirement("R74", "R75")
def test_a_forced_convergence_is_written_to_the_issues_and_warned_about_in_the_shared_state(story: Story) -> None:
    story.add(task("REVIEW-001"))
    story.complete("REVIEW-001", review=review(4, CRITICAL))
    story.force_convergence()
    story.project()
    problems = critic.open_problems(story.state, TaskId("REVIEW-001"))

    lines = (story.folder / "wisdom" / "issues.md").read_text().splitlines()
    assert lines == [
        "# Issues",
        "",
        *(f"- {text} ({entry('issues', text)}, REVIEW-001, {BASE[:7]})" for text in problems),
    ]
    assert any("tokens never expire" in problem for problem in problems)
    (warning,) = read_json(story.folder / ".msg" / "meta.json")["warnings"]
    assert "was forced" in warning
    assert problems[0] in warning


def test_wisdom_is_only_ever_extended(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002"))
    story.complete("DEV-001", wisdom=LearnedTexts(learnings=("tests are slow", "one\n  line")))
    path = story.project() / "wisdom" / "learnings.md"
    with path.open("a") as file:
        file.write("\nA remark of mine\n")
    before = path.read_text()

    story.complete("DEV-002", wisdom=LearnedTexts(learnings=("tests are slow", "caches help")))
    story.project()

    assert path.read_text() == f"{before}- caches help ({entry('learnings', 'caches help')}, DEV-002, {BASE[:7]})\n"
    assert before.splitlines()[2:4] == [
        f"- tests are slow ({entry('learnings', 'tests are slow')}, DEV-001, {BASE[:7]})",
        f"- one line ({entry('learnings', 'one line')}, DEV-001, {BASE[:7]})",
    ]


@pytest.mark.requirement("R15")
def test_wisdom_in_the_form_of_an_older_version_is_not_added_again(story: Story) -> None:
    story.add(task("DEV-001"))
    path = story.folder / "wisdom" / "learnings.md"
    path.write_text("# Learnings\n\n- caches help (DEV-001)\n")

    story.complete("DEV-001", wisdom=LearnedTexts(learnings=("caches help",)))
    story.project()

    assert path.read_text() == "# Learnings\n\n- caches help (DEV-001)\n"


def test_a_rejected_entry_stays_where_it_is_and_the_rejection_is_added_once(story: Story) -> None:
    story.add(task("DEV-001"))
    story.complete("DEV-001", wisdom=LearnedTexts(learnings=("caches help",)))
    path = story.project() / "wisdom" / "learnings.md"
    before = path.read_text()

    story.tell(WisdomRejected(entry("learnings", "caches help"), "they (mostly) do not"))
    story.project()
    story.restart()
    story.project()

    assert path.read_text() == f"{before}- {entry('learnings', 'caches help')} is rejected (they (mostly) do not)\n"


def test_wisdom_is_not_appended_to_a_line_without_an_end(story: Story) -> None:
    story.add(task("DEV-001"))
    path = story.folder / "wisdom" / "learnings.md"
    path.write_bytes(b"# Mine\n\nhalf a rem\xff")

    story.complete("DEV-001", wisdom=LearnedTexts(learnings=("caches help",)))
    story.project()

    assert path.read_bytes().startswith(b"# Mine\n\nhalf a rem\xff\n- caches help (W-")


def test_wisdom_is_not_added_twice_after_a_restart(story: Story) -> None:
    story.add(task("DEV-001"))
    story.complete("DEV-001", wisdom=LearnedTexts(learnings=("caches help", "caches help")))
    path = story.project() / "wisdom" / "learnings.md"

    story.restart()
    story.project()

    assert path.read_text().count("caches help") == 1


def test_the_bus_is_one_json_object_per_line_in_the_order_of_the_messages(story: Story) -> None:
    story.add_pipeline()
    story.project()
    story.complete("DESIGN-001", design=design(), findings="Überlegt \u2028 中")
    path = story.project() / ".msg" / "messages.jsonl"

    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]

    assert [line["id"] for line in lines] == [f"MSG-{number:03d}" for number in range(1, len(lines) + 1)]
    assert [line["type"] for line in lines] == [message.type for message in story.state.messages.sent]
    assert (lines[-1]["from"], lines[-1]["to"]) == ("architect", "coordinator")
    assert "Überlegt \u2028 中" in lines[-1]["summary"]


def test_a_message_that_was_half_written_is_written_again(story: Story) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001")
    path = story.project() / ".msg" / "messages.jsonl"
    whole = path.read_bytes()

    path.write_bytes(whole[:-20])
    story.restart()
    story.complete("DEV-001")
    story.project()

    assert path.read_bytes().startswith(whole)
    assert len(path.read_text().splitlines()) == len(story.state.messages.sent)


def test_what_is_taken_off_the_bus_is_taken_out_of_its_file(story: Story) -> None:
    story.add_pipeline()
    path = story.project() / ".msg" / "messages.jsonl"
    first, *others = path.read_bytes().splitlines()

    story.tell(MessageDeleted(1))
    story.project()
    without = path.read_bytes().splitlines()
    story.tell(MessagesCleared())
    story.project()
    nothing = path.read_bytes()
    story.tell(events.Warned("careful"))
    story.project()

    assert b'"id": "MSG-001"' in first
    assert (without, nothing) == (others, b"")
    assert [json.loads(line)["id"] for line in path.read_bytes().splitlines()] == ["MSG-001"]


@pytest.mark.requirement("R111")
def test_writing_the_folder_never_touches_the_board(story: Story) -> None:
    story.add_pipeline()
    path = story.folder / discoveries.NAME
    discoveries.add(path, [Discovery("convention", {"name": "tabs"})], worker="DEV-001", ts="now")
    with path.open("a") as file:
        file.write("# a line of an agent\n")
    before = path.read_bytes()

    story.complete("DESIGN-001")
    story.project()
    story.restart()
    story.project()

    assert path.read_bytes() == before


def test_a_row_that_a_person_changed_is_noticed_and_wins(story: Story) -> None:
    story.add(task("DESIGN-001"), task("DEV-001", "DESIGN-001"))
    story.project()
    change(story, "Title of DEV-001", "A better title")

    (edit,) = story.edits()
    assert (edit.task.id, edit.task.title, edit.status) == (DEV, "A better title", Status.pending)
    story.tell(events.TableEdited((edit,)))
    story.complete("DESIGN-001")
    story.project()

    assert rows(story)[DEV]["title"] == "A better title"
    assert rows(story)["DESIGN-001"]["status"] == "completed"


def test_a_status_that_a_person_changed_is_noticed_at_once(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002"))
    story.project()
    change(story, '"pending"', '"skipped"')

    assert [(edit.task.id, edit.status) for edit in story.edits()] == [
        ("DEV-001", Status.skipped),
        ("DEV-002", Status.skipped),
    ]


def test_a_person_who_skips_a_task_leaves_it_out_also_after_it_failed(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002", "DEV-001"))
    story.fail("DEV-001", "no luck")
    story.project()
    change(story, '"failed"', '"skipped"')

    (edit,) = story.edits()

    assert (edit.task.id, edit.error, edit.left_out) == ("DEV-001", "no luck", True)


def test_an_edit_is_reported_once(story: Story) -> None:
    story.add(task("DESIGN-001"), task("DEV-001", "DESIGN-001"))
    story.project()
    change(story, "Title of DEV-001", "A better title")

    assert len(story.edits()) == 1
    assert story.edits() == []


def test_a_table_that_was_not_changed_has_no_edits(story: Story) -> None:
    story.add_pipeline()
    story.project()
    story.complete("DESIGN-001")
    before = story.edits()
    story.restart()

    assert before == story.edits() == []


def test_a_table_is_not_written_over_before_it_was_read_back(story: Story) -> None:
    story.add(task("DESIGN-001"), task("DEV-001", "DESIGN-001"))
    story.project()
    change(story, "Title of DEV-001", "A better title")
    edited = (story.folder / TABLE).read_bytes()

    story.complete("DESIGN-001")
    story.project()

    assert (story.folder / TABLE).read_bytes() == edited
    assert [edit.task.id for edit in story.edits()] == [DEV]


def test_an_edit_does_not_take_back_what_happened_while_the_person_wrote(story: Story) -> None:
    story.add(task("DESIGN-001"), task("DEV-001", "DESIGN-001"))
    story.start("DESIGN-001")
    story.project()
    change(story, "Title of DEV-001", "A better title")

    story.end("DESIGN-001", findings="thought about it")
    story.take_over_edits()
    story.project()

    assert story.state.tasks.status(TaskId("DESIGN-001")) is Status.completed
    assert (rows(story)["DESIGN-001"]["findings"], rows(story)[DEV]["title"]) == ("thought about it", "A better title")


def test_rows_that_were_added_while_the_person_wrote_are_not_missed(story: Story) -> None:
    story.add(task("DEV-001"))
    story.project()
    change(story, "Title of DEV-001", "A better title")

    story.add(task("DEV-002", "DEV-001"))
    story.take_over_edits()
    story.project()

    assert {name: row["title"] for name, row in rows(story).items()} == {
        "DEV-001": "A better title",
        "DEV-002": "Title of DEV-002",
    }


def test_an_edit_does_not_take_back_what_a_killed_engine_had_not_written_yet(story: Story) -> None:
    story.add(task("DESIGN-001"), task("DEV-001", "DESIGN-001"))
    story.project()
    story.complete("DESIGN-001")

    story.restart()
    change(story, "Title of DEV-001", "A better title")

    assert [edit.task.id for edit in story.edits()] == [DEV]


def test_a_second_edit_is_compared_with_the_first(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002"))
    story.project()
    change(story, "Title of DEV-001", "First")
    story.take_over_edits()
    story.complete("DEV-001")

    change(story, "Title of DEV-002", "Second")

    assert [edit.task.title for edit in story.edits()] == ["Second"]


def test_a_person_may_set_a_finished_task_back_to_exactly_what_it_was(story: Story) -> None:
    story.add(task("DEV-001"))
    before = (story.project() / TABLE).read_bytes()
    story.fail("DEV-001")
    story.project()

    (story.folder / TABLE).write_bytes(before)
    told = [(edit.task.id, edit.status, edit.error) for edit in story.edits()]
    story.restart()

    assert told == [("DEV-001", Status.pending, "")]
    assert [(edit.task.id, edit.status) for edit in story.edits()] == [("DEV-001", Status.pending)]


def test_an_edit_that_was_made_while_no_engine_ran_is_noticed(story: Story) -> None:
    story.add(task("DESIGN-001"), task("DEV-001", "DESIGN-001"))
    story.project()
    change(story, "Title of DEV-001", "A better title")

    story.restart()

    assert [edit.task.title for edit in story.edits()] == ["A better title"]


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text + "\n",
        lambda text: "".join(reversed(text.splitlines(keepends=True)[1:])).join(
            [text.splitlines(keepends=True)[0], ""]
        ),
    ],
    ids=["CRLF", "BOM", "empty line", "reordered"],
)
def test_saving_the_table_in_another_form_is_no_edit_and_does_not_stop_its_updates(
    story: Story, spell: Callable[[str], str]
) -> None:
    story.add(*(task(name, description="in one line") for name in ("DEV-001", "DEV-002", "DEV-003")))
    path = story.project() / TABLE
    path.write_bytes(spell(path.read_text()).encode())

    told = story.edits()
    story.complete("DEV-001")
    story.project()

    assert told == []
    assert {name: row["status"] for name, row in rows(story).items()} == {
        "DEV-001": "completed",
        "DEV-002": "pending",
        "DEV-003": "pending",
    }


def test_a_table_that_excel_saved_with_one_change_has_one_edit(story: Story) -> None:
    story.add_pipeline()
    path = story.project() / TABLE
    records = list(csv.reader(io.StringIO(path.read_text())))
    records[2][1] = 'Implement "it", all of it'
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(records)

    (edit,) = story.edits()

    assert (edit.task.id, edit.task.title) == (DEV, 'Implement "it", all of it')
    assert edit.task.description == story.state.tasks.plan[DEV].description


def test_a_row_that_a_person_added_is_taken_over(story: Story) -> None:
    story.add(task("DEV-001"))
    path = story.project() / TABLE
    with path.open("a") as file:
        file.write("DEV-009,More,Do more,developer,sprint,1,0,DEV-001,,csv-wave,,pending,,,,\n")

    story.take_over_edits()
    story.project()

    assert story.state.tasks.plan[TaskId("DEV-009")].wave == 2
    assert list(rows(story)) == ["DEV-001", "DEV-009"]


@pytest.mark.requirement("R121")
@pytest.mark.parametrize("lost", ["DEV-001", "DEV-002", "DEV-003"])
def test_a_deleted_row_is_restored_with_its_blockers(story: Story, lost: str) -> None:
    story.add(task("DEV-001"), task("DEV-002", "DEV-001"), task("DEV-003", "DEV-002"))
    path = story.project() / TABLE
    whole = path.read_text()
    path.write_text("".join(line for line in whole.splitlines(keepends=True) if not line.startswith(f'"{lost}"')))
    engine = story.engine()

    seen = engine.edits(story.state)

    assert (seen.rows, seen.missing) == ((), (lost,))
    assert path.read_text() == whole
    assert engine.edits(story.state) == Edited()


def test_what_is_wrong_in_the_rows_that_are_left_is_still_refused(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002", "DEV-001"))
    path = story.project() / TABLE
    header, _, last = path.read_text().splitlines(keepends=True)
    path.write_text(header + last.replace('"DEV-001",""', '"DEV-007",""'))

    with pytest.raises(UserError, match=r"line 2: .*DEV-007.* not in the table"):
        story.edits()


@pytest.mark.requirement("R66")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"pending"', '"done"', 'status is "done"'),
        ('"DEV-001",""', '"DEV-007",""', '"DEV-007", which is not in the table'),
        ('"","","csv-wave","1"', '"DEV-002","","csv-wave","1"', "in a cycle: DEV-001 -> DEV-002 -> DEV-001"),
        (',"pending","","","",""', ',"pending","","",""', "15 cells for 16 columns"),
    ],
    ids=["status", "unknown dependency", "cycle", "cells"],
)
def test_a_table_with_a_mistake_is_refused_and_left_until_it_is_fixed(
    story: Story, old: str, new: str, message: str
) -> None:
    story.add(task("DEV-001", description="one\ntwo"), task("DEV-002", "DEV-001"))
    story.project()
    change(story, old, new)
    spoiled = (story.folder / TABLE).read_bytes()

    with pytest.raises(UserError, match=message) as refusal:
        story.edits()
    story.complete("DEV-001")
    story.project()
    after = (story.folder / TABLE).read_bytes()

    line = 4 if "unknown" in message or "not in" in message else 2
    assert refusal.value.message.startswith(f"{story.state.session.folder}/tasks.csv line {line}: ")
    assert after == spoiled
    change(story, new, old)
    assert story.edits() == []


def test_a_table_with_a_mistake_can_be_left_for_a_later_look(story: Story) -> None:
    story.add(task("DEV-001"))
    story.project()
    change(story, '"pending"', '"done"')
    engine = story.engine()

    assert engine.edits(story.state, strict=False) == Edited()
    with pytest.raises(UserError):
        engine.edits(story.state)


def test_a_table_that_is_no_text_is_refused_and_left(story: Story) -> None:
    story.add(task("DEV-001"))
    path = story.project() / TABLE
    path.write_bytes(path.read_bytes().replace(b"Title", b"Tit\xe9l"))
    spoiled = path.read_bytes()

    with pytest.raises(UserError, match="is not UTF-8 text"):
        story.edits()
    story.complete("DEV-001")
    story.project()

    assert path.read_bytes() == spoiled


def test_a_deleted_table_is_written_again(story: Story) -> None:
    story.add(task("DEV-001"))
    path = story.project() / TABLE
    before = path.read_bytes()
    path.unlink()

    told = story.edits()
    story.restart()
    story.project()

    assert told == []
    assert path.read_bytes() == before


def test_a_crash_before_the_table_was_written_does_not_look_like_an_edit(story: Story) -> None:
    story.add(task("DEV-001"))
    story.project()
    story.complete("DEV-001")
    disk_takes_no_table(story)
    with pytest.raises(HostError):
        story.project()

    disk_takes_tables_again(story)
    story.restart()

    assert story.edits() == []
    story.project()
    assert rows(story)["DEV-001"]["status"] == "completed"


def test_crashes_in_a_row_before_the_table_was_written_do_not_look_like_an_edit(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002"), task("DEV-003"))
    story.project()
    disk_takes_no_table(story)
    for name in ("DEV-001", "DEV-002", "DEV-003"):
        story.complete(name)
        with pytest.raises(HostError):
            story.project()
        story.restart()

    disk_takes_tables_again(story)

    assert story.edits() == []
    story.project()
    assert {row["status"] for row in rows(story).values()} == {"completed"}


def test_an_edit_after_a_crash_before_the_table_was_written_takes_nothing_back(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002"))
    story.project()
    story.complete("DEV-001")
    disk_takes_no_table(story)
    with pytest.raises(HostError):
        story.project()
    disk_takes_tables_again(story)

    story.restart()
    change(story, "Title of DEV-002", "A better title")

    assert [(edit.task.id, edit.task.title) for edit in story.edits()] == [("DEV-002", "A better title")]


def test_an_edit_that_was_read_back_before_a_crash_is_not_reported_again(story: Story) -> None:
    story.add(task("DEV-001"))
    story.project()
    change(story, "Title of DEV-001", "A better title")
    story.take_over_edits()

    story.restart()

    assert story.edits() == []
    story.complete("DEV-001")
    story.project()
    assert rows(story)["DEV-001"]["title"] == "A better title"
    assert rows(story)["DEV-001"]["status"] == "completed"


def test_a_folder_that_cannot_be_made_is_an_error_of_the_host(story: Story) -> None:
    (story.folder / "review").rmdir()
    (story.folder / "review").touch()

    with pytest.raises(HostError, match=f'Cannot write "{story.folder}/review"'):
        story.restart()
