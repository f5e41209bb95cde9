import pytest

from iterdev.core.errors import UserError
from iterdev.tracker import reading
from iterdev.tracker.documents import solution_document
from iterdev.tracker.solutions import files_touched


def test_an_issue_needs_only_a_title_and_keeps_what_has_no_meaning_here() -> None:
    new = reading.new_issue({"title": "Login fails", "severity": "high", "tags": ["auth"], "priority": 4})

    assert (new.id, new.status) == ("", "registered")
    assert (new.description.priority, new.description.tags) == (4, ("auth",))
    assert new.description.extra == {"severity": "high"}


def test_a_description_is_another_name_for_the_context_whose_first_line_may_be_the_title() -> None:
    new = reading.new_issue({"description": "Login fails\nafter the update"})

    assert (new.description.title, new.description.context) == ("Login fails", "Login fails\nafter the update")


@pytest.mark.parametrize(
    "document", [[], "text", None, 3, {}, {"title": " "}, {"title": ["x"]}, {"title": "x", "priority": "high"}]
)
def test_what_describes_no_issue_is_refused_with_an_example(document: object) -> None:
    with pytest.raises(UserError) as refused:
        reading.new_issue(document)

    assert "--data" in refused.value.hint


def test_files_of_tasks_may_be_texts_objects_or_modification_points() -> None:
    tasks = [
        {"title": "One", "files": ["./a.py", {"path": "b.py", "action": "create"}]},
        {"title": "Two", "modification_points": [{"file": "src//c.py", "target": "f", "change": "x"}]},
    ]

    found = reading.new_solution({"tasks": tasks, "estimated_files": ["a.py", "d.py"]})

    assert files_touched(found) == ("a.py", "b.py", "src/c.py", "d.py")
    assert [task.id for task in found.tasks] == ["T1", "T2"]


def test_a_solution_is_written_as_it_was_read() -> None:
    task = {"id": "T1", "title": "Fix", "files": [{"path": "a.py", "action": "modify"}], "depends_on": []}
    document = {
        "id": "S",
        "approach": "b",
        "tasks": [{**task, "scope": "auth", "test": {"unit": ["x"]}}],
        "analysis": {"risk": "low"},
    }

    written = solution_document(reading.new_solution(document), is_bound=False)

    assert {key: written[key] for key in ("id", "approach", "analysis")} == {
        "id": "S",
        "approach": "b",
        "analysis": {"risk": "low"},
    }
    assert {**written["tasks"][0], "depends_on": []} == document["tasks"][0]


def test_text_that_cannot_be_encoded_becomes_an_escape() -> None:
    files = [{"path": "a\ud800.py", "why\ud800": 1}]

    found = reading.new_solution({"tasks": [{"files": files}], "note\ud800": {"\udfff": "\udfff"}})

    assert found.tasks[0].files[0].path == "a\\ud800.py"
    assert found.extra == {"note\\ud800": {"\\udfff": "\\udfff"}}
