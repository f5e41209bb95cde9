"""`iterdev diff`: the change of a session, of a task, of a fix round."""

import pytest
from tests.app.conftest import Team
from tests.conftest import Repo

from iterdev.app.branches.diff import change_of, changed_files, diff, file_diff
from iterdev.core.errors import UserError


def paths(team: Team, task: str = "", round_: int | None = None) -> list[str]:
    view = diff(team.repository, team.session, change_of(team.repository, team.session, task, round_))
    return [file.path for file in view.files]


@pytest.fixture
def revised(repo: Repo, team: Team) -> Team:
    """A sprint with a fix round."""
    repo.behave(**{"REVIEW-001": {"score": 5}})
    assert team.run(pipeline="sprint").succeeded
    return team


def test_the_change_of_a_session_is_all_that_landed(revised: Team) -> None:
    assert paths(revised) == ["DEV-001.txt", "DEV-fix-1.txt"]


def test_the_change_of_a_task_is_its_own(revised: Team) -> None:
    assert paths(revised, "DEV-001") == ["DEV-001.txt"]


def test_the_change_of_a_fix_round_is_what_was_fixed_in_it(revised: Team) -> None:
    assert paths(revised, round_=1) == ["DEV-fix-1.txt"]


def test_files_have_their_numbers_and_the_patch_its_lines(repo: Repo, team: Team) -> None:
    repo.behave(**{"DEV-001": {"write": {"README.md": "# Other\n"}, "run": "printf '\\0' > data.bin"}})
    team.run(pipeline="patch")

    view = diff(team.repository, team.session, change_of(team.repository, team.session))

    assert [(file.path, file.additions, file.deletions) for file in view.files] == [
        ("README.md", 1, 1),
        ("data.bin", None, None),
    ]
    assert "+# Other" in view.diff


def test_kept_work_of_a_failed_task_can_be_seen(repo: Repo, team: Team) -> None:
    repo.behave(**{"DEV-001": {"write": {"half.txt": "half\n"}, "exit": 1}})
    team.run(pipeline="patch")

    assert paths(team, "DEV-001") == ["half.txt"]


@pytest.mark.parametrize(
    ("task", "round_", "message"),
    [
        ("REVIEW-001", None, "changed nothing"),
        ("DEV-009", None, "no task"),
        ("", 7, "no fix round"),
        ("DEV-001", 1, "exclude"),
    ],
)
def test_what_has_no_change_is_told(revised: Team, task: str, round_: int | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        change_of(revised.repository, revised.session, task, round_)


def test_one_file_of_a_change_is_shown_by_itself_whatever_its_name(repo: Repo, team: Team) -> None:
    repo.behave(**{"DEV-001": {"write": {"*.txt": "star\n", "a.txt": "a\n"}}})
    team.run(pipeline="patch")
    change = change_of(team.repository, team.session)

    patch = file_diff(team.repository, change, "*.txt")

    assert [file.path for file in changed_files(team.repository, change)] == ["*.txt", "a.txt"]
    assert "+star\n" in patch
    assert "+a\n" not in patch
