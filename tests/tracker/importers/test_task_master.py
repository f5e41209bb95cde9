import pytest
from tests.tracker.conftest import BEGIN

from iterdev.tracker.importers import task_master

TASKS = [
    {"id": 1, "title": "Set up", "status": "done", "priority": "high", "dependencies": [], "subtasks": []},
    {
        "id": 2,
        "title": "Log in",
        "description": "With a token",
        "details": "JWT",
        "testStrategy": "Unit tests",
        "status": "pending",
        "priority": "low",
        "dependencies": [1],
        "subtasks": [
            {"id": 1, "title": "Model", "description": "User", "status": "done", "dependencies": []},
            {"id": 2, "title": "Endpoint", "details": "POST", "dependencies": [1]},
        ],
    },
    {"id": 3, "title": "Never", "status": "cancelled"},
]


@pytest.mark.parametrize(
    ("document", "prefix"),
    [
        ({"tasks": TASKS}, "TM"),
        ({"master": {"tasks": TASKS, "metadata": {}}}, "TM"),
        ({"auth": {"tasks": TASKS}}, "TM-auth"),
    ],
)
def test_tasks_become_issues_with_or_without_tags(document: dict[str, object], prefix: str) -> None:
    found = task_master.read(document, BEGIN)

    assert [(issue.id, issue.status.value) for issue in found.issues] == [
        (f"{prefix}-1", "completed"),
        (f"{prefix}-2", "registered"),
    ]
    assert [issue.description.priority for issue in found.issues] == [4, 2]
    assert "1 task: cancelled, and left out" in found.notes


def test_the_text_has_details_how_to_test_and_what_it_depends_on() -> None:
    issue = task_master.read({"tasks": TASKS}, BEGIN).issues[1]

    assert issue.description.context == (
        "With a token\n\nDetails:\nJWT\n\nHow to test it:\nUnit tests\n\nDepends on:\nTM-1"
    )


def test_subtasks_become_a_solution_that_is_not_bound() -> None:
    found = task_master.read({"tasks": TASKS}, BEGIN)

    plan = found.solutions["TM-2"]
    assert (plan.id, plan.dependencies, found.issues[1].bound_solution_id) == ("SOL-TM-2-1", ("TM-1",), None)
    assert [(task.id, task.title, task.depends_on) for task in plan.tasks] == [
        ("T1", "Model", ()),
        ("T2", "Endpoint", ("T1",)),
    ]
    assert any("not bound" in note for note in found.notes)
