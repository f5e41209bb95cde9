import pytest
from tests.tracker.conftest import BEGIN

from iterdev.core.errors import UserError
from iterdev.tracker.importers import workflow_table

COLUMNS = ("id", "title", "description", "role", "deps", "status", "findings")


def test_a_table_keeps_the_columns_that_are_known_and_names_the_others() -> None:
    header = "id,title,description,role,deps,scope,status,findings"
    rows = '"A","One","Do","x","","core","completed","ok"', '"B","","Do it","x","A","","failed",""'
    text = "\n".join((header, *rows))

    found = workflow_table.read(text, COLUMNS, BEGIN)

    first, second = found.tasks
    assert (first.is_done, first.cells) == (True, {"role": "x", "findings": "ok"})
    assert (second.title, second.deps, second.is_done) == ("B", ("A",), False)
    assert found.notes == (
        "columns that a task table does not have are left out: scope",
        "failed or skipped there, pending here: B",
    )


def test_a_table_of_the_issue_team_gives_its_issues_with_what_was_found_out() -> None:
    text = 'id,description,issue_ids,findings\n"E-1","x","GH-1;GH-2","slow query",\n"S-1","y","GH-1","add an index"\n'

    found = workflow_table.read(text, COLUMNS, BEGIN)

    assert [(issue.id, issue.description.context) for issue in found.issues] == [
        ("GH-1", "Found out before:\nE-1: slow query\nS-1: add an index"),
        ("GH-2", "Found out before:\nE-1: slow query"),
    ]
    assert found.notes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 'no column "id"'),
        ("id,title\nA,b\n", 'no column "description"'),
        ("id,description\nA\n", "Row 2"),
        ('id,description\n"A,b', "cannot be read"),
    ],
)
def test_what_is_no_table_is_refused(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        workflow_table.read(text, COLUMNS, BEGIN)
