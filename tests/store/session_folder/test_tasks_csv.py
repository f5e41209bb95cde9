import csv
import io
import string
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.store.conftest import CRITICAL, Story, entries, review, started, task, team_started

from iterdev.core.errors import UserError
from iterdev.core.prompts import NO_CONTEXT
from iterdev.core.results import FINDINGS_LIMIT
from iterdev.core.session.events import RowEdit, TableEdited, TasksAdded, TaskSkipped, WaveStarted
from iterdev.core.session.fold import replay
from iterdev.core.types import Mode, Status, TaskId
from iterdev.store.session_folder import tasks_csv
from iterdev.teams.development.roles import Pipeline, Role
from iterdev.teams.development.team import DEVELOPMENT

COLUMNS = DEVELOPMENT.columns.order
HEADER = ",".join(COLUMNS)
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)


def parse(text: str, file: str = "tasks.csv") -> list[RowEdit]:
    """The rows without the result columns of the team."""
    return [row.edit for row in tasks_csv.parse(text, DEVELOPMENT, file)]


def written(story: Story) -> str:
    return tasks_csv.table(story.state, DEVELOPMENT)


def cells(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def row(name: str, **values: str) -> str:
    """One row in the style of Excel, which quotes only what must be quoted."""
    known = {
        "id": name,
        "title": name,
        "description": "Do it",
        "role": "developer",
        "pipeline": "sprint",
        "sprint_num": "1",
        "gc_round": "0",
        "exec_mode": "csv-wave",
        "wave": "1",
        "status": "pending",
    }
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([(known | values).get(column, "") for column in COLUMNS])
    return out.getvalue()


def table(*rows: str) -> str:
    return "\n".join((HEADER, *rows)) + "\n"


def refusal(text: str) -> str:
    with pytest.raises(UserError) as error:
        parse(text)
    line = error.value.message.split(":")[0].removeprefix("tasks.csv ")
    assert error.value.hint == f"fix {line} of tasks.csv and try again"
    return error.value.message


@pytest.mark.requirement("R100")
def test_the_table_has_exactly_the_sixteen_columns_in_their_order(story: Story) -> None:
    story.add_pipeline()

    assert written(story).splitlines()[0] == (
        "id,title,description,role,pipeline,sprint_num,gc_round,deps,context_from,exec_mode,"
        "wave,status,findings,review_score,gc_signal,error"
    )
    assert all(None not in record and None not in record.values() for record in cells(written(story)))


def test_every_cell_is_quoted_and_a_quote_in_it_is_doubled(story: Story) -> None:
    story.add(task("DEV-001", title='Say "hello", twice'))

    line = written(story).splitlines()[1]

    assert line.startswith('"DEV-001","Say ""hello"", twice","Work of DEV-001","developer"')


@pytest.mark.requirement("R54")
def test_results_are_in_the_row_of_their_task(story: Story) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001", findings="Two components, one risk")
    story.fail("DEV-001", "no such module")

    rows = {record["id"]: record for record in cells(written(story))}

    assert (rows["DESIGN-001"]["status"], rows["DESIGN-001"]["findings"]) == ("completed", "Two components, one risk")
    assert (rows["DEV-001"]["status"], rows["DEV-001"]["error"]) == ("failed", "no such module")
    assert rows["VERIFY-001"]["status"] == "pending"


@pytest.mark.requirement("R79")
def test_only_a_reviewer_has_a_score_and_a_signal(story: Story) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001")
    story.complete("DEV-001")
    story.complete("VERIFY-001")
    story.complete("REVIEW-001", review=review(8.25))

    rows = {record["id"]: (record["review_score"], record["gc_signal"]) for record in cells(written(story))}

    assert rows.pop("REVIEW-001") == ("8.2", "CONVERGED")
    assert set(rows.values()) == {("", "")}


@pytest.mark.requirement("R79")
def test_a_review_that_asks_for_a_revision_says_so_in_its_row(story: Story) -> None:
    story.add(task("REVIEW-001"))
    story.complete("REVIEW-001", review=review(9, CRITICAL))

    (record,) = cells(written(story))

    assert (record["review_score"], record["gc_signal"]) == ("9", "REVISION_NEEDED")


@pytest.mark.requirement("R67")
def test_the_table_alone_shows_which_waves_are_unfinished(story: Story) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001")
    story.start("DEV-001")

    rows = parse(written(story))

    assert {row.task.wave for row in rows if not row.status.is_final} == {2, 3}
    assert {row.task.id for row in rows if row.status is Status.pending} == {"DEV-001", "VERIFY-001", "REVIEW-001"}


@pytest.mark.requirement("R48")
def test_a_wave_file_has_the_batch_of_its_wave_and_the_context_of_each_task(story: Story) -> None:
    story.add(
        task("DESIGN-001", title="Think"),
        task("DEV-001", "DESIGN-001", context_from=(TaskId("DESIGN-001"),)),
        task("DEV-002", "DESIGN-001"),
        task("DEV-003", "DESIGN-001"),
        task("GC-CHECK-001", "DESIGN-001"),
        task("VERIFY-001", "DEV-001"),
    )
    story.complete("DESIGN-001", findings="Keep it small")
    story.tell(WaveStarted(2), TaskSkipped(TaskId("DEV-003"), "not wanted"))

    records = cells(tasks_csv.wave_file(story.state, DEVELOPMENT, 2))

    assert list(records[0]) == [*COLUMNS[:11], "prev_context"]
    assert [(record["id"], record["prev_context"]) for record in records] == [
        ("DEV-001", "[Task DESIGN-001: Think] Keep it small"),
        ("DEV-002", NO_CONTEXT),
    ]


def test_the_results_of_a_wave_are_those_of_its_finished_batch(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002"), task("DEV-003"), task("DEV-004", "DEV-001"), task("GC-CHECK-001"))
    story.complete("DEV-001", findings="done, well")
    story.fail("DEV-002", "broken")

    records = cells(tasks_csv.wave_results(story.state, DEVELOPMENT, 1))

    assert [list(record.values()) for record in records] == [
        ["DEV-001", "completed", "done, well", "", "", ""],
        ["DEV-002", "failed", "", "", "", "broken"],
    ]
    assert list(records[0]) == ["id", "status", "findings", "review_score", "gc_signal", "error"]


def test_a_table_that_was_written_is_read_back_as_it_was(story: Story) -> None:
    story.add_pipeline(Pipeline.multi_sprint)
    story.complete("DESIGN-001", findings='a "quoted"; text,\nover lines')
    story.fail("DEV-001", "first line\r\nsecond line")

    rows = parse(written(story))

    assert [row.task for row in rows] == list(story.state.tasks.plan.values())
    assert [(row.status, row.findings, row.error) for row in rows] == [
        (progress.status, progress.findings, progress.error) for progress in story.state.tasks.progress.values()
    ]


@settings(deadline=None)
@given(title=TEXT, description=TEXT, findings=TEXT, error=TEXT)
def test_any_text_survives_the_table(title: str, description: str, findings: str, error: str) -> None:
    work = task("DEV-001", title=f"t{title}", description=f"d{description}", wave=1)
    edit = RowEdit(task=work, status=Status.failed, findings=findings, error=error)
    state = replay(entries([started(), team_started(), TasksAdded((work,)), TableEdited((edit,))]), DEVELOPMENT)
    assert state

    assert parse(tasks_csv.table(state, DEVELOPMENT)) == [edit]


def test_a_description_may_be_as_long_as_a_book(story: Story) -> None:
    story.add(task("DEV-001", description="word " * 100_000))

    (found,) = parse(written(story))

    assert found.task == story.state.tasks.plan[TaskId("DEV-001")]


@pytest.mark.requirement("R101")
def test_findings_that_a_person_wrote_are_cut_too() -> None:
    (found,) = parse(table(row("DEV-001", findings="x" * 501)))

    assert len(found.findings) == FINDINGS_LIMIT == 500


def test_waves_are_computed_whatever_the_column_says() -> None:
    rows = parse(table(row("DEV-001", deps="DEV-002", wave="1"), row("DEV-002", wave="9")))

    assert [(found.task.id, found.task.wave) for found in rows] == [("DEV-001", 2), ("DEV-002", 1)]


def test_a_table_needs_only_ids_and_descriptions() -> None:
    (first, second) = parse("id,description,deps\nDESIGN-001,Think,\nDEV-001,Do, DESIGN-001 ;\n")

    assert first.task.role == Role.architect
    assert (second.task.role, second.task.deps, second.task.wave) == (Role.developer, ("DESIGN-001",), 2)
    assert (second.task.title, second.task.mode, second.status) == ("DEV-001", Mode.csv_wave, Status.pending)


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "\ufeff" + text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text + "\n\n",
        lambda text: "\n".join(f'"{line}"'.replace(",", '","') for line in text.splitlines()),
    ],
    ids=["CRLF", "BOM", "BOM and CRLF", "no newline at the end", "empty lines", "every cell quoted"],
)
def test_the_spelling_of_a_spreadsheet_makes_no_difference(spell: Callable[[str], str]) -> None:
    text = table(row("DEV-001"), row("DEV-002", deps="DEV-001"))

    assert parse(spell(text)) == parse(text)


@pytest.mark.requirement("R66")
@pytest.mark.parametrize(
    ("name", "role"), [("A", "developer"), ("DESIGN-001", "architect"), ("VERIFY-7", "tester"), ("X-001", "developer")]
)
def test_a_row_needs_only_an_id_and_a_description(name: str, role: str) -> None:
    (found,) = parse(f"id,description\n{name},do it\n")

    assert (found.task.role, found.task.title, found.status) == (role, name, Status.pending)


def test_columns_may_stand_in_another_order() -> None:
    (found,) = parse('description,id,status\n"Do, all of it",DEV-001,skipped\n')

    assert (found.task.description, found.status) == ("Do, all of it", Status.skipped)


@pytest.mark.requirement("R66", "R162")
@pytest.mark.parametrize(
    ("rows", "line", "message"),
    [
        ([row("A"), row("A")], 3, 'the id "A" is used twice'),
        ([row("A"), row("")], 3, "the id is empty"),
        ([row("A", description=" ")], 2, 'the description of "A" is empty'),
        ([row("A"), row("B", deps="C")], 3, '"B" depends on "C", which is not in the table'),
        ([row("A"), row("B", deps="A;A")], 3, '"B" depends on the same task twice'),
        ([row("A", deps="A")], 2, '"A" depends on itself'),
        (
            [row("A", deps="B"), row("B", deps="C"), row("C", deps="A")],
            2,
            "the tasks depend on each other in a cycle: A -> B -> C -> A",
        ),
        (
            [row("X"), row("A", deps="B"), row("B", deps="A")],
            3,
            "the tasks depend on each other in a cycle: A -> B -> A",
        ),
        ([row("A", context_from="Z")], 2, '"A" takes context from "Z", which is not in the table'),
        (
            [row("A", context_from="B"), row("B", deps="A")],
            2,
            '"A" takes context from "B", which is in wave 2 and not before wave 1',
        ),
        (
            [row("A"), row("B", status="done")],
            3,
            'status is "done", expected one of pending, completed, failed, skipped',
        ),
        ([row("A", status="in_progress")], 2, 'status is "in_progress", expected one of pending, completed'),
        ([row("A", role="wizard")], 2, 'role is "wizard", expected one of architect, developer, tester, reviewer'),
        ([row("A", pipeline="quick")], 2, 'pipeline is "quick", expected one of patch, sprint, multi-sprint'),
        ([row("A", exec_mode="batch")], 2, 'exec_mode is "batch", expected one of csv-wave, interactive'),
        ([row("A", sprint_num="one")], 2, 'sprint_num is "one", expected a number'),
        ([row("A", sprint_num="0")], 2, 'the sprint_num of "A" is 0, and sprints are counted from 1'),
        ([row("A", gc_round="-1")], 2, 'the gc_round of "A" is -1, and rounds are counted from 0'),
        ([row("A", review_score="good")], 2, 'review_score is "good", expected a number'),
        ([row("A", review_score="11")], 2, 'review_score is "11", expected 1 to 10'),
        ([row("A", review_score="0")], 2, 'review_score is "0", expected 1 to 10'),
        ([row("A", review_score="nan")], 2, 'review_score is "nan", expected 1 to 10'),
        ([row("A"), row("B") + ",more"], 3, "17 cells for 16 columns"),
        ([row("A"), "B,only,three"], 3, "3 cells for 16 columns"),
        ([row("A"), row("B") + ',"never closed'], 3, "unexpected end of data"),
        ([row("A"), f'"B"x{row("B")[1:]}'], 3, "expected after"),
    ],
)
def test_a_mistake_is_refused_with_the_number_of_its_line(rows: list[str], line: int, message: str) -> None:
    said = refusal(table(*rows))

    assert said.startswith(f"tasks.csv line {line}: ")
    assert message in said


@pytest.mark.requirement("R66")
@pytest.mark.parametrize("name", ["DEV 1", "../DEV-1", "a/b", "a..b", "DEV-1.lock", "-DEV", "DEV~1", "DEV:1", "DEV\t1"])
def test_an_id_that_cannot_name_a_ref_and_a_file_is_refused(name: str) -> None:
    said = refusal(table(row("A"), row(name)))

    assert said.startswith("tasks.csv line 3: ")
    assert f'"{name}"' in said


@pytest.mark.requirement("R66")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_are_counted_as_an_editor_counts_them_when_cells_have_several(newline: str) -> None:
    long = row("A", description=newline.join(["one", "two", "three", '"four"']))
    text = newline.join([HEADER, long, "", long.replace("A,A", "B,B"), row("C", status="lost")]) + newline

    assert refusal(text).startswith(f"tasks.csv line {text.split(newline).index(row('C', status='lost')) + 1}: ")


@pytest.mark.requirement("R66")
def test_a_mistake_in_a_cell_of_several_lines_is_on_the_line_where_its_row_begins() -> None:
    text = table(row("A"), row("B", description="one\ntwo", status="lost"))

    assert refusal(text).startswith("tasks.csv line 3: ")


@pytest.mark.requirement("R66")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the table is empty"),
        ("\n\n", "line 1: the table is empty"),
        ("id,description,statsu\n", 'line 1: unknown column "statsu" (did you mean "status"?)'),
        ("id,description,id\n", "line 1: a column occurs twice"),
        ("description\n", 'line 1: the column "id" is missing'),
        ("id\n", 'line 1: the column "description" is missing'),
        ("\n\nid;description\n", 'line 3: unknown column "id;description"'),
    ],
)
def test_a_header_that_is_wrong_is_refused(text: str, message: str) -> None:
    assert refusal(text).startswith(f"tasks.csv {message}")


def test_the_file_that_is_wrong_is_named() -> None:
    with pytest.raises(UserError, match=r"^mine\.csv line 2: "):
        parse(table(row("A", status="lost")), "mine.csv")


@given(st.lists(st.sampled_from(list(string.ascii_uppercase[:6])), unique=True, min_size=1), st.randoms())
def test_the_order_of_the_rows_does_not_change_what_they_mean(names: list[str], chance: Random) -> None:
    rows = [row(name, deps=";".join(names[:number])) for number, name in enumerate(names)]
    shuffled = list(rows)
    chance.shuffle(shuffled)

    meant = {found.task.id: found for found in parse(table(*rows))}

    assert {found.task.id: found for found in parse(table(*shuffled))} == meant


def test_what_is_under_way_is_pending_in_the_table(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002"))
    story.start("DEV-001")

    assert [record["status"] for record in cells(written(story))] == ["pending", "pending"]


def test_a_row_that_was_read_back_is_written_the_same(story: Story) -> None:
    story.add(task("REVIEW-001"))
    (found,) = tasks_csv.parse(written(story), DEVELOPMENT)
    edit = replace(found.edit, findings="ä\n", error="", status=Status.completed)
    row = replace(found, edit=edit, results={"review_score": "7.5", "gc_signal": ""})

    story.tell(TableEdited((edit,)), *DEVELOPMENT.table_edited(story.state, [row]))

    (record,) = cells(written(story))
    assert (record["review_score"], record["findings"], record["status"]) == ("7.5", "ä\n", "completed")
