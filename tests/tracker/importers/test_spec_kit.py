from iterdev.tracker.importers import spec_kit

TEXT = """
# Tasks: Photo albums

## Phase 1: Setup (Shared Infrastructure)

- [X] T001 Create project structure per implementation plan
- [ ] T002 [P] Configure linting in pyproject.toml
- [ ] T003 [P] Add CI in .github/workflows/ci.yml

## Phase 2: User Story 1 (Priority: P1)

- [ ] T004 [P] [US1] Contract test in tests/test_albums.py
- [ ] T005 [US1] Album model in src/album.py
- [ ] T005 [US1] the same again
- [ ] something without an id

## Dependencies
- Setup first
"""


def test_a_task_waits_for_those_before_it_and_neighbours_with_a_mark_run_side_by_side() -> None:
    tasks = spec_kit.read(TEXT, "specs/001/tasks.md").tasks

    assert [(task.id, task.deps) for task in tasks] == [
        ("T001", ()),
        ("T002", ("T001",)),
        ("T003", ("T001",)),
        ("T004", ("T002", "T003")),
        ("T005", ("T004",)),
    ]


def test_what_is_ticked_is_done() -> None:
    assert [task.is_done for task in spec_kit.read(TEXT, "tasks.md").tasks] == [True, False, False, False, False]


def test_a_task_is_described_with_its_phase_story_and_file() -> None:
    task = spec_kit.read(TEXT, "specs/001/tasks.md").tasks[4]

    assert task.title == "Album model in src/album.py"
    assert task.description.startswith(
        "Album model in src/album.py (Phase 2: User Story 1 (Priority: P1); story US1; from specs/001/tasks.md"
    )


def test_what_is_no_task_is_said() -> None:
    assert spec_kit.read(TEXT, "tasks.md").notes == (
        "T005 occurs twice; the second one is left out: the same again",
        "1 line: a box without an id such as T001, and left out",
    )
