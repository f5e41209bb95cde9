"""Files of other tools, imported into a repository."""

import json
from pathlib import Path

import pytest
from tests.conftest import Repo

from iterdev.app.issues import show
from iterdev.app.issues.imports import import_file
from iterdev.app.start import read_table
from iterdev.core.errors import UserError
from iterdev.engine.repository import Repository


@pytest.fixture
def repository(repo: Repo) -> Repository:
    return Repository(repo.path)


def test_issues_are_added_once_and_updated_when_the_file_has_changed(repository: Repository, tmp_path: Path) -> None:
    file = tmp_path / "issues.jsonl"
    lines = [{"id": f"bd-{number}", "title": "One", "issue_type": "bug", "priority": 1} for number in (1, 2)]
    file.write_text("\n".join(map(json.dumps, lines)))
    assert import_file(repository, file).added == ("bd-1", "bd-2")
    file.write_text("\n".join(map(json.dumps, [lines[0], {**lines[1], "title": "Two"}])))

    again = import_file(repository, file)

    assert (again.added, again.updated, again.unchanged) == ((), ("bd-2",), ("bd-1",))
    assert [issue.description.title for issue in show.issue_list(repository).issues] == ["One", "Two"]


def test_tasks_become_a_table_that_a_session_can_run(repository: Repository, tmp_path: Path) -> None:
    file = tmp_path / "tasks.md"
    file.write_text(
        "## Phase 1\n- [x] T001 Set up\n- [ ] T002 [P] Models\n- [ ] T003 [P] Views\n- [ ] T004 Join them\n"
    )

    found = import_file(repository, file)

    assert (found.table, found.tasks) == (".workflow/imports/tasks.csv", 4)
    rows = read_table(repository, repository.top / str(found.table))
    assert [(row.edit.task.id, row.edit.task.deps, row.edit.status.value) for row in rows] == [
        ("T001", (), "completed"),
        ("T002", ("T001",), "pending"),
        ("T003", ("T001",), "pending"),
        ("T004", ("T002", "T003"), "pending"),
    ]


def test_subtasks_of_task_master_are_solutions(repository: Repository, tmp_path: Path) -> None:
    file = tmp_path / "tasks.json"
    task = {"id": 4, "title": "Log in", "subtasks": [{"id": 1, "title": "Model"}]}
    file.write_text(json.dumps({"master": {"tasks": [task]}}))

    import_file(repository, file)

    ((_, solution),) = show.solutions(repository, "TM-4")
    assert solution.tasks[0].title == "Model"


def test_the_issues_of_another_repository_can_be_imported(repository: Repository, tmp_path: Path) -> None:
    file = tmp_path / "issues.jsonl"
    file.write_text('{"id": "ISS-20251229-001", "title": "Slow", "context": "4 s", "status": "planned"}\n')

    assert import_file(repository, file).added == ("ISS-20251229-001",)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("notes.md", "# Nothing", "not a file of a known tool"),
        ("x.json", "{}", "not a file of a known tool"),
        ("x.jsonl", "", "not a file of a known tool"),
        ("tasks.json", '{"tasks": []}', "nothing in"),
        ("gone.json", None, "Cannot read"),
    ],
)
def test_what_cannot_be_imported_is_refused(
    repository: Repository, tmp_path: Path, name: str, text: str | None, words: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)

    with pytest.raises(UserError, match=words) as refused:
        import_file(repository, tmp_path / name)

    assert refused.value.hint
